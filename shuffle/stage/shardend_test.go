package stage

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestEndInASharedRound: the learner gives a round up while several processes count it (learner finish --now). All of them end by
// themselves, nothing is released, and neither claim nor batch stands.
func TestEndInASharedRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10})
		w.put(t.Context(), w.name.Task(), w.sign(w.learner, w.task))
		ended := make(chan error, 2)
		var stages [2]*Stage
		for i := range stages {
			c := w.config()
			w.shared(2, nil)(&c)
			stages[i] = w.new(c)
			go func() { ended <- stages[i].Run(t.Context()) }()
			time.Sleep(time.Minute)
		}
		w.announce(t.Context())
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:6])
		time.Sleep(10 * time.Second)
		if owner, worker := stages[0].Status(), stages[1].Status(); len(owner.Shards) != 2 || worker.Shard == 0 {
			t.Fatalf("the round is not shared: %+v, %+v", owner, worker)
		}
		w.end(t.Context(), 0)
		begun := time.Now()
		for range stages {
			if err := <-ended; err != nil {
				t.Errorf("Run: %v, want the end of the task", err)
			}
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("the processes ended %v after the task", took)
		}
		if b, _ := w.batch(1); b != nil {
			t.Errorf("batch %v of a round that was given up", b)
		}
		if _, err := w.broker.Get(t.Context(), w.name.Claim(1)); err == nil {
			t.Error("a round that was given up is claimed")
		}
	})
}
