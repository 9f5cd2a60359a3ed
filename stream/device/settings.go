package device

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Defaults of Settings.
const (
	defaultMaxInFlight = 4096
	DefaultPoll        = 2 * time.Second
	DefaultMaxPoll     = 5 * time.Minute
	defaultTimeout     = 10 * time.Second
	DefaultCloseWait   = 30 * time.Second

	DefaultMaxBlockRows = 50_000_000
)

// Settings configure a Device that [New] makes: what commands and gateways set beside what [Open] does by itself. Task,
// Transport and Store are required.
type Settings struct {
	Task stream.Task
	// Transport reaches the broker. A task is refused if its reports exceed the transport's limits, where those are known.
	Transport stream.Transport
	Store     participation.Store // of this task alone
	// Ledger covers all tasks that the same users take part in; nil keeps none, and a policy with totals is refused.
	Ledger ledger.Ledger
	// Grants asks the issuer of a task whose reports have tokens, and GrantStore keeps what was drawn and signed, of this
	// task alone. Both or none: without them such tasks are refused.
	Grants     grants.Source
	GrantStore grants.Store
	// UserKeys declares that a key names the same user in every task: EventKey of a user's id. Then each user has
	// an account in the ledger, and a user whose total is spent is Refused alone. Otherwise all events share one
	// account, charged once for each task that any of them took part in: a bound for every user, whichever events
	// are theirs. UserKeys is for Publish alone: Run refuses it, because its keys are rows. Tasks that protect
	// people (privacy.unit user) have such keys anyway.
	UserKeys bool

	// Policy decides which tasks and rounds the device agrees to; see consent.Policy for its zero value.
	Policy consent.Policy
	// Spec is the declaration that the operator has at hand; the announced task must declare the same, and both operators
	// whom it names are pinned. Nil: any that the policy takes.
	Spec *task.Spec
	// Rows declares that events come from Run. Where the task declares events.key, rows are known by that key and
	// not by their place in a source.
	Rows bool
	// Source names where the rows of Run come from, such as the absolute path of a file, so that a second run knows
	// them. Rows that name their own file are known by that file, and Source is then the pattern that found it.
	// The store is pinned to it, or with keys to the name of their column. Empty without keys is a stream whose rows
	// are new in every run: a row of an earlier run must never be seen again.
	Source string

	// Submits declares that events come from Submit: ticks are made for what parsing one takes at most, and the store is
	// pinned to events under keys of their own. It goes with neither Rows nor Source nor Work.
	Submits bool

	// Work makes the most that an event's function (PublishFunc, PublishBlockFunc) does, for a task that was agreed
	// to: ticks are made for events that take as long. Nil: no more than mapping the rows of a report.
	Work func(*consent.Agreement) (func(), error)

	// Shuffle has Run take rows in a random order, one of this many at a time, which are held for that; 0, the
	// default, and 1 in theirs.
	Shuffle int

	// MaxBlockRows bounds the size of a block of rows: its rows times the values that a row is declared to have at
	// most. Default 5e7. It is compared with the declaration alone, never with actual rows.
	MaxBlockRows uint64

	Bundle      int // users in one message, 1 to the task's max_bundle; default 1
	MaxInFlight int // most events published without a reply yet, while the broker replies quickly; default 4096
	// Poll is the mean time between retries of a publish, and the shortest between reads that nothing woke; default 2s.
	Poll time.Duration
	// MaxPoll is the longest mean time between reads that nothing woke, and the longest over which the devices of a
	// task spread what all of them do; default 5m, and at least Poll. While events wait, the time between reads is at
	// most twice the task's deadline.
	MaxPoll time.Duration
	// Timeout bounds one read and one publish; default 10s.
	Timeout time.Duration
	// CloseWait bounds the wait for a missing Close after the task's End; default 30s.
	CloseWait time.Duration

	Logger   *slog.Logger   // default: none
	Progress func(Progress) // called on every change, from one goroutine; must not block

	// Entropy replaces the randomizer's entropy. It is for simulations alone: anything but nil voids the guarantee.
	Entropy rand.Source
}

// Progress describes a client's newest round and its settled events so far.
type Progress struct {
	Round            stream.Round   // 0 before the first
	Attempt          stream.Attempt // 0 before the first
	Joined, Cohort   uint64         // events of this client in the round, and how many the round takes of all clients
	InFlight         int            // events published without a reply yet
	Over             bool           // the task has ended
	RefusedPublishes uint64         // messages that the broker refused; every try of a report counts
	Trouble          string         // why the broker takes no reports, in words; empty while it does
	Troubled         time.Time      // since when; zero without Trouble
	// newest round known that the broker does not show, or shows another for: it is older; 0: none
	Older      stream.Round
	OlderSince time.Time // when that was first seen; zero without Older
	// by which our clock was found ahead of the broker's, so that nobody is charged; 0: it was not
	Ahead      time.Duration
	AheadSince time.Time // when that was found; zero without Ahead
	Summary    Summary
	Standing   // what it waits for
}

func (c Settings) withDefaults() (Settings, error) {
	if _, err := stream.ParseTask(string(c.Task)); err != nil {
		return c, err
	}
	if c.Transport == nil || c.Store == nil {
		return c, errors.New("client: Transport and Store: want both")
	}
	if c.Submits && (c.Rows || c.Source != "" || c.Work != nil) {
		return c, errors.New("client: Submits: want no Rows, Source or Work beside it: events come under keys of their own")
	}
	if (c.Grants == nil) != (c.GrantStore == nil) {
		return c, errors.New("client: Grants and GrantStore: want both, or none")
	}
	if err := c.Policy.Validate(); err != nil {
		return c, err
	}
	c.Policy = c.Policy.WithOperators(c.Spec)
	if c.Policy.HasTotals() && c.Ledger == nil {
		return c, errors.New("client: Ledger: the policy bounds the total over tasks, which only a ledger knows")
	}
	for _, n := range []struct {
		name     string
		value    *int
		fallback int
		most     int
	}{{"Bundle", &c.Bundle, 1, stream.MaxBundle}, {"MaxInFlight", &c.MaxInFlight, defaultMaxInFlight, 1 << 20}} {
		if *n.value == 0 {
			*n.value = n.fallback
		}
		if *n.value < 1 || *n.value > n.most {
			return c, fmt.Errorf("client: %s %d: want 1 to %d", n.name, *n.value, n.most)
		}
	}
	if c.Shuffle < 0 || c.Shuffle > task.MaxShuffle {
		return c, fmt.Errorf("client: Shuffle %d: want 0 to %d", c.Shuffle, task.MaxShuffle)
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{{"Poll", &c.Poll, DefaultPoll}, {"MaxPoll", &c.MaxPoll, max(DefaultMaxPoll, c.Poll)},
		{"Timeout", &c.Timeout, defaultTimeout}, {"CloseWait", &c.CloseWait, DefaultCloseWait}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
		if *d.value < time.Millisecond {
			return c, fmt.Errorf("client: %s %v: want at least 1ms", d.name, *d.value)
		}
	}
	if c.MaxPoll < c.Poll {
		return c, fmt.Errorf("client: MaxPoll %v: want at least Poll, %v", c.MaxPoll, c.Poll)
	}
	c.MaxBlockRows = cmp.Or(c.MaxBlockRows, DefaultMaxBlockRows)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}
