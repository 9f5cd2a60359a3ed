package device

import (
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// decisionsFile is docs/vectors/decisions.json.
type decisionsFile struct {
	Events []eventVector `json:"events"`
	// Operators are events of trust split, whose attempts are of two operators.
	Operators []eventVector `json:"operators"`
	Joins     []joinVector  `json:"joins"`
	Turns     []turnVector  `json:"turns"`
	Clocks    []clockVector `json:"clocks"`
}

// eventVector holds what one event goes through, and its state after each step.
type eventVector struct {
	Name  string      `json:"name"`
	Steps []eventStep `json:"steps"`
}

// eventStep is one of: joining a round; a publish, and the answer to one; a Close, or that none will come.
type eventStep struct {
	Join    *joinStep   `json:"join,omitempty"`
	Send    *sendStep   `json:"send,omitempty"`
	Answer  *answerStep `json:"answer,omitempty"`
	Close   *closeStep  `json:"close,omitempty"`
	Abandon bool        `json:"abandon,omitempty"`
	Not     bool        `json:"forbidden,omitempty"` // the step must not be taken, and changes nothing
	State   string      `json:"state"`
	// Participations counts those that the event is charged for, all rounds of an interactive phase as one.
	Participations uint32 `json:"participations"`
	Reports        uint32 `json:"reports,omitempty"` // of trust split: those that were made of the event
}

type joinStep struct {
	Round    uint64 `json:"round"`
	Step     uint64 `json:"step"`
	Phase    uint32 `json:"phase"`
	Most     uint32 `json:"rounds_per_user"`
	Final    bool   `json:"final,omitempty"`
	Secret   string `json:"secret,omitempty"` // of the draw, under trust split
	Manifest string `json:"manifest_hash"`
}

type sendStep struct {
	Attempt uint64 `json:"attempt"`
	Open    string `json:"open"`           // hash of the body of the Open
	Join    string `json:"join,omitempty"` // hash of the Join, under trust split; Open is then of the record
	Floors  bool   `json:"floors,omitempty"`
	Most    uint32 `json:"max_attempts,omitempty"` // under trust split
}

type answerStep struct {
	Attempt  uint64 `json:"attempt"`
	Open     string `json:"open"`
	Join     string `json:"join,omitempty"`
	Stored   bool   `json:"stored,omitempty"` // or a duplicate, with its sequence
	Sequence uint64 `json:"sequence,omitempty"`
	Refused  bool   `json:"refused_by_broker,omitempty"` // neither: no answer came
}

type closeStep struct {
	Round    uint64 `json:"round"`
	Manifest string `json:"manifest_hash"`
	Attempt  uint64 `json:"attempt"`
	Open     string `json:"open"` // hash of the body of the Open beside it; under trust split what the Close says
	Join     string `json:"join,omitempty"`
	Cutoff   uint64 `json:"cutoff"`
	Void     bool   `json:"void,omitempty"`
}

// hashText returns the hash that a letter represents.
func hashText(letter string) string {
	h := stream.HashOf([]byte(letter))
	return hex.EncodeToString(h[:])
}

func hashOf(t *testing.T, text string) stream.Hash {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return stream.Hash(b)
}

// apply takes one step, and returns false where a device must not.
func (s eventStep) apply(t *testing.T, p *participation.Record) bool {
	t.Helper()
	attempt := func(number uint64, open, join string) participation.Attempt {
		a := participation.Attempt{Number: stream.Attempt(number), Open: hashOf(t, open)}
		if join != "" {
			a.Join = hashOf(t, join)
		}
		return a
	}
	switch {
	case s.Join != nil:
		var secret [32]byte
		if s.Join.Secret != "" {
			secret = hashOf(t, s.Join.Secret)
		}
		return p.Join(participation.Draw{Secret: secret, Round: stream.Round(s.Join.Round), Step: stream.Step(s.Join.Step),
			Phase: s.Join.Phase, Most: s.Join.Most, Final: s.Join.Final, Manifest: hashOf(t, s.Join.Manifest)}) == nil
	case s.Send != nil:
		a, of := attempt(s.Send.Attempt, s.Send.Open, s.Send.Join), participation.Attempts{Most: math.MaxUint32}
		switch {
		case s.Send.Floors:
			of.Most = 1
		case s.Send.Most > 0:
			of = participation.Attempts{Most: s.Send.Most, Alike: true}
		}
		if !p.MaySend(a, of) {
			return false
		}
		p.Sending(a, of)
	case s.Answer != nil:
		ack := stream.Ack{Sequence: s.Answer.Sequence}
		switch {
		case s.Answer.Refused:
			ack.Status = stream.Refused
		case s.Answer.Stored:
			ack.Status = stream.Stored
		default:
			return true // a result that does not come is passed to nobody
		}
		p.Acked(attempt(s.Answer.Attempt, s.Answer.Open, s.Answer.Join), ack)
	case s.Close != nil:
		c := s.Close
		before := *p
		p.Decide(participation.Closed{Round: stream.Round(c.Round), Manifest: hashOf(t, c.Manifest),
			Attempt: attempt(c.Attempt, c.Open, c.Join), Cutoff: c.Cutoff, Void: c.Void})
		return before.State != p.State
	case s.Abandon:
		p.Abandon()
	}
	return true
}

// The steps of the vectors. Rounds are called by a letter, which their manifest hash is of, and so are Opens.
func joins(round uint64, letter string, change ...func(*joinStep)) eventStep {
	j := &joinStep{Round: round, Step: round, Phase: 1, Most: 1, Manifest: hashText(letter)}
	for _, c := range change {
		c(j)
	}
	return eventStep{Join: j}
}

func interactive(j *joinStep) { j.Most = 3 }
func isFinal(j *joinStep)     { j.Final = true }
func inPhase(phase uint32) func(*joinStep) {
	return func(j *joinStep) { j.Phase = phase }
}
func sameStep(j *joinStep) { j.Step-- }

func sends(attempt uint64, open string) eventStep {
	return eventStep{Send: &sendStep{Attempt: attempt, Open: hashText(open)}}
}

func floors(s eventStep) eventStep { s.Send.Floors = true; return s }

func stored(attempt uint64, open string, sequence uint64) eventStep {
	return eventStep{Answer: &answerStep{Attempt: attempt, Open: hashText(open), Stored: true, Sequence: sequence}}
}

func notStored(attempt uint64, open string) eventStep {
	return eventStep{Answer: &answerStep{Attempt: attempt, Open: hashText(open), Refused: true}}
}

func silent(attempt uint64, open string) eventStep {
	return eventStep{Answer: &answerStep{Attempt: attempt, Open: hashText(open)}}
}

func closes(round uint64, letter string, attempt uint64, open string, cutoff uint64) eventStep {
	return eventStep{Close: &closeStep{Round: round, Manifest: hashText(letter), Attempt: attempt, Open: hashText(open),
		Cutoff: cutoff}}
}

func void(s eventStep) eventStep { s.Close.Void = true; return s }
func not(s eventStep) eventStep  { s.Not = true; return s }

var noClose = eventStep{Abandon: true}

var eventVectors = []eventVector{
	{Name: "at the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 7), closes(1, "r1", 1, "a", 7)}},
	{Name: "above the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 8),
		closes(1, "r1", 1, "a", 7)}},
	{Name: "no answer", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), silent(1, "a"), closes(1, "r1", 1, "a", 7)}},
	{Name: "refused", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), notStored(1, "a"), closes(1, "r1", 1, "a", 7)}},
	{Name: "refused, and then no answer", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), notStored(1, "a"),
		sends(1, "a"), silent(1, "a"), closes(1, "r1", 1, "a", 7)}},
	{Name: "no answer, and then above the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), silent(1, "a"),
		sends(1, "a"), stored(1, "a", 9), closes(1, "r1", 1, "a", 7)}},
	{Name: "no answer, and then at the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), silent(1, "a"),
		sends(1, "a"), stored(1, "a", 7), closes(1, "r1", 1, "a", 7)}},
	{Name: "refused, and then above the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), notStored(1, "a"),
		sends(1, "a"), stored(1, "a", 9), closes(1, "r1", 1, "a", 7)}},
	{Name: "stored twice, the first at the cutoff", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 5),
		sends(1, "a"), stored(1, "a", 9), closes(1, "r1", 1, "a", 7)}},
	{Name: "charged, and nothing sent", Steps: []eventStep{joins(1, "r1"), closes(1, "r1", 1, "a", 7)}},
	{Name: "an attempt that died", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 5), sends(2, "b"),
		stored(2, "b", 30), closes(1, "r1", 2, "b", 20)}},
	{Name: "an attempt that died, and counted in the next", Steps: []eventStep{joins(1, "r1"), sends(1, "a"),
		stored(1, "a", 5), sends(2, "b"), stored(2, "b", 12), closes(1, "r1", 2, "b", 20)}},
	{Name: "refused in an attempt that died", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), notStored(1, "a"),
		sends(2, "b"), stored(2, "b", 30), closes(1, "r1", 2, "b", 20)}},
	{Name: "another attempt of the same number closed", Steps: []eventStep{joins(1, "r1"), sends(1, "a"),
		stored(1, "a", 5), closes(1, "r1", 1, "b", 20)}},
	{Name: "never back to an older attempt", Steps: []eventStep{joins(1, "r1"), sends(2, "b"), not(sends(1, "a"))}},
	{Name: "another attempt of the same number", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), sends(1, "b"),
		not(sends(1, "a"))}},
	{Name: "under floors only to the first attempt", Steps: []eventStep{joins(1, "r1"), floors(sends(1, "a")),
		floors(sends(1, "a")), not(floors(sends(2, "b"))), not(floors(sends(1, "b")))}},
	{Name: "a void round", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 9),
		void(closes(1, "r1", 1, "a", 7))}},
	{Name: "a Close of another round", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 9),
		not(closes(2, "r1", 1, "a", 7)), not(closes(1, "r2", 1, "a", 7)), closes(1, "r1", 1, "a", 7)}},
	{Name: "no Close will come", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 9), noClose}},
	{Name: "no Close will come for a refused report", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), notStored(1, "a"),
		noClose}},
	{Name: "again after it was uncounted", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 9),
		closes(1, "r1", 1, "a", 7), joins(3, "r3"), sends(1, "c"), stored(1, "c", 20), closes(3, "r3", 1, "c", 25)}},
	{Name: "not again while nothing is known", Steps: []eventStep{joins(1, "r1"), not(joins(2, "r2"))}},
	{Name: "not again after it was counted", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), stored(1, "a", 7),
		closes(1, "r1", 1, "a", 7), not(joins(2, "r2"))}},
	{Name: "not again in doubt", Steps: []eventStep{joins(1, "r1"), sends(1, "a"), closes(1, "r1", 1, "a", 7),
		not(joins(2, "r2"))}},
	{Name: "not in a round that is not newer, of an older step or the same manifest", Steps: []eventStep{joins(2, "r2"),
		sends(1, "a"), notStored(1, "a"), closes(2, "r2", 1, "a", 7), not(joins(2, "r2")), not(joins(1, "r1")),
		not(joins(3, "r3", sameStep)), not(joins(3, "r2")), joins(3, "r3")}},
	{Name: "final, above the cutoff", Steps: []eventStep{joins(1, "r1", isFinal), sends(1, "a"), stored(1, "a", 9),
		closes(1, "r1", 1, "a", 7), not(joins(2, "r2", isFinal))}},
	{Name: "final, refused", Steps: []eventStep{joins(1, "r1", isFinal), sends(1, "a"), notStored(1, "a"),
		closes(1, "r1", 1, "a", 7)}},
	{Name: "final, at the cutoff", Steps: []eventStep{joins(1, "r1", isFinal), sends(1, "a"), stored(1, "a", 7),
		closes(1, "r1", 1, "a", 7)}},
	{Name: "three rounds of a phase, counted once", Steps: []eventStep{joins(1, "r1", interactive), sends(1, "a"),
		stored(1, "a", 9), closes(1, "r1", 1, "a", 7), joins(2, "r2", interactive), sends(1, "b"), stored(1, "b", 12),
		closes(2, "r2", 1, "b", 15), joins(3, "r3", interactive), sends(1, "c"), silent(1, "c"),
		closes(3, "r3", 1, "c", 30), not(joins(4, "r4", interactive)), not(joins(4, "r4", inPhase(2)))}},
	{Name: "three rounds of a phase, in doubt once", Steps: []eventStep{joins(1, "r1", interactive), sends(1, "a"),
		silent(1, "a"), closes(1, "r1", 1, "a", 7), joins(2, "r2", interactive), sends(1, "b"), stored(1, "b", 19),
		closes(2, "r2", 1, "b", 15), not(joins(4, "r4", inPhase(2)))}},
	{Name: "uncounted in all rounds of a phase, then another phase", Steps: []eventStep{joins(1, "r1", interactive),
		sends(1, "a"), notStored(1, "a"), closes(1, "r1", 1, "a", 7), joins(4, "r4", inPhase(2))}},
}

// joined gives the attempt of a step the Join of a letter.
func joined(letter string, s eventStep) eventStep {
	switch {
	case s.Send != nil:
		s.Send.Join, s.Send.Most = hashText(letter), 8
	case s.Answer != nil:
		s.Answer.Join = hashText(letter)
	default:
		s.Close.Join = hashText(letter)
	}
	return s
}

func isShared(j *joinStep) { j.Secret = hashText("secret of " + j.Manifest) }

// sharedSteps joins round 1 under trust split and then takes the steps, whose attempts have the Join of the same number.
func sharedSteps(steps ...eventStep) []eventStep {
	out := []eventStep{joins(1, "r1", isShared)}
	for _, s := range steps {
		if of := s.attempt(); of != nil && s.join() == "" {
			s = joined(fmt.Sprint("j", *of), s)
		}
		out = append(out, s)
	}
	return out
}

func (s eventStep) attempt() *uint64 {
	switch {
	case s.Send != nil:
		return &s.Send.Attempt
	case s.Answer != nil:
		return &s.Answer.Attempt
	case s.Close != nil:
		return &s.Close.Attempt
	}
	return nil
}

func (s eventStep) join() string {
	switch {
	case s.Send != nil:
		return s.Send.Join
	case s.Answer != nil:
		return s.Answer.Join
	}
	return s.Close.Join
}

// nineAttempts sends to nine attempts, of which the last is forbidden.
func nineAttempts() (steps []eventStep) {
	for a := uint64(1); a <= 8; a++ {
		steps = append(steps, sends(a, "a"), silent(a, "a"))
	}
	return append(steps, not(sends(9, "a")))
}

var operatorVectors = []eventVector{
	{Name: "at the cutoff", Steps: sharedSteps(sends(1, "a"), stored(1, "a", 7), closes(1, "r1", 1, "a", 7))},
	{Name: "no answer", Steps: sharedSteps(sends(1, "a"), silent(1, "a"), closes(1, "r1", 1, "a", 7))},
	{Name: "stored for an attempt that died", Steps: sharedSteps(sends(1, "a"), stored(1, "a", 5),
		closes(1, "r1", 2, "b", 20))},
	{Name: "no answer in an attempt that died, and above the cutoff of the next", Steps: sharedSteps(sends(1, "a"),
		silent(1, "a"), sends(2, "b"), stored(2, "b", 30), closes(1, "r1", 2, "b", 20))},
	{Name: "stored for an attempt that died, and counted in the next", Steps: sharedSteps(sends(1, "a"),
		stored(1, "a", 5), sends(2, "b"), stored(2, "b", 12), closes(1, "r1", 2, "b", 20))},
	{Name: "stored for an attempt that died, and no answer in the next", Steps: sharedSteps(sends(1, "a"),
		stored(1, "a", 5), sends(2, "b"), silent(2, "b"), closes(1, "r1", 2, "b", 20))},
	{Name: "the attempt of another Join closed", Steps: sharedSteps(joined("j", sends(1, "a")), joined("j", stored(1, "a", 5)),
		joined("k", closes(1, "r1", 1, "a", 20)))},
	{Name: "the attempt of another Open closed", Steps: sharedSteps(sends(1, "a"), stored(1, "a", 5),
		closes(1, "r1", 1, "b", 20))},
	{Name: "another Join of the same Open, and not back", Steps: sharedSteps(joined("j", sends(1, "a")),
		joined("k", sends(1, "a")), not(joined("j", sends(1, "a"))))},
	{Name: "a ninth attempt", Steps: sharedSteps(nineAttempts()...)},
	{Name: "a ninth attempt, which closed", Steps: sharedSteps(append(nineAttempts(), closes(1, "r1", 9, "a", 20))...)},
	{Name: "the eighth attempt closed, without an answer", Steps: sharedSteps(append(nineAttempts(),
		closes(1, "r1", 8, "a", 20))...)},
	{Name: "a void round", Steps: sharedSteps(sends(1, "a"), stored(1, "a", 9), void(closes(1, "r1", 1, "a", 7)))},
	{Name: "again after it was uncounted", Steps: append(sharedSteps(sends(1, "a"), closes(1, "r1", 2, "b", 7)),
		joins(3, "r3", isShared), joined("j", sends(1, "c")), joined("j", stored(1, "c", 20)),
		joined("j", closes(3, "r3", 1, "c", 25)))},
}

// joinVector holds the time at which an event with a draw joins an attempt (rule 11).
type joinVector struct {
	Probability uint32 `json:"join_probability"`
	Doubling    uint32 `json:"join_doubling_ms"`
	Draw        uint32 `json:"draw"`
	After       int64  `json:"after_ns"`
}

// turnVector is the draw of an organisation, turned by how many blocks it has offered.
type turnVector struct {
	Draw   uint32 `json:"draw"`
	Before uint64 `json:"blocks_before"`
	Past   uint64 `json:"places_before"`
	Silos  uint64 `json:"silos"`
	Cohort uint64 `json:"cohort"`
	Turned uint32 `json:"turned"`
}

// clockVector is a device's clock, held against the time at which the lease was stored.
type clockVector struct {
	Name  string      `json:"name"`
	Steps []clockStep `json:"steps"`
}

type clockStep struct {
	After  int64 `json:"after_ms"`                // that went by since the step before, by what no clock change moves
	Clock  int64 `json:"clock_unix_ms"`           // of the device
	Lease  int64 `json:"lease_unix_ms,omitempty"` // with which it is compared now; 0: it is not
	None   bool  `json:"no_lease,omitempty"`      // it is compared, and there is no lease
	Due    bool  `json:"due"`                     // whether a comparison was due before this step's
	Now    int64 `json:"ledger_unix_ms"`          // what the ledger is given
	Charge bool  `json:"charges"`
}

const noon, hourMs = int64(1700000000000), int64(3600000)

var clockVectors = []clockVector{
	{Name: "right", Steps: []clockStep{{Clock: noon, Lease: noon - 5000}, {After: 60000, Clock: noon + 60000}}},
	{Name: "an hour ahead", Steps: []clockStep{{Clock: noon + hourMs, Lease: noon}}},
	{Name: "more than an hour ahead", Steps: []clockStep{{Clock: noon + hourMs + 1, Lease: noon}}},
	{Name: "ahead, and mended", Steps: []clockStep{{Clock: noon + 5*hourMs, Lease: noon},
		{After: 61000, Clock: noon + 61000, Lease: noon + 60000}}},
	{Name: "ahead, and the lease catches up", Steps: []clockStep{{Clock: noon + 2*hourMs, Lease: noon},
		{After: 2 * hourMs, Clock: noon + 4*hourMs, Lease: noon + 3*hourMs}}},
	{Name: "behind", Steps: []clockStep{{Clock: noon - 9*hourMs, Lease: noon}}},
	{Name: "no lease", Steps: []clockStep{{Clock: noon, None: true}, {After: 59000, Clock: noon + 59000},
		{After: 1000, Clock: noon + 60000}}},
	{Name: "a jump ahead", Steps: []clockStep{{Clock: noon, Lease: noon}, {After: 1000, Clock: noon + 61001 + 1},
		{After: 0, Clock: noon + 61002, Lease: noon + 1000}}},
	{Name: "a jump back", Steps: []clockStep{{Clock: noon, Lease: noon}, {After: 1000, Clock: noon - 60000},
		{After: 1000, Clock: noon - 59000, Lease: noon + 2000}}},
}

// TestDecisionsVectors runs events, draws and clocks through the code that a device runs, and compares them with the
// file.
func TestDecisionsVectors(t *testing.T) {
	var file decisionsFile
	for i, v := range slices.Concat(eventVectors, operatorVectors) {
		var p participation.Record
		operators := i >= len(eventVectors)
		for i := range v.Steps {
			s := &v.Steps[i]
			if ok := s.apply(t, &p); ok == s.Not {
				t.Errorf("%s: step %d is taken: %t", v.Name, i+1, ok)
			}
			s.State = p.State.String()
			if p.State != participation.Fresh {
				s.Participations = p.Refunds + 1
			}
			if operators {
				s.Reports = p.Reports
			}
		}
		if operators {
			file.Operators = append(file.Operators, v)
		} else {
			file.Events = append(file.Events, v)
		}
	}
	for _, c := range []joinVector{{0, 0, 5, 0}, {0, 1000, 1<<32 - 1, 0}, {1 << 30, 2000, 1 << 29, 0},
		{1 << 30, 2000, 1<<30 - 1, 0}, {1 << 30, 2000, 1 << 30, 0}, {1 << 30, 2000, 1 << 31, 0}, {1 << 30, 2000, 3 << 30, 0},
		{1, 250, 1<<32 - 1, 0}, {1 << 31, 0, 1<<32 - 1, 0}} {
		c.After = int64(stream.RampOf(c.Probability, c.Doubling).After(c.Draw))
		file.Joins = append(file.Joins, c)
	}
	for _, c := range []turnVector{{1 << 31, 0, 0, 10, 4, 0}, {1 << 31, 0, 4, 10, 4, 0}, {1 << 31, 1, 4, 10, 4, 0},
		{1 << 31, 0, 8, 10, 4, 0}, {1<<32 - 1, 1, 12, 10, 4, 0}, {7, 2, 12, 10, 4, 0}} {
		c.Turned = stream.Turn(c.Draw, c.Before, c.Past, c.Silos, c.Cohort)
		file.Turns = append(file.Turns, c)
	}
	for _, v := range clockVectors {
		synctest.Test(t, func(t *testing.T) { v.run() })
		file.Clocks = append(file.Clocks, v)
	}
	golden.JSON(t, filepath.Join("../../docs/vectors", "decisions.json"), file, 0)
}

// run fills in what the clock says at each step.
func (v *clockVector) run() {
	c, shows := newClock(), int64(0)
	c.read = func() time.Time { return time.UnixMilli(shows) }
	for i := range v.Steps {
		s := &v.Steps[i]
		time.Sleep(time.Duration(s.After) * time.Millisecond)
		shows = s.Clock
		s.Due = c.doubtful()
		switch {
		case s.Lease != 0:
			c.compared(time.UnixMilli(s.Lease))
		case s.None:
			c.compared(time.Time{})
		}
		s.Now, s.Charge = c.now().UnixMilli(), !c.holds()
	}
}
