package stage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/memory"
)

// TestAnAttemptAtADecidedRoundIsDropped: a life takes over and is answered by a replica that knows neither the batch
// nor the claim of the round, so it opens another attempt. Nobody will answer it. When the batch shows it goes on to
// the next round, or to End.
func TestAnAttemptAtADecidedRoundIsDropped(t *testing.T) {
	for _, rounds := range []uint64{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: rounds, cohort: 4})
			w.announce(t.Context())
			_, stop := w.start(w.config())
			w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
			if w.get(t.Context(), w.name.Close(1, 1)) == nil {
				t.Fatal("no Close")
			}
			_ = stop()
			w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
				if a, _ := stream.ParseSubject(subject); op == memory.Get && (a.Verb == "batch" || a.Verb == "claim" || a.Verb == "close") {
					return memory.Lag
				}
				return memory.None
			})
			c := w.config()
			dropped := 0
			c.Observer.Dropped = func(r stream.Round, a stream.Attempt) {
				if r == 1 && a == 2 {
					dropped++
				}
			}
			s, stop := w.start(c)
			if w.invited(t.Context(), 1, 1) == nil {
				t.Fatal("the replica does not lag: no second attempt")
			}
			w.broker.Inject(nil)
			if rounds == 1 {
				w.end(t.Context(), 1)
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Errorf("Run: %v after End, doing %v", err, s.Status())
				}
			} else {
				w.put(t.Context(), w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
				w.answer(t.Context(), w.invited(t.Context(), 2, 0), w.users(2))
				time.Sleep(time.Minute)
				_ = stop()
			}
			if real, void := w.audit(); real != int(rounds) || void != 0 || dropped != 1 {
				t.Errorf("%d real, %d void batches of %d, attempt dropped %d times", real, void, rounds, dropped)
			}
		})
	}
}

// TestADecidedRoundGetsItsClose: a life died before it put Close, and the learner has gone on. The next life is answered
// a few times by a replica that does not know the batch; devices still get their Close, and the next round opens.
func TestADecidedRoundGetsItsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 4})
		w.announce(t.Context())
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if a, _ := stream.ParseSubject(subject); op == memory.Put && a.Verb == "close" {
				return memory.Lost
			}
			return memory.None
		})
		_, stop := w.start(w.config())
		w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
		if w.get(t.Context(), w.name.Batch(1)) == nil {
			t.Fatal("no batch")
		}
		_ = stop()
		w.put(t.Context(), w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
		lagging := 3
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if op == memory.Get && subject == w.name.Batch(1) && lagging > 0 {
				lagging--
				return memory.Lag
			}
			return memory.None
		})
		_, stop = w.start(w.config())
		w.answer(t.Context(), w.invited(t.Context(), 2, 0), w.users(2))
		time.Sleep(time.Minute)
		w.broker.Inject(nil)
		if real, void := w.audit(); real != 2 || void != 0 || lagging > 0 {
			t.Errorf("%d real, %d void batches, %d reads to lag", real, void, lagging)
		}
		_ = stop()
	})
}
