package split

import (
	"errors"
	"fmt"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/randomizer"
)

// A Step names what the leader's end of an attempt needs next.
type Step uint8

const (
	// StepStore: store Prepared, by LeaderMarks.Prepare in one synced step; then call Stored.
	StepStore Step = iota
	// StepSend: send Finish, and look at the round's Share; again after each Again, until one of Share, Gone and
	// Differs is called. Time alone never ends it.
	StepSend
	// StepRelease: store the helper's Share, by LeaderMarks.Release in one synced step; then call Released.
	StepRelease
	// StepDrop: overwrite the key of Prepared and sync it, by LeaderMarks.Drop in one step; then call Dropped.
	StepDrop
	// StepBatch: the round is released. Put claim, spent lists and batch, as they follow from Prepared and Share.
	StepBatch
	// StepDied: the attempt died and nobody paid. Open the next one.
	StepDied
	// StepLook: another process went further, or the helper released another attempt. Look at the folder and the
	// round's Share, and act on LeaderMarks.Find.
	StepLook
)

var stepNames = [...]string{"store", "send", "release", "drop", "batch", "died", "look"}

// String returns the step's label.
func (s Step) String() string {
	if int(s) >= len(stepNames) {
		return "unknown"
	}
	return stepNames[s]
}

// An Ending carries an attempt of the leader from its Prepared to the batch, or to its death. It is a value machine:
// the caller performs Step and passes the result back.
type Ending struct {
	prepared Prepared
	step     Step
	share    Share
	signed   []byte
	after    Step   // of StepDrop
	marked   uint64 // the highest round that the helper said it has marked
}

// NewEnding begins with a Prepared that is in memory alone.
func NewEnding(p Prepared) *Ending { return &Ending{prepared: p} }

// ResumeEnding begins with a Prepared that was found in the folder.
func ResumeEnding(p Prepared) *Ending { return &Ending{prepared: p, step: StepSend} }

// Step returns what is needed next.
func (e *Ending) Step() Step { return e.step }

// Prepared returns the attempt's share and numbers.
func (e *Ending) Prepared() Prepared { return e.prepared }

// Finish returns the message of StepSend: the same bytes each time.
func (e *Ending) Finish() Finish { return e.prepared.Finish }

// Signed returns the bytes of the helper's Share, in StepRelease and StepBatch.
func (e *Ending) Signed() []byte { return e.signed }

// Marked returns the highest round that the helper said it has marked, for LeaderMarks.Find.
func (e *Ending) Marked() uint64 { return e.marked }

// Stored takes whether the folder has Prepared, and not what another process put there. Where it has not, nothing was
// sent, and what is in memory is erased.
func (e *Ending) Stored(ok bool) {
	switch {
	case e.step != StepStore:
	case ok:
		e.step = StepSend
	default:
		e.leave(StepLook)
	}
}

// Share takes a Share of the round, with a verified signature, and its signed bytes, from the helper's answer or from
// the stream.
func (e *Ending) Share(s Share, signed []byte) {
	switch {
	case e.step != StepSend || s.X.Round != e.prepared.X().Round:
	case s.X == e.prepared.X():
		e.share, e.signed, e.step = s, signed, StepRelease
	default: // the round is released, and not by this attempt
		e.step, e.after = StepDrop, StepLook
	}
}

// Gone takes the helper's message that it neither holds nor released the attempt. If the helper has marked the round,
// another attempt may have been released, which the folder shows.
func (e *Ending) Gone(g Gone) {
	if e.step != StepSend || g.X != e.prepared.X() {
		return
	}
	e.marked, e.step, e.after = g.Marked, StepDrop, StepDied
	if g.Marked >= g.X.Round {
		e.after = StepLook
	}
}

// Differs takes the helper's word that it ended the attempt.
func (e *Ending) Differs(d Differs) {
	if e.step == StepSend && d.X == e.prepared.X() {
		e.step, e.after = StepDrop, StepDied
	}
}

// Released takes whether the folder has the Share, and not what another process put there.
func (e *Ending) Released(ok bool) {
	switch {
	case e.step != StepRelease:
	case ok:
		e.step = StepBatch
	default:
		e.leave(StepLook)
	}
}

// Dropped takes that the key of Prepared is overwritten, or that another attempt is prepared by now.
func (e *Ending) Dropped() {
	if e.step == StepDrop {
		e.leave(e.after)
	}
}

// leave ends the machine and erases the share in memory.
func (e *Ending) leave(to Step) {
	clear(e.prepared.Aggregate)
	e.step = to
}

// A Release holds the totals of one round, with the floors of both operators.
type Release struct {
	Users       uint64   // m, the users in the totals
	NoiseTrials uint64   // both floors'
	Totals      []uint64 // one for each coordinate
	Rejects     Rejects
}

// errShare means that the helper's share does not give totals of this attempt.
var errShare = errors.New("the helper's share gives no totals of this attempt")

// Release puts the two floored shares together, in StepBatch. It is a function of Prepared, Share and the round's
// parameters. An error means that the round is void, by the helper's doing, and counts as released.
func (e *Ending) Release(p randomizer.Params) (Release, error) {
	if e.step != StepBatch {
		return Release{}, fmt.Errorf("release in step %v", e.step)
	}
	return combine(p, e.prepared, e.share)
}

func combine(p randomizer.Params, own Prepared, theirs Share) (Release, error) {
	f := own.Finish
	if theirs.Refusal != None || f != (Finish{X: theirs.X, Requests: theirs.Requests, Users: theirs.Users, Chain: theirs.Chain}) {
		return Release{}, fmt.Errorf("it stands elsewhere: %w", errShare)
	}
	k, err := BitsOf(p.Levels)
	if err != nil {
		return Release{}, err
	}
	vec, err := Params{Dim: p.Dim, Bits: k}.newVec()
	if err != nil {
		return Release{}, err
	}
	params := vec.Params()
	both := make([]sumvec.AggShare, shares)
	for i, b := range [][]byte{own.Aggregate, theirs.Aggregate} {
		agg := new(sumvec.AggShare).New(&params)
		if len(b) != lengths(vec).Aggregate || agg.UnmarshalBinary(b) != nil {
			return Release{}, fmt.Errorf("it has %d bytes, or numbers outside the field: %w", len(b), errShare)
		}
		both[i] = *agg
	}
	noise := p.NoiseTrials(f.Users, f.Users)
	most, err := p.MaxTotal(f.Users, noise)
	if err != nil {
		return Release{}, err
	}
	totals, err := vec.Unshard(both, uint(f.Users))
	if err != nil {
		return Release{}, fmt.Errorf("a total is not a number: %w", errShare)
	}
	for _, t := range *totals {
		if t > most {
			return Release{}, fmt.Errorf("a total is above %d: %w", most, errShare)
		}
	}
	return Release{Users: f.Users, NoiseTrials: noise, Totals: *totals, Rejects: own.Rejects}, nil
}
