package stage

import (
	"context"
	"fmt"

	"github.com/panlearn/panlearn/stream"
)

// Marks remember outside the broker which rounds of a task were claimed. A broker that loses a claim and a batch but keeps
// the round would have a stage that restarted open the round again: its devices seal the same memoized counts for another
// attempt, and two totals over overlapping users tell the difference of two users' counts. With a mark the round is void
// instead. An adapter is package shuffle/stage/markfile.
type Marks interface {
	// Claimed answers the highest round of a task that was marked, 0 for none.
	Claimed(task stream.Hash) (round uint64, err error)
	// Claim marks a round, and with it all before it. Where it returns nil, no crash undoes it. It may be called again.
	Claim(task stream.Hash, round uint64) error
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
		if err := m.facts.Marks.Claim(m.facts.taskHash, a.Round); err != nil {
			return stream.PutResult{}, fmt.Errorf("mark round %d before it is claimed: %w", a.Round, err)
		}
		m.claimed = max(m.claimed, a.Round)
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
