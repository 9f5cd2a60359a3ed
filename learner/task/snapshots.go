package task

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// state declares the history that the learner keeps in addition to its newest state. It is not part of the declaration:
// devices do not agree to it, the task's hash does not depend on it, and it may change at every start of the learner.
type state struct {
	Snapshots *Snapshots `json:"snapshots,omitempty"`
}

// Snapshots declares which models are kept in addition to pinned ones.
type Snapshots struct {
	// Every is the distance between kept models. Default 24h; for a task that ends, 1 round.
	Every Every `json:"every"`
	Keep  int   `json:"keep"` // number of models kept, the newest ones. Default 30
}

// Every is a number of rounds, or a time.
type Every struct {
	Rounds uint64
	Time   time.Duration // where Rounds is 0
}

// Defaults and limits of Snapshots: with the defaults a month can be looked back at, a day at a time, for 240 bytes a
// parameter. The rounds of a task that ends are few, and may take minutes.
const (
	keptEvery    = 24 * time.Hour
	keptModels   = 30
	mostKept     = 1000
	leastApart   = time.Minute
	farthest     = 10 * 365 * 24 * time.Hour
	mostApart    = 1 << 40 // rounds
	everyWording = "a duration from 1m such as 24h, or a whole number of rounds from 1 such as 100 rounds"
)

// MarshalText is the inverse of UnmarshalText.
func (e Every) MarshalText() ([]byte, error) {
	if e.Rounds > 0 {
		return []byte(strconv.FormatUint(e.Rounds, 10) + " rounds"), nil
	}
	return []byte(e.Time.String()), nil
}

// UnmarshalText reads a duration, as time.ParseDuration does, or a number of rounds.
func (e *Every) UnmarshalText(text []byte) error {
	word := strings.TrimSuffix(strings.TrimSuffix(string(text), " rounds"), " round")
	if n, err := strconv.ParseUint(word, 10, 64); err == nil && n > 0 && n <= mostApart {
		*e = Every{Rounds: n}
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < leastApart || d > farthest {
		return errors.New(everyWording)
	}
	*e = Every{Time: d}
	return nil
}

// Kept returns the task's Snapshots with defaults.
func (s *Spec) Kept() Snapshots {
	out := Snapshots{Every: Every{Time: keptEvery}, Keep: keptModels}
	if s.Schedule.Continuous == "" {
		out.Every = Every{Rounds: 1}
	}
	if s.State == nil || s.State.Snapshots == nil {
		return out
	}
	of := *s.State.Snapshots
	or(&of.Every, out.Every)
	or(&of.Keep, out.Keep)
	return of
}

func (k Snapshots) validate() error {
	if k.Keep < 1 || k.Keep > mostKept {
		return refuse("state.snapshots.keep", k.Keep, "a whole number from 1 to %d", mostKept)
	}
	if k.Every.Rounds == 0 && (k.Every.Time < leastApart || k.Every.Time > farthest) || k.Every.Rounds > mostApart {
		return refuse("state.snapshots.every", k.Every.Time, everyWording)
	}
	return nil
}
