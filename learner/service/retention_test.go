package service

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// far returns a round of the history's task that is much later than its last.
func (w *world) far(t *testing.T, h *history) *wire.Round {
	t.Helper()
	var r wire.Round
	if _, err := seal.Verify(h.public[name.Round(2)], w.learner.Public(), &r); err != nil {
		t.Fatal(err)
	}
	r.Round = 3 + uint64(stream.KeptRounds)
	return &r
}

// TestAnOlderFolderAndBatchesThatAreGone: where the batches that an older folder lacks were removed, the
// learner reports it, and applying them again is no way out.
func TestAnOlderFolderAndBatchesThatAreGone(t *testing.T) {
	h := recorded(t, newCast(t))
	for _, change := range []func(*Config){nil, accept} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, 1, func(a stream.Address) bool { return a.Round == 0 && a.Verb != "end" })
			far := w.far(t, h)
			w.put(t.Context(), name.Round(stream.Round(far.Round)), w.sign(w.learner, far))
			w.refused(change, ErrStateRolledBack, "round 1 is committed here", "the batches from round 2 on were removed as old",
				"schedule.retention")
			if t.Failed() {
				return
			}
			c := w.config()
			if change != nil {
				change(&c)
			}
			if err := w.new(c).Run(t.Context()); strings.Contains(err.Error(), "--accept-rollback") {
				t.Errorf("%v: names a way that leads nowhere", err)
			}
		})
	}
}

// TestAnOlderFolderAndAnOldRoundPutAgain: retention removed the rounds that an older folder knows, and an old
// one is put again, so that it is shown as the newest: one of before the folder, of its time, or of after it.
// By its sequence it is the folder that is old, not the broker, and applying the stored batches leads nowhere.
func TestAnOlderFolderAndAnOldRoundPutAgain(t *testing.T) {
	h := recorded(t, newCast(t))
	for _, c := range []struct {
		again, records stream.Round
		want           error
		says           string
	}{
		{1, stream.KeptRounds + 1, ErrStateRolledBack, "removed as old"},
		{2, stream.KeptRounds + 1, ErrStateRolledBack, "removed as old"},
		{3, stream.KeptRounds + 1, ErrStateRolledBack, "removed as old"},
		{4, stream.KeptRounds + 1, ErrStateRolledBack, "removed as old"},
		{1, 2, ErrBrokerRolledBack, "restore the broker"},
		{2, 2, ErrBrokerRolledBack, "restore the broker"},
		{3, 2, ErrBrokerRolledBack, "restore the broker"},
		{4, 2, ErrStateRolledBack, "--accept-rollback"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, 2, func(a stream.Address) bool { return a.Round == 0 && a.Verb != "end" })
			var gone []uint64
			for r := stream.Round(2); r < 2+c.records; r++ {
				put, err := w.broker.PutOnce(t.Context(), name.Round(r), []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				gone = append(gone, put.Standing.Sequence)
			}
			if err := w.broker.Remove(t.Context(), name, stream.Rounds, gone); err != nil {
				t.Fatal(err)
			}
			w.put(t.Context(), name.Round(c.again), h.public[name.Round(c.again)])
			w.refused(nil, c.want, "round 2", c.says)
		})
	}
}

// TestAnOldRoundIsNotWaitedFor: a learner that was suspended between its survey and its Round puts it where retention
// has removed it. It knows by the sequence that others went on, and ends.
func TestAnOldRoundIsNotWaitedFor(t *testing.T) {
	h := recorded(t, newCast(t))
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 1, until(1, true)) // as the survey saw it
		var gone []uint64
		for r := stream.Round(2); r < 3+stream.KeptRounds; r++ {
			put, err := w.broker.PutOnce(t.Context(), name.Round(r), []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			gone = append(gone, put.Standing.Sequence)
		}
		if err := w.broker.Remove(t.Context(), name, stream.Rounds, gone); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- w.new(w.config()).Run(t.Context()) }()
		time.Sleep(time.Hour)
		select {
		case err := <-done:
			if !errors.Is(err, ErrStateRolledBack) || !strings.Contains(err.Error(), "removed") {
				t.Errorf("Run: %v", err)
			}
		default:
			t.Error("the learner waits for the batch of an old round")
		}
	})
}

// TestAnOldRoundPutAgainStopsNobody: the broker shows a round as the newest that an older learner put again, where
// retention had removed it. The learner that went on is started again, and goes on.
func TestAnOldRoundPutAgainStopsNobody(t *testing.T) {
	h := recorded(t, newCast(t))
	for k := uint64(2); k < h.last; k++ {
		for _, announced := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				newest := stream.Round(k)
				if announced {
					newest++
				}
				w := h.at(t, k, func(a stream.Address) bool {
					return until(newest, false)(a) || a.Verb == "batch" && a.Round <= stream.Round(k)
				})
				if !w.broker.Lose(name.Round(1)) {
					t.Fatal("round 1 does not stand")
				}
				w.put(t.Context(), name.Round(1), h.public[name.Round(1)])
				if _, err := w.new(w.config()).Check(t.Context()); err != nil {
					t.Errorf("round %d is committed, %d announced: %v", k, newest, err)
				}
			})
		}
	}
}
