package audit

import (
	"fmt"
	"reflect"

	"github.com/panlearn/panlearn/shuffle"
)

// A View names an adversary by what it sees of a round.
type View int

const (
	// Learner sees the released totals.
	Learner View = iota
	// Intruder sees the released totals and, once, between two reports, the memory of the mixer
	// (docs/proofs/theorem-a.md, section 5). The trusts with floors make this claim.
	Intruder
	// OneReport sees a report by itself, before anything is added to it: under trust local nobody else's noise counts.
	OneReport
	// Operator sees, under trust split, all that one corrupt operator and the learner see together of a round: the sum
	// of the counts behind the other operator's floor (docs/proofs/split.md). Shares are uniform, so a mixer that has
	// laid one floor represents both operators; package shuffle/split tests the shares themselves.
	Operator
)

// String returns the adversary's name in plans and reports.
func (v View) String() string {
	switch v {
	case Intruder:
		return "intruder"
	case OneReport:
		return "one report"
	case Operator:
		return "operator"
	}
	return "learner"
}

// A look is one strategy of the intruder: a target, a moment, and a scalar of what was seen.
type look struct {
	target int // users who report before the target, or before the first of those who change together
	after  int // reports in the totals when the intruder looks
	// scalar combines the sum of the totals at the look with that of the release. It is larger under plus.
	scalar func(state, released float64) float64
}

// looks returns the two moments that matter for k users among n who change together, and at each the scalar in which
// all but one floor cancel, and the one in which both would cancel if they were the same draw. Any other moment adds
// reports that do not depend on the target.
func looks(n, k int) map[string]look {
	return map[string]look{
		"target before the look": {0, k, func(state, _ float64) float64 { return state }},
		"target after the look": {n - k, n - k,
			func(state, released float64) float64 { return released - state }},
		"target before the look, floors against each other": {0, k,
			func(state, released float64) float64 { return 2*state - released }},
		"target after the look, floors against each other": {n - k, n - k,
			func(state, released float64) float64 { return released - 2*state }},
	}
}

// behindOneFloor returns what an operator sees of n users: the totals after the last report, without the back floor.
func behindOneFloor(n int) look {
	return look{0, n, func(state, _ float64) float64 { return state }}
}

// looked reports whether the view has a look at the totals.
func (v View) looked() bool { return v == Intruder || v == Operator }

// A subject runs a round: a mixer, and its memory.
type subject interface {
	Add([]shuffle.ReportID, []byte) shuffle.Outcome
	Close() (shuffle.Release, error)
	// Look returns a copy of the running totals.
	Look() ([]uint64, error)
}

// A real subject is a shuffle.Mixer. A Mixer gives its running totals to nobody, so they are read the way an intruder
// reads them: from memory.
type real struct{ *shuffle.Mixer }

func newSubject(c shuffle.Config) (subject, error) {
	m, err := shuffle.NewMixer(c)
	return real{m}, err
}

func (r real) Look() ([]uint64, error) {
	field := reflect.ValueOf(r.Mixer).Elem().FieldByName("totals")
	if field.Kind() != reflect.Slice || field.Type().Elem().Kind() != reflect.Uint64 {
		return nil, fmt.Errorf("audit: a mixer has no totals that the intruder could read: this audit is of another version")
	}
	out := make([]uint64, field.Len())
	for i := range out {
		out[i] = field.Index(i).Uint()
	}
	return out, nil
}
