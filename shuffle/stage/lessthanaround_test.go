package stage

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// copying is a broker that is copied just before a record of one round is put.
type copying struct {
	stream.Records
	before func(subject string)
}

func (c copying) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	c.before(subject)
	return c.Records.PutOnce(ctx, subject, data)
}

// TestBrokerLosesLessThanARound: a stage is started again on a broker that was put back to just before one of the
// records of the newest round, but after its Round: its Open, claim, batch or Close. The learner waits for the batch,
// or has applied it and announced the next round. Within minutes the round has its earlier outcome, or is void, and the
// task goes on.
func TestBrokerLosesLessThanARound(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for lost, what := range []string{"Open", "claim", "batch", "Close"} {
			t.Run(map[bool]string{true: "applied, ", false: ""}[applied]+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { loseFrom(t, lost, applied) })
			})
		}
	}
}

func loseFrom(t *testing.T, lost int, applied bool) {
	w := newWorld(t, plan{rounds: 4, cohort: 3, spares: 5, deadline: 24 * time.Hour, stale: 24 * time.Hour})
	marks := &memoryMarks{}
	var mu sync.Mutex
	var puts []string
	var restore []func()
	config := func(before func(string)) Config {
		c := w.config()
		c.Marks, c.Records = marks, copying{c.Records, before}
		return c
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	var others sync.WaitGroup
	others.Go(func() { w.answerAll(ctx) })
	of := map[string]bool{w.name.Open(2, 1): true, w.name.Claim(2): true, w.name.Batch(2): true, w.name.Close(2, 1): true}
	_, stopStage := w.start(config(func(subject string) {
		mu.Lock()
		defer mu.Unlock()
		if !of[subject] {
			return
		}
		if puts = append(puts, subject); len(puts) == lost+1 {
			for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches, stream.Leases} {
				restore = append(restore, w.broker.Save(w.name, s))
			}
		}
	}))
	w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
	announce := func(ctx context.Context, r stream.Round, step uint64) bool {
		w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, step)))
		if w.get(ctx, w.name.Batch(r)) == nil {
			t.Fatalf("no batch of round %d", r)
		}
		b, _ := w.batch(r)
		return b.Void
	}
	announce(ctx, 1, 1)
	announce(ctx, 2, 2)
	if w.get(ctx, w.name.Close(2, 1)) == nil {
		t.Fatal("no Close of round 2")
	}
	_, stood := w.batch(2)
	_ = stopStage()
	stop()
	others.Wait()
	if len(puts) != 4 {
		t.Fatalf("the stage put %s, want four records of round 2", strings.Join(puts, ", "))
	}
	for _, put := range restore {
		put()
	}

	began := time.Now()
	ctx, stop = context.WithTimeout(t.Context(), 10*time.Minute)
	next := stream.Round(2)
	if applied { // devices that know of round 3 answer that
		next = 3
	}
	others.Go(func() { w.answerFrom(ctx, next) })
	_, stopStage = w.start(config(func(string) {}))
	step := uint64(3)
	if !applied {
		if announce(ctx, 2, 2) {
			step = 2
		} else if _, m := w.batch(2); !bytes.Equal(m.Data, stood.Data) {
			t.Error("round 2 was released twice")
		}
	}
	r := stream.Round(3)
	for announce(ctx, r, step) {
		if r++; r > 4 {
			t.Fatal("two rounds after the lost one are void")
		}
	}
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("the task went on after %v", took)
	}
	_ = stopStage()
	stop()
	others.Wait()
}
