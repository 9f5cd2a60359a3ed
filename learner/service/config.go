package service

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Config configures a Service. Every field without a default is required.
type Config struct {
	Task     stream.Task
	Records  stream.Records
	Store    state.Store
	Identity *seal.Identity // signs Task, Round and End; the same over the task's life

	// StageKey pins the stage. Nil trusts the key that the stage put on its subject first, which the signed Task
	// then fixes for the task's life.
	StageKey ed25519.PublicKey
	// Operators marks a task of trust split, where StageKey has to be pinned.
	Operators bool

	// Prepare builds the Task body of a new task: declaration, plan and suite. The service fills in keys, life, name and
	// version. It is not called when the store already holds a task.
	Prepare func() (*wire.Task, error)

	// AcceptRollback lets a learner whose state folder is an older copy apply the batches on the broker again, up to the
	// newest announced round, instead of returning ErrStateRolledBack. Every byte that it writes on the way must equal the
	// stored bytes, so model and ledger become what they were.
	AcceptRollback bool

	// Finish decides at each round whether to end the task early. Nil: only the plan ends it.
	Finish *Finisher

	// History writes the records of rounds, and changes the state between them; nil: a new one of Store.
	History *History
	// Snapshots decides which models are kept.
	Snapshots Retention

	Observer Observer      // nil observes nothing
	Logger   *slog.Logger  // nil discards
	Poll     time.Duration // longest time between reads of the broker if it sends no wake-ups; default 1 s
	// Rest is the longest time between reads for a batch while the broker sends wake-ups: the time grows up to it while no
	// batch comes. Default 15 s.
	Rest time.Duration
	// Patience is the time for which a record that must exist may be missing before it counts as lost: a lagging replica
	// may have answered. Default 15 s.
	Patience time.Duration
}

func (c *Config) validate() error {
	missing := func(field string) error { return fmt.Errorf("learner service: %s: missing", field) }
	var err error
	if _, e := stream.ParseTask(string(c.Task)); e != nil {
		err = errors.Join(err, fmt.Errorf("learner service: %w", e))
	}
	if c.Records == nil {
		err = errors.Join(err, missing("Records"))
	}
	if c.Store == nil {
		err = errors.Join(err, missing("Store"))
	}
	if c.Identity == nil {
		err = errors.Join(err, missing("Identity"))
	}
	if c.Prepare == nil {
		err = errors.Join(err, missing("Prepare"))
	}
	if c.StageKey != nil && len(c.StageKey) != ed25519.PublicKeySize {
		err = errors.Join(err, fmt.Errorf("learner service: StageKey has %d bytes: want %d", len(c.StageKey),
			ed25519.PublicKeySize))
	}
	for field, d := range map[string]*time.Duration{"Poll": &c.Poll, "Rest": &c.Rest, "Patience": &c.Patience} {
		if *d < 0 {
			err = errors.Join(err, fmt.Errorf("learner service: %s %v: want a positive duration", field, *d))
		}
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Rest == 0 {
		c.Rest = 15 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = patience
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("task", c.Task)
	if c.Finish == nil {
		c.Finish = NewFinisher()
	}
	if c.History == nil && c.Store != nil {
		c.History = NewHistory(c.Store)
	}
	return err
}

// An Observer receives events for metrics and progress. Every func may be nil, and must return quickly.
type Observer struct {
	Resumed   func(Progress)             // the committed state: at the start, and after a change between two rounds
	Announced func(round, cohort uint64) // the round is stored on the broker
	Applied   func(Applied)              // a round was committed
	Lost      func(subject string)       // a record that was on the broker is gone
	// Trouble receives the cause when calls to the broker begin to fail or fail for another cause, and "" when they
	// succeed again.
	Trouble func(cause string)
}

// Applied is one committed round. Everything in it is public.
type Applied struct {
	Progress
	Attempt      uint64
	Cohort       uint64 // as announced
	BatchUsers   uint64 // as counted
	Void         bool
	NoiseStd     float64 // of one coordinate of the mean gradient: privacy noise
	RoundingStd  float64 // of one coordinate of the mean gradient: stochastic rounding, worst case
	GradientNorm float64 // of the noisy mean gradient; 0 in a round of second moments
	Rejects      map[string]uint64
	Took         time.Duration // from announcement to commit
}
