package stream

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream/wire"
)

// Prefix is in front of every subject.
const Prefix = "panlearn"

// A Task is the name of a task; it is the second token of its subjects.
type Task string

const maxTaskName = 32

func isTaskName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= maxTaskName
}

// ParseTask checks a task name: 1 to 32 of [a-z0-9_-].
func ParseTask(name string) (Task, error) {
	if !isTaskName(name) {
		return "", fmt.Errorf("task name %s: want 1 to 32 of a-z, 0-9, _ and -", quoted(name))
	}
	return Task(name), nil
}

// quoted returns text that a peer may have sent, quoted and shortened for an error.
func quoted(s string) string {
	const most = 128
	if len(s) > most {
		return fmt.Sprintf("%q and %d more bytes", s[:most], len(s)-most)
	}
	return strconv.Quote(s)
}

func (t Task) subject(tokens ...string) string {
	return Prefix + "." + string(t) + "." + strings.Join(tokens, ".")
}

// Round is the number of a round, from 1. Every round has another one, void rounds too.
type Round uint64

// Attempt is the number of an attempt at a round, from 1.
type Attempt uint64

// Step is the number of a step of the plan, from 1. A void round is repeated with the same step, so that it is at most
// the number of its round.
type Step uint64

func number[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }

// Task returns the subject on which the learner puts the signed Task.
func (t Task) Task() string { return t.subject("task") }

// Round returns the subject on which the learner puts Round r.
func (t Task) Round(r Round) string { return t.subject("round", number(r)) }

// End returns the subject on which the learner puts End.
func (t Task) End() string { return t.subject("end") }

// Stage returns the subject on which the stage puts its identity.
func (t Task) Stage() string { return t.subject("stage") }

// Open returns the subject on which the stage puts Open of attempt a at round r.
func (t Task) Open(r Round, a Attempt) string { return t.subject("open", number(r), number(a)) }

// Claim returns the subject on which an attempt claims round r.
func (t Task) Claim(r Round) string { return t.subject("claim", number(r)) }

// Close returns the subject on which the stage puts Close of attempt a at round r.
func (t Task) Close(r Round, a Attempt) string { return t.subject("close", number(r), number(a)) }

// Lease returns the subject on which stage processes agree on the one that pulls reports.
func (t Task) Lease() string { return t.subject("lease") }

// Report returns the subject to which devices send reports for attempt a at round r.
func (t Task) Report(r Round, a Attempt) string { return t.subject("report", number(r), number(a)) }

// Place returns the subject on which devices request places in attempt a at round r from the stage. No stream holds it.
func (t Task) Place(r Round, a Attempt) string { return t.subject("place", number(r), number(a)) }

// Places matches every place subject.
func (t Task) Places() string { return t.subject("place", "*", "*") }

// Helper returns the subject on which the helper of trust split puts its identity.
func (t Task) Helper() string { return t.subject("helper") }

// Join returns the subject on which the helper puts its part of attempt a at round r.
func (t Task) Join(r Round, a Attempt) string { return t.subject("join", number(r), number(a)) }

// Share returns the subject on which the helper puts its release of round r.
func (t Task) Share(r Round) string { return t.subject("share", number(r)) }

// Prepare returns the subject on which leader and the helper of this instance exchange what they need for Prio3, by
// request and reply. No stream holds it.
func (t Task) Prepare(helper [InstanceSize]byte) string {
	return t.subject("prepare", hex.EncodeToString(helper[:]))
}

// Prepares matches the prepare subjects of all helpers.
func (t Task) Prepares() string { return t.subject("prepare", "*") }

// Batch returns the subject on which the stage puts the outcome of round r.
func (t Task) Batch(r Round) string { return t.subject("batch", number(r)) }

// Spent returns the subject on which the stage puts list k, from 1, of the tokens that were counted in round r.
func (t Task) Spent(r Round, k uint64) string { return t.subject("spent", number(r), number(k)) }

// Rounds matches every Round subject; the newest is a hint only.
func (t Task) Rounds() string { return t.subject("round", "*") }

// Opens matches every Open subject of round r; the newest is a hint only.
func (t Task) Opens(r Round) string { return t.subject("open", number(r), "*") }

// Reports matches every report subject.
func (t Task) Reports() string { return t.subject("report", "*", "*") }

// A Stream is one of the five streams of a task, or one more of a task with two operators, or with tokens; one role
// writes it.
type Stream int

// The streams of a task, by writer: learner, stage, stage, devices, stage, under trust split the helper, and with tokens
// the stage.
const (
	Rounds Stream = iota + 1
	Attempts
	Leases
	Reports
	Batches
	Joins
	Spends
)

var streamNames = map[Stream]string{Rounds: "ROUNDS", Attempts: "ATTEMPTS", Leases: "LEASES", Reports: "REPORTS",
	Batches: "BATCHES", Joins: "HELPER", Spends: "SPENT"}

func (s Stream) String() string { return streamNames[s] }

// Name returns the broker's name of a task's stream.
func (t Task) Name(s Stream) string { return "PANLEARN_" + string(t) + "_" + s.String() }

// Subjects returns the subjects that a stream holds.
func (t Task) Subjects(s Stream) []string {
	switch s {
	case Rounds:
		return []string{t.Task(), t.subject("round", "*"), t.End()}
	case Attempts:
		return []string{t.Stage(), t.subject("open", "*", "*"), t.subject("claim", "*"), t.subject("close", "*", "*")}
	case Leases:
		return []string{t.Lease()}
	case Reports:
		return []string{t.Reports()}
	case Batches:
		return []string{t.subject("batch", "*")}
	case Joins:
		return []string{t.Helper(), t.subject("join", "*", "*"), t.subject("share", "*")}
	case Spends:
		return []string{t.subject("spent", "*", "*")}
	}
	return nil
}

// An Address is a subject taken apart.
type Address struct {
	Task Task
	Verb string // task, round, end, stage, open, claim, close, lease, report, place, batch, helper, join, share, spent,
	// or prepare
	Round   Round              // 0 where the subject has none
	Attempt Attempt            // of spent the number of its list
	Helper  [InstanceSize]byte // instance of prepare, else 0
}

// verbs holds, for each verb, the stream of its subjects, the count of their numbers, and the kind of the signed body.
var verbs = map[string]struct {
	stream  Stream
	numbers int
	kind    wire.Kind
}{
	"task": {Rounds, 0, wire.Kind_KIND_TASK}, "round": {Rounds, 1, wire.Kind_KIND_ROUND},
	"end":   {Rounds, 0, wire.Kind_KIND_END},
	"stage": {Attempts, 0, wire.Kind_KIND_STAGE}, "open": {Attempts, 2, wire.Kind_KIND_OPEN}, "claim": {Attempts, 1,
		wire.Kind_KIND_CLAIM},
	"close": {Attempts, 2, wire.Kind_KIND_CLOSE}, "batch": {Batches, 1, wire.Kind_KIND_BATCH},
	"lease": {stream: Leases}, "report": {stream: Reports, numbers: 2}, "place": {numbers: 2},
	"spent":  {stream: Spends, numbers: 2},
	"helper": {Joins, 0, wire.Kind_KIND_HELPER}, "join": {Joins, 2, wire.Kind_KIND_JOIN},
	"share": {Joins, 1, wire.Kind_KIND_SHARE}, prepare: {numbers: 1, kind: wire.Kind_KIND_EXCHANGE},
}

// prepare is the verb of subjects that have an instance, in hexadecimal, instead of numbers.
const prepare = "prepare"

// ParseSubject takes a concrete subject apart; it is the inverse of Task's methods and accepts nothing else.
func ParseSubject(subject string) (Address, error) {
	bad := func(why string) (Address, error) {
		return Address{}, fmt.Errorf("subject %s: %s", quoted(subject), why)
	}
	tokens := strings.Split(subject, ".")
	if len(tokens) < 3 || tokens[0] != Prefix {
		return bad("not one of ours")
	}
	task, err := ParseTask(tokens[1])
	if err != nil {
		return bad(err.Error())
	}
	verb, ok := verbs[tokens[2]]
	if !ok || len(tokens) != 3+verb.numbers {
		return bad("unknown form")
	}
	if tokens[2] == prepare {
		a := Address{Task: task, Verb: prepare}
		if n, err := hex.Decode(a.Helper[:], []byte(tokens[3][:min(len(tokens[3]), 2*InstanceSize)])); err != nil ||
			n != InstanceSize || a.Task.Prepare(a.Helper) != subject {
			return bad("want an instance in hexadecimal")
		}
		return a, nil
	}
	var numbers [2]uint64
	for i, token := range tokens[3:] {
		n, err := strconv.ParseUint(token, 10, 64)
		if err != nil || n == 0 || number(n) != token {
			return bad("want positive decimal numbers")
		}
		numbers[i] = n
	}
	return Address{Task: task, Verb: tokens[2], Round: Round(numbers[0]), Attempt: Attempt(numbers[1])}, nil
}

// StreamOf returns the task and stream that hold a concrete subject or one of Task's patterns.
func StreamOf(subject string) (Task, Stream, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 3 || tokens[0] != Prefix {
		return "", 0, fmt.Errorf("subject %s: not one of ours", quoted(subject))
	}
	task, err := ParseTask(tokens[1])
	if err != nil {
		return "", 0, fmt.Errorf("subject %s: %w", quoted(subject), err)
	}
	verb, ok := verbs[tokens[2]]
	if !ok || verb.stream == 0 {
		return "", 0, fmt.Errorf("subject %s: unknown form", quoted(subject))
	}
	return task, verb.stream, nil
}

// CheckSubject returns an error unless a record's body has the kind, round and attempt of the subject on which it
// came.
func CheckSubject(subject string, m proto.Message) error {
	a, err := ParseSubject(subject)
	if err != nil {
		return err
	}
	numbers := verbs[a.Verb].numbers
	if a.Verb == prepare {
		numbers = 0
	}
	var round Round
	var attempt Attempt
	if m, ok := m.(interface{ GetRound() uint64 }); ok && numbers > 0 {
		round = Round(m.GetRound())
	}
	if m, ok := m.(interface{ GetAttempt() uint64 }); ok && numbers > 1 {
		attempt = Attempt(m.GetAttempt())
	}
	kind := KindOf(m)
	if kind == wire.Kind_KIND_UNSPECIFIED || kind != verbs[a.Verb].kind || round != a.Round || attempt != a.Attempt {
		return fmt.Errorf("subject %q holds %v of round %d, attempt %d", subject, kind, round, attempt)
	}
	return nil
}
