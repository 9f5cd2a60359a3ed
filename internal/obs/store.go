package obs

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/state"
)

// Timed is the store with its commits measured.
func (m *Learner) Timed(s state.Store) state.Store { return timedStore{s, m} }

type timedStore struct {
	state.Store
	metrics *Learner
}

func (s timedStore) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry) error {
	begun := time.Now()
	err := s.Store.Commit(ctx, next, entries)
	s.metrics.commit.Observe(time.Since(begun).Seconds())
	return err
}
