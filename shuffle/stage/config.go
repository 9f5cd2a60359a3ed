package stage

import (
	"cmp"
	"crypto/ed25519"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// Defaults of Config.
const (
	DefaultLeaseTTL = 15 * time.Second
	defaultPoll     = 2 * time.Second
	defaultPrefetch = 256
	// maxPanPrefetch bounds Prefetch under the trusts with floors: an intruder who looks into the stage's memory finds
	// the key of the attempt, and so can read the sealed reports beside it. No floor protects those.
	maxPanPrefetch = 4
)

// Bounds of Config.
const (
	MinLeaseTTL = 100 * time.Millisecond
	MaxLeaseTTL = 10 * time.Minute
	maxPrefetch = 1 << 16
	MaxWorkers  = 1 << 10
)

// Config fixes one stage process.
type Config struct {
	Task    stream.Task
	Records stream.Records
	Reports stream.ReportReader
	// PlaceServer brings requests for places. nil: attempts open without places, and devices join as they can.
	PlaceServer stream.PlaceServer
	Identity    *seal.Identity // the same for all stage processes of the task
	// LearnerKey is the learner's pinned key. Empty: the key that Task names is trusted at first use.
	LearnerKey ed25519.PublicKey
	// Limits are the broker's; a task is refused if a batch or a report of it exceeds them. Zero: not checked.
	Limits stream.Limits

	// LeaseTTL is the time for which a silent stage keeps others waiting; a claim without a batch makes the round void
	// after twice that. Calls of the broker time out after a quarter. 0: 15 s.
	LeaseTTL time.Duration
	// Poll is the interval at which records are read if no wake came, jittered by half; it also bounds one Fetch. 0: 2
	// s.
	Poll time.Duration
	// Prefetch bounds the sealed report messages in memory. 0: 256. Under the trusts pan and shuffle+pan it is at most
	// 4.
	Prefetch int

	// Workers is the number of goroutines that open sealed reports. Under the trusts with floors it is 1: one report
	// is open at a time. 0: GOMAXPROCS.
	Workers int

	// Drain is the time for which Run goes on with an attempt that is open when its context ends, so that its users
	// need not be asked again, or, under the trusts with floors, do not drop out. It opens no other attempt. 0: the
	// attempt is dropped at once.
	Drain time.Duration

	// Marks keep a round that was claimed once from being claimed by another process that shares them, and from being
	// opened again, whatever the broker forgets. nil: the process remembers its own claims as long as it lives.
	Marks Marks

	// Leader holds what trust split needs besides. Tasks of that trust are refused without it; others do not use it.
	Leader Leader

	Observer Observer
	Logger   *slog.Logger // nil: no log
	// Instance distinguishes the life of this process from every other one. Zero: drawn.
	Instance [stream.InstanceSize]byte
	// Entropy makes the generators of floors and top-ups. nil is the only right value in production: a generator
	// that can be made again reveals the noise.
	Entropy func() rand.Source
}

// validate names the first field that cannot be used.
func (c Config) validate() error {
	if _, err := stream.ParseTask(string(c.Task)); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	switch {
	case c.Records == nil || c.Reports == nil:
		return errors.New("stage: Records and Reports: want both")
	case c.Identity == nil:
		return errors.New("stage: Identity: missing")
	case len(c.LearnerKey) != 0 && len(c.LearnerKey) != ed25519.PublicKeySize:
		return fmt.Errorf("stage: LearnerKey has %d bytes: want %d, or none to trust at first use", len(c.LearnerKey),
			ed25519.PublicKeySize)
	case c.LeaseTTL < MinLeaseTTL || c.LeaseTTL > MaxLeaseTTL:
		return fmt.Errorf("stage: LeaseTTL %v: want %v to %v", c.LeaseTTL, MinLeaseTTL, MaxLeaseTTL)
	case c.Poll <= 0 || c.Poll > MaxLeaseTTL:
		return fmt.Errorf("stage: Poll %v: want above 0, at most %v", c.Poll, MaxLeaseTTL)
	case c.Prefetch < 0 || c.Prefetch > maxPrefetch:
		return fmt.Errorf("stage: Prefetch %d: want 1 to %d, or 0 for the default of the task's trust", c.Prefetch,
			maxPrefetch)
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return fmt.Errorf("stage: Workers %d: want 1 to %d, or 0 for one on each processor", c.Workers, MaxWorkers)
	case c.Drain < 0:
		return fmt.Errorf("stage: Drain %v: want at least 0", c.Drain)
	case c.Limits.MaxPayload < 0:
		return fmt.Errorf("stage: Limits.MaxPayload %d: want at least 0", c.Limits.MaxPayload)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.LeaseTTL = cmp.Or(c.LeaseTTL, DefaultLeaseTTL)
	c.Poll = cmp.Or(c.Poll, defaultPoll)
	c.Workers = cmp.Or(c.Workers, min(runtime.GOMAXPROCS(0), MaxWorkers))
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Marks == nil {
		c.Marks = &ownMarks{}
	}
	for c.Instance == [stream.InstanceSize]byte{} {
		_, _ = crand.Read(c.Instance[:]) // never fails
	}
	return c
}

// New validates cfg. The stage does nothing before Run.
func New(cfg Config) (*Stage, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &environment{Config: cfg, jitter: rand.New(randomizer.NewEntropy()), places: new(places)}
	e.lease = newLease(cfg.Task.Lease(), cfg.Instance, cfg.LeaseTTL, cfg.Poll)
	t := &troubles{log: cfg.Logger}
	s := &Stage{environment: e, troubles: t, fetcher: fetcher{queue: cfg.Reports},
		keeper: leaseKeeper{environment: e, troubles: t}, queue: queueWatch{environment: e}, desk: placeDesk{environment: e},
		dialer: dialer{environment: e}}
	s.do = s.perform
	s.status = Status{Task: cfg.Task, Phase: "new"}
	return s, nil
}
