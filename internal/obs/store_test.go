package obs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
)

var errBroken = errors.New("broken")

// slowStore fails every commit after two seconds.
type slowStore struct{ state.Store }

func (slowStore) Commit(context.Context, state.Checkpoint, []state.Entry, ...state.Kept) error {
	time.Sleep(2 * time.Second)
	return errBroken
}

// TestCommitsAreTimed, failed ones too, and their errors are the store's.
func TestCommitsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := newLearner(t)
		s := m.Timed(slowStore{})
		for range 3 {
			if err := s.Commit(t.Context(), state.Checkpoint{}, nil); !errors.Is(err, errBroken) {
				t.Errorf("%v: want the store's own error", err)
			}
		}
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "panlearn_learner_commit_duration_seconds" {
				continue
			}
			if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 3 || h.GetSampleSum() != 6 {
				t.Errorf("%d commits took %v s, want 3 in 6 s", h.GetSampleCount(), h.GetSampleSum())
			}
			return
		}
		t.Error("no commit was timed")
	})
}

// TestLastCommit: the time of loading, then the newest round's.
func TestLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := newLearner(t)
		if at := testutil.ToFloat64(m.committed); at != 0 {
			t.Errorf("%v before the task has begun", at)
		}
		begun := float64(time.Now().Unix())
		time.Sleep(10 * time.Second)
		m.recordProgress(service.Progress{})
		time.Sleep(10 * time.Second)
		m.recordAnnouncement(1, 10)
		if at := testutil.ToFloat64(m.committed); at != begun+10 {
			t.Errorf("loaded at %v, want %v", at, begun+10)
		}
		m.recordRound(service.Applied{})
		if at := testutil.ToFloat64(m.committed); at != begun+20 {
			t.Errorf("committed at %v, want %v", at, begun+20)
		}
	})
}
