package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
)

// Marks remember outside the broker which rounds of a task were claimed, and by whom. A broker that loses a claim and a
// batch but keeps the round would have a stage that restarted open the round again; one that shows two stage processes two
// faces would have both release it. Each time devices seal the same memoized counts for another attempt, and two totals
// over overlapping users tell the difference of two users' counts. With a mark the second is void instead, as far as all
// who claim share the marks. An adapter is package shuffle/stage/markfile.
type Marks interface {
	// Claimed answers the highest round of a task that was marked, 0 for none.
	Claimed(task stream.Hash) (round uint64, err error)
	// Claim marks a round, and with it all before it, for one process, in one step that no other Claim divides. It answers
	// true only if the mark that stood was of a lower round, or of this round and process. Then no crash undoes the mark, and
	// Claim may be called again. Where it answers false, the mark is as it was.
	Claim(task stream.Hash, round uint64, instance [stream.InstanceSize]byte) (ours bool, err error)
}

// errMarked says that a claim was not sent, because the round is marked by another process.
var errMarked = errors.New("the round is marked as claimed by another process of the stage")

// ownMarks are the marks of a process that was given none. They end with it, so they bar only its own return to a round.
type ownMarks struct {
	round    uint64
	instance [stream.InstanceSize]byte
}

// Claimed implements Marks.
func (m *ownMarks) Claimed(stream.Hash) (uint64, error) { return m.round, nil }

// Claim implements Marks.
func (m *ownMarks) Claim(_ stream.Hash, round uint64, instance [stream.InstanceSize]byte) (bool, error) {
	if round > m.round {
		m.round, m.instance = round, instance
	}
	return m.round == round && m.instance == instance, nil
}

// marked is the stage's connection with marks: no claim is sent that is not marked, and who looks for a claim at the broker
// has looked at the marks too. A mark that cannot be written or read is as a broker that does not answer: nothing is
// claimed, or opened, until it can.
type marked struct {
	stream.Records
	facts   *facts
	claimed uint64 // as it was read last
}

// PutOnce implements stream.Records.
func (m *marked) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if a, err := stream.ParseSubject(subject); err == nil && a.Verb == "claim" {
		ours, err := m.facts.Marks.Claim(m.facts.taskHash, uint64(a.Round), m.facts.Instance)
		if err != nil {
			return stream.PutResult{}, fmt.Errorf("mark round %d before it is claimed: %w", a.Round, err)
		}
		if !ours {
			return stream.PutResult{}, errMarked
		}
		m.claimed = max(m.claimed, uint64(a.Round))
	}
	return m.Records.PutOnce(ctx, subject, data)
}

// Get implements stream.Records.
func (m *marked) Get(ctx context.Context, subject string) (stream.Message, error) {
	if a, err := stream.ParseSubject(subject); err == nil && a.Verb == "claim" {
		if m.claimed, err = m.facts.Marks.Claimed(m.facts.taskHash); err != nil {
			return stream.Message{}, fmt.Errorf("marks of claimed rounds: %w", err)
		}
	}
	return m.Records.Get(ctx, subject)
}

// claimedOnce says whether a round was marked, as of the last look for a claim.
func (f *facts) claimedOnce(round uint64) bool {
	m, ok := f.Records.(*marked)
	return ok && m.claimed >= round
}
