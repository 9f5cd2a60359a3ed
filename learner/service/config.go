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

	// AcceptRollback lets a learner whose state folder is an older copy apply the batches on the broker again,
	// up to the newest announced round, instead of answering ErrStateRolledBack. Every byte that it writes on
	// the way must equal the stored bytes, so model and ledger become what they were.
	AcceptRollback bool

	// Finish is asked at each round whether the task is to end. Nil never ends it before its plan does.
	Finish *Finisher

	// History writes the records of rounds, and changes the state between them; nil: one of Store, which nobody else uses.
	History *History
	// Snapshots decides which models are kept.
	Snapshots Retention

	Observer Observer      // nil observes nothing
	Logger   *slog.Logger  // nil discards
	Poll     time.Duration // longest time between looks at the broker where it does not wake; default 1 s
	// Rest is the longest time between looks for a batch while the broker wakes: the time grows up to it while nothing
	// comes. Default 15 s.
	Rest time.Duration
	// Patience bounds the search for a record that must exist, before it counts as lost: a replica that lags
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

// An Observer is told what happened, for metrics and progress. Every func may be nil, and must return quickly.
type Observer struct {
	Resumed   func(Progress)             // what is committed: at the start, and after somebody changed it between two rounds
	Announced func(round, cohort uint64) // the round is stored on the broker
	Applied   func(Applied)              // a round was committed
	Lost      func(subject string)       // a record that stood at the broker is gone
	// Trouble is told why calls of the broker begin to fail, or fail for another reason; and "" when they work again.
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
	Waited       time.Duration // of that, until the batch was there
}
