package consent

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Defaults of a Policy.
const (
	DefaultMaxRefunds  = 8  // further rounds that an uncounted event may join, if it can pay for them
	defaultMaxReports  = 64 // reports that are made of one event, over all rounds and attempts
	defaultMaxAttempts = 8  // attempts at one round that one event is sent to under trust split
)

// A Policy decides which tasks a device agrees to. The zero Policy takes every task whose own plan keeps its own
// promises, under the device's own accounting, pins the task that it sees first, and refuses reports that are not
// encrypted. [ParsePolicy] reads one from a file, whose keys are the names of the fields in lower case:
// max_total_epsilon.
type Policy struct {
	// Tasks are the names of the tasks that the device takes part in; empty for every name.
	Tasks []string
	// TaskHashes are the task hashes that the device takes part in; empty for every one. The policy pins each of these
	// hashes.
	TaskHashes []Fingerprint

	// MaxEpsilon bounds what one task may cost one user, in all rounds that an event of his joins, as the device
	// computes it; 0 takes the task's declared budget. An event that no batch holds joins another round only if both
	// together are within it: a plan uses up its budget, so that takes a larger MaxEpsilon.
	MaxEpsilon float64
	// MaxDelta bounds the delta at which the device computes epsilon: it takes the smaller of this and the plan's. 0
	// takes the plan's.
	MaxDelta float64
	// MaxSiloEpsilon bounds what one task may cost all rows of a silo together, replaced by as many others, at the same
	// delta: a silo draws more noise for that than for its rows one by one. A task without a computed bound is refused. 0
	// is no bound.
	MaxSiloEpsilon float64
	// MaxTotalEpsilon and MaxTotalDelta bound what all tasks of the ledger together may cost one user within Period,
	// added up (basic composition, which holds for parameters chosen adaptively too); 0 is no bound. They need a
	// ledger.
	MaxTotalEpsilon float64
	MaxTotalDelta   float64
	// Period is the length of the window that the totals are taken over: any span of that length, not a calendar's. 0 is
	// for ever. Time is the device's clock; when that is set back, the ledger's time stops until the clock catches up.
	Period time.Duration

	// HonestFraction is the share of the users of a round whose noise the device relies on. A smaller share that
	// the plan itself claims to need takes its place; unset is the plan's.
	HonestFraction accounting.Fraction
	// MaxRoundsPerUser bounds the rounds of one task in which the device reports for one user. Unset sets no bound: the
	// cost of all of them together has to be within MaxEpsilon, or the task's budget, in any case. 1 refuses interactive
	// phases.
	MaxRoundsPerUser *uint32
	// MinCohort is the smallest minimum cohort of a round that is accepted.
	MinCohort uint64
	// OwnShare is the share of the users that a round's noise is planned for who must report before it is released,
	// where reports carry noise and cohorts adapt: the stage draws the rest of that noise. 0 accepts every share.
	OwnShare float64

	// TaskHash, LearnerKey, StageKey and HelperKey pin the task and the identities; empty is not pinned. A task of two
	// operators is taken only if StageKey (the leader's) and HelperKey are pinned, or the task hash is, by somebody who
	// checked it against both: see Pins.
	TaskHash   Fingerprint
	LearnerKey Fingerprint
	StageKey   Fingerprint
	HelperKey  Fingerprint
	// ForbidFirstUse refuses a task that neither the policy nor the store pins. Without it, the first task that is
	// seen under a name is pinned: a party that controls the broker at that moment chooses it.
	ForbidFirstUse bool

	// ForbidOneOperator refuses a task of two operators that declares that one party runs both: together they read every
	// report. What is not declared nobody can check.
	ForbidOneOperator bool

	// AllowPlaintext accepts a task whose reports are not encrypted: the operator of the broker can then read
	// every report.
	AllowPlaintext bool

	// MaxRefunds bounds the further rounds that an uncounted event may join; unset is DefaultMaxRefunds. It caps
	// what MaxEpsilon allows: that an event is uncounted is the broker's word, so each further round is charged
	// beside those before (Cost.Epsilon). Under trust local no published event is uncounted, and MaxRefunds
	// has no effect. The rounds of one interactive phase are charged together and need no refund: there MaxRefunds
	// counts phases.
	MaxRefunds *uint32
	// MaxReports bounds the reports that are made of one event, one for each attempt at each round that it joined;
	// unset is defaultMaxReports. Repeating a publish that was not answered makes no further report, and each
	// round of an interactive phase after the first allows one more. All attempts at one round of trust split count as
	// one.
	MaxReports *uint32
	// MaxAttempts bounds the attempts at one round that an event is sent to under trust split; unset is
	// defaultMaxAttempts. After the last one the event waits for the round's Close. Under another trust it has no effect.
	MaxAttempts *uint32
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
		return bad("max_epsilon", p.MaxEpsilon, fmt.Sprintf("a number in (0, %v], or 0 for the task's own budget",
			accounting.MaxEpsilon))
	}
	if p.MaxSiloEpsilon != 0 && !(p.MaxSiloEpsilon > 0 && p.MaxSiloEpsilon <= accounting.MaxEpsilon) {
		return bad("max_silo_epsilon", p.MaxSiloEpsilon, fmt.Sprintf("a number in (0, %v], or 0 for no bound",
			accounting.MaxEpsilon))
	}
	if math.IsNaN(p.MaxDelta) || p.MaxDelta < 0 || p.MaxDelta >= 1 {
		return bad("max_delta", p.MaxDelta, "a number in (0, 1), or 0 for the plan's")
	}
	if p.MaxTotalEpsilon != 0 && !(p.MaxTotalEpsilon > 0 && p.MaxTotalEpsilon <= math.MaxFloat64) {
		return bad("max_total_epsilon", p.MaxTotalEpsilon, "a number above 0, or 0 for no bound")
	}
	if math.IsNaN(p.MaxTotalDelta) || p.MaxTotalDelta < 0 || p.MaxTotalDelta >= 1 {
		return bad("max_total_delta", p.MaxTotalDelta, "a number in (0, 1), or 0 for no bound")
	}
	if p.Period != 0 && (p.Period < time.Second || !p.HasTotals()) {
		return bad("period", p.Period, "at least 1s, with max_total_epsilon or max_total_delta; or 0 for ever")
	}
	if !(p.OwnShare >= 0 && p.OwnShare <= 1) {
		return bad("own_share", p.OwnShare, "a number in [0, 1]")
	}
	if p.MaxReports != nil && *p.MaxReports == 0 {
		return bad("max_reports", 0, "at least 1")
	}
	if p.MaxAttempts != nil && *p.MaxAttempts == 0 {
		return bad("max_attempts", 0, "at least 1")
	}
	if p.MaxRoundsPerUser != nil && *p.MaxRoundsPerUser == 0 {
		return bad("max_rounds_per_user", 0, "at least 1")
	}
	for i, hash := range p.TaskHashes {
		if len(hash) != stream.HashSize {
			return bad(fmt.Sprintf("task_hashes[%d]", i), hash, fmt.Sprintf("%d bytes", stream.HashSize))
		}
	}
	for _, pin := range []struct {
		field string
		value Fingerprint
	}{{"task_hash", p.TaskHash}, {"learner_key", p.LearnerKey}, {"stage_key", p.StageKey}, {"helper_key", p.HelperKey}} {
		if n := len(pin.value); n != 0 && n != stream.HashSize {
			return bad(pin.field, pin.value, fmt.Sprintf("%d bytes", stream.HashSize))
		}
	}
	return nil
}

// Refunds returns MaxRefunds, or its default.
func (p Policy) Refunds() uint32 {
	if p.MaxRefunds == nil {
		return DefaultMaxRefunds
	}
	return *p.MaxRefunds
}

// Reports returns MaxReports, or its default.
func (p Policy) Reports() uint32 {
	if p.MaxReports == nil {
		return defaultMaxReports
	}
	return *p.MaxReports
}

// attempts returns MaxAttempts, or its default.
func (p Policy) attempts() uint32 {
	if p.MaxAttempts == nil {
		return defaultMaxAttempts
	}
	return *p.MaxAttempts
}

func (p Policy) maxRoundsPerUser() uint32 {
	if p.MaxRoundsPerUser == nil {
		return math.MaxUint32
	}
	return *p.MaxRoundsPerUser
}

// HasTotals reports whether the policy bounds the cost of all tasks together.
func (p Policy) HasTotals() bool { return p.MaxTotalEpsilon > 0 || p.MaxTotalDelta > 0 }

// allowsHash reports whether the policy lists a task hash, or lists none at all.
func (p Policy) allowsHash(hash stream.Hash) bool {
	return len(p.TaskHashes) == 0 || slices.ContainsFunc(p.TaskHashes,
		func(f Fingerprint) bool { return f.accepts(hash[:]) })
}

// Pins reports whether the policy itself vouches for a task that it lets through: by the task's hash, or by the keys of
// those whom privacy rests on. These are learner and stage; under trust split they are the two operators, and the
// learner, who is an adversary there, vouches for neither.
func (p Policy) Pins(t *wire.Task) bool {
	switch {
	case len(p.TaskHash) > 0 || len(p.TaskHashes) > 0:
		return true
	case manifest.HasOperators(t.GetPlan()):
		return len(p.StageKey) > 0 && len(p.HelperKey) > 0
	}
	return len(p.LearnerKey) > 0 && len(p.StageKey) > 0
}

// WithOperators returns the policy with the keys of both operators of a task file pinned, where the policy does not pin
// others: the owner of a file that names them has chosen them. The file may be nil.
func (p Policy) WithOperators(spec *task.Spec) Policy {
	if spec == nil || spec.Privacy.Operators == nil {
		return p
	}
	leader, helper, ok := spec.Privacy.Operators.Keys()
	if !ok {
		return p
	}
	if len(p.StageKey) == 0 {
		p.StageKey = Fingerprint(leader)
	}
	if len(p.HelperKey) == 0 {
		p.HelperKey = Fingerprint(helper)
	}
	return p
}

// CheckPin refuses a task with another hash than the one that a store pins. If none is pinned (nil) and ForbidFirstUse
// is set, it refuses a task that the policy does not vouch for. It always refuses a task of two operators that the
// policy does not vouch for: the hash that a store pinned at first sight was the learner's choice.
func (p Policy) CheckPin(t *wire.Task, hash stream.Hash, pinned *stream.Hash) error {
	switch {
	case pinned != nil && *pinned != hash:
		return Refuse("task hash", fmt.Sprintf("%x", hash), "%x, which this state folder pins", *pinned)
	case p.Pins(t):
		return nil
	case manifest.HasOperators(t.GetPlan()):
		return Refuse("pin of both operators", "none",
			"stage_key and helper_key in the policy, or a task_hash that was checked against both")
	case pinned == nil && p.ForbidFirstUse:
		return Refuse("task hash", fmt.Sprintf("%x, pinned by nobody", hash),
			"task_hash, task_hashes, or learner_key and stage_key, in the policy")
	}
	return nil
}

func (p Policy) allows(task string) bool { return len(p.Tasks) == 0 || slices.Contains(p.Tasks, task) }

// A Fingerprint is a SHA-256 or an Ed25519 public key: 32 bytes, in hexadecimal where it is text. Empty is none.
type Fingerprint []byte

// String returns the fingerprint in hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f) }

// MarshalText returns the fingerprint in hexadecimal.
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

// accepts reports whether a value equals the pinned one, or none is pinned.
func (f Fingerprint) accepts(value []byte) bool { return len(f) == 0 || bytes.Equal(f, value) }
