package helper

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// Defaults and bounds of Config.
const (
	defaultLease = 15 * time.Second
	minLease     = 100 * time.Millisecond
	maxLease     = 10 * time.Minute
	defaultPoll  = 2 * time.Second
	maxWorkers   = 1 << 10
)

// A Folder keeps what outlives the process, for this process alone. Package shuffle/helper/folder has the one that is
// on a disk. Errors that wrap folder.ErrOlder end the helper; calls that fail otherwise are made again.
type Folder interface {
	// Mark returns what was released last of a task, and whether the task was ever joined.
	Mark(task stream.Hash) (m split.HelperMark, joined bool, err error)
	// Join lists a task and a process that joins it; when it returns nil no crash undoes that.
	Join(task stream.Hash, process split.Instance) error
	// Knows reports whether a process was ever listed.
	Knows(process split.Instance) bool
	// Release stores the signed Share of an attempt by HelperMark.Release, and returns the mark in the folder afterwards,
	// which no crash undoes.
	Release(x split.Attempt, signed []byte) (split.HelperMark, error)
}

// Config fixes one helper process.
type Config struct {
	Task     stream.Task
	Records  stream.Records
	Exchange stream.ExchangeServer
	Folder   Folder
	Identity *seal.Identity // of the folder

	// LeaderKey and LearnerKey are the pinned keys of the first operator's stage and of the learner. Both are wanted:
	// nobody is trusted at first use.
	LeaderKey, LearnerKey ed25519.PublicKey

	// Limits are the broker's; a task is refused if its messages exceed them. Zero: not checked.
	Limits stream.Limits
	// Lease is the stage's: calls of the broker time out after a quarter of it. 0: 15 s.
	Lease time.Duration
	// Poll is the interval at which records are read if no wake came, jittered by half. 0: 2 s.
	Poll time.Duration
	// Workers is the number of goroutines that decide reports. 0: GOMAXPROCS.
	Workers int

	Observer Observer
	Logger   *slog.Logger // nil: no log
	// Instance distinguishes this process from every other one, earlier or later. Zero: drawn.
	Instance split.Instance
}

func (c Config) validate() error {
	if _, err := stream.ParseTask(string(c.Task)); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	switch {
	case c.Records == nil || c.Exchange == nil || c.Folder == nil:
		return errors.New("helper: Records, Exchange and Folder: want all three")
	case c.Identity == nil:
		return errors.New("helper: Identity: missing")
	case len(c.LeaderKey) != ed25519.PublicKeySize || len(c.LearnerKey) != ed25519.PublicKeySize:
		return fmt.Errorf("helper: LeaderKey has %d bytes, LearnerKey %d: want %d each, from those who have them: "+
			"two operators trust nothing at first use", len(c.LeaderKey), len(c.LearnerKey), ed25519.PublicKeySize)
	case c.LeaderKey.Equal(c.Identity.Public()):
		return errors.New("helper: the leader's key is the helper's own: want two operators")
	case c.Lease < minLease || c.Lease > maxLease:
		return fmt.Errorf("helper: Lease %v: want %v to %v", c.Lease, minLease, maxLease)
	case c.Poll <= 0 || c.Poll > maxLease:
		return fmt.Errorf("helper: Poll %v: want above 0, at most %v", c.Poll, maxLease)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("helper: Workers %d: want 1 to %d, or 0 for one on each processor", c.Workers, maxWorkers)
	case c.Limits.MaxPayload < 0:
		return fmt.Errorf("helper: Limits.MaxPayload %d: want at least 0", c.Limits.MaxPayload)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, defaultLease)
	c.Poll = cmp.Or(c.Poll, defaultPoll)
	c.Workers = cmp.Or(c.Workers, min(runtime.GOMAXPROCS(0), maxWorkers))
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	for c.Instance == (split.Instance{}) {
		_, _ = rand.Read(c.Instance[:]) // never fails
	}
	return c
}

// New validates cfg. The helper does nothing before Run.
func New(cfg Config) (*Helper, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Helper{Config: cfg, jitter: mrand.New(randomizer.NewEntropy()), kick: make(chan struct{}, 1)}
	h.status = Status{Task: cfg.Task, Phase: "new"}
	return h, nil
}
