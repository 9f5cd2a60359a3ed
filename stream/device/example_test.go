package device_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// An app opens a device beside the transport (natsjs.ConnectWait's, in an app), hands over the one event of a user, and
// learns whether it was counted. Here a task runs in memory, with nine more users; an app sets Folder and Pin.
func Example() {
	ctx, broker, store, stop := churnInMemory(9)
	defer stop()

	dev, err := device.Open(ctx, device.Config{Task: "churn", Transport: broker, Store: store, TrustFirstUse: true})
	if err != nil {
		log.Fatal(err) // a *consent.RefusedError where the policy or the pin forbids it
	}
	defer dev.Close()
	event := device.EventOf(`{"value": [0.5, -0.25, 1], "label": 1}`)
	ticket, err := dev.Submit(ctx, "this user", event)
	if err != nil {
		log.Fatal(err) // the key is empty or too long, or the device has ended
	}
	if err := ticket.Accepted(ctx); err != nil { // from then on it is on disk, and sent
		log.Fatal(err)
	}
	outcome, err := dev.Outcome(ctx, "this user")
	fmt.Println(outcome, err)
	// Output: counted in round 1 <nil>
}

// A ticket is kept as text, and asked later, by another process with the same store.
func ExampleDevice_Ticket() {
	ctx, broker, store, stop := churnInMemory(9)
	defer stop()
	dev, err := device.Open(ctx, device.Config{Task: "churn", Transport: broker, Store: store, TrustFirstUse: true})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	members := map[string]any{"value": []float64{0.5, -0.25, 1}, "label": 1}
	ticket, err := dev.Submit(ctx, "this user", device.EventOf(members))
	if err != nil {
		log.Fatal(err)
	}
	text, err := ticket.MarshalText()
	if err != nil {
		log.Fatal(err)
	}

	ticket, err = dev.Ticket(text)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := ticket.Outcome(ctx)
	fmt.Println(outcome, err)
	// Output: counted in round 1 <nil>
}

// An app whose task protects people sends all events of its user at once: the mean over them is one report, under the
// user's id.
func ExampleDevice_PublishBlock() {
	ctx, dev, stop := peopleInMemory()
	defer stop()

	events := []convex.Example{
		{Value: []float64{0.5, -0.25, 1}, Label: 1},
		{Value: []float64{0.1, 0.75, 0}, Label: -1},
	}
	outcome, err := dev.PublishBlock(ctx, participation.EventKey("this user"), events...)
	if err != nil {
		log.Fatal(err) // a *consent.RefusedError where the policy forbids it, or the task is about single events
	}
	fmt.Println(outcome)

	outcome, err = dev.PublishBlock(ctx, participation.EventKey("this user"), convex.Example{Value: []float64{1, 1, 1},
		Label: 1})
	fmt.Println("more of the same user:", outcome, err)
	// Output:
	// counted in round 1
	// more of the same user: counted in round 1 <nil>
}

// What the policy forbids is not sent: here a task that costs more than the device gives.
func ExamplePolicy() {
	ctx, broker, store, stop := churnInMemory(0)
	defer stop()

	dev, err := device.New(device.Settings{
		Task: "churn", Transport: broker, Store: store, Policy: consent.Policy{MaxEpsilon: 0.5},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	outcome, _ := dev.Publish(ctx, participation.EventKey("this user"), convex.Example{Value: []float64{0.5, -0.25, 1},
		Label: 1})
	fmt.Println(outcome.State, "for", outcome.Refused.Field)
	// Output: refused for plan.phases[0]: epsilon
}

// An exampleTB lets an example use what tests use: what fails there, panics.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                        {}
func (exampleTB) Fatal(args ...any)              { panic(fmt.Sprint(args...)) }
func (exampleTB) Error(args ...any)              { panic(fmt.Sprint(args...)) }
func (exampleTB) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// churnInMemory runs learner and stage of a task in memory, whose only round takes ten users, of which so many publish
// by themselves. stop ends all of it.
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

// peopleInMemory returns the client of one of ten users of a task in memory that protects people; the others publish
// by themselves.
func peopleInMemory() (ctx context.Context, dev *device.Device, stop func()) {
	w := newWorld(exampleTB{}, plan{rounds: 1, cohort: 10, deadline: time.Minute, sealed: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var group sync.WaitGroup
	group.Go(func() { w.learn(ctx) })
	group.Go(func() { w.mix(ctx) })
	clients := [2]*device.Device{}
	for i := range clients {
		clients[i] = w.client(w.config(participation.NewMemoryStore()))
		byUser(clients[i], 16, 0)
	}
	for i := range 9 {
		group.Go(func() {
			_, _ = clients[1].PublishBlock(ctx, participation.EventKey(fmt.Sprint(i)), example(1), example(-1))
		})
	}
	return ctx, clients[0], func() {
		cancel()
		_ = clients[0].Close()
		_ = clients[1].Close()
		group.Wait()
	}
}
