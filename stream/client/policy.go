package client

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
)

// DefaultMaxRefunds is how many more rounds an uncounted event may join, unless the policy says otherwise.
const DefaultMaxRefunds = 8

// A Policy is what a device agrees to. The zero Policy takes every task whose own plan keeps its own promises, under the
// device's own accounting, pins the task that it sees first, and refuses reports that are not encrypted.
type Policy struct {
	// Tasks are the names of the tasks that the device takes part in; empty for every name.
	Tasks []string `yaml:"tasks"`

	// MaxEpsilon bounds what one task may cost one user, as the device computes it; 0 takes the task's declared budget.
	MaxEpsilon float64 `yaml:"max_epsilon"`
	// MaxDelta bounds the delta at which the device computes epsilon: it takes the smaller of this and the plan's. 0 takes
	// the plan's.
	MaxDelta float64 `yaml:"max_delta"`
	// HonestFraction is the share of the users of a round whose noise the device relies on. A smaller share that
	// the plan itself claims to need takes its place; unset is the plan's.
	HonestFraction accounting.Fraction `yaml:"honest_fraction"`
	// MinCohort is the smallest minimum cohort of a round that is accepted.
	MinCohort uint64 `yaml:"min_cohort"`

	// TaskHash, LearnerKey and StageKey pin the task and the identities; empty is not pinned.
	TaskHash   Fingerprint `yaml:"task_hash"`
	LearnerKey Fingerprint `yaml:"learner_key"`
	StageKey   Fingerprint `yaml:"stage_key"`
	// ForbidFirstUse refuses a task that neither the policy nor the store pins. Without it, the first task that is seen
	// under a name is pinned: whoever controls the broker at that moment chooses it.
	ForbidFirstUse bool `yaml:"forbid_first_use"`

	// AllowPlaintext accepts a task whose reports are not encrypted: whoever operates the broker then reads every report.
	AllowPlaintext bool `yaml:"allow_plaintext"`

	// MaxRefunds is how many more rounds an uncounted event may join; unset is DefaultMaxRefunds. An acknowledgement
	// is the broker's word: a broker that lies makes a counted event take part in at most 1 + MaxRefunds rounds, at the
	// price of as many rounds (docs/privacy.md). 0 where the broker is not trusted not to.
	MaxRefunds *uint32 `yaml:"max_refunds"`
}

// A Fingerprint is a SHA-256 or an Ed25519 public key: 32 bytes, in hexadecimal where it is text. Empty is none.
type Fingerprint []byte

// String is hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f) }

// MarshalText is hexadecimal.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads 64 hexadecimal digits, or nothing.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || (len(b) != 0 && len(b) != stream.HashSize) {
		return fmt.Errorf("want %d hexadecimal digits", 2*stream.HashSize)
	}
	*f = b
	return nil
}

// accepts says whether a value is the pinned one, or none is pinned.
func (f Fingerprint) accepts(value []byte) bool { return len(f) == 0 || bytes.Equal(f, value) }

// ParsePolicy reads a policy file: YAML with the keys of Policy. Unknown keys are refused.
func ParsePolicy(data []byte) (Policy, error) {
	var p Policy
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p)
	if err != nil && !errors.Is(err, io.EOF) { // an empty file is the zero policy
		return Policy{}, fmt.Errorf("policy: %w", err)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// Validate names the first field that is out of range.
func (p Policy) Validate() error {
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("policy: %s is %v: want %s", field, value, want)
	}
	for _, name := range p.Tasks {
		if _, err := stream.ParseTask(name); err != nil {
			return fmt.Errorf("policy: tasks: %w", err)
		}
	}
	if p.MaxEpsilon != 0 && !(p.MaxEpsilon > 0 && p.MaxEpsilon <= accounting.MaxEpsilon) {
		return bad("max_epsilon", p.MaxEpsilon, fmt.Sprintf("a number in (0, %v], or 0 for the task's own budget", accounting.MaxEpsilon))
	}
	if math.IsNaN(p.MaxDelta) || p.MaxDelta < 0 || p.MaxDelta >= 1 {
		return bad("max_delta", p.MaxDelta, "a number in (0, 1), or 0 for the plan's")
	}
	for _, pin := range []struct {
		field string
		value Fingerprint
	}{{"task_hash", p.TaskHash}, {"learner_key", p.LearnerKey}, {"stage_key", p.StageKey}} {
		if n := len(pin.value); n != 0 && n != stream.HashSize {
			return bad(pin.field, pin.value, fmt.Sprintf("%d bytes", stream.HashSize))
		}
	}
	return nil
}

func (p Policy) maxRefunds() uint32 {
	if p.MaxRefunds == nil {
		return DefaultMaxRefunds
	}
	return *p.MaxRefunds
}

func (p Policy) allows(task string) bool { return len(p.Tasks) == 0 || slices.Contains(p.Tasks, task) }
