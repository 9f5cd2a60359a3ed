package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/memory"
)

// An exampleTB lets an example use what tests use: what fails there, panics.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                        {}
func (exampleTB) Fatal(args ...any)              { panic(fmt.Sprint(args...)) }
func (exampleTB) Error(args ...any)              { panic(fmt.Sprint(args...)) }
func (exampleTB) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// churnInMemory runs learner and stage of a task in memory, whose only round takes ten users, of which so many publish by
// themselves. stop ends all of it.
func churnInMemory(others int) (ctx context.Context, broker *memory.Broker, store participation.Store, stop func()) {
	w := newWorld(exampleTB{}, plan{rounds: 1, cohort: 10, deadline: time.Minute, sealed: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var group sync.WaitGroup
	group.Go(func() { w.learn(ctx) })
	group.Go(func() { w.mix(ctx) })
	gateway := w.client(w.config(participation.NewMemoryStore()))
	for i := range others {
		group.Go(func() { _, _ = gateway.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1)) })
	}
	return ctx, w.broker, participation.NewMemoryStore(), func() {
		cancel()
		_ = gateway.Close()
		group.Wait()
	}
}
