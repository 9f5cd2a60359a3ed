package stage

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Reasons of void batches.
const (
	// ReasonClaimWithoutBatch: whoever claimed the round did not come back in time.
	ReasonClaimWithoutBatch = "claim without a batch"
	// ReasonCloseWithoutBatch: a Close stands, so there was a batch, and the broker lost it.
	ReasonCloseWithoutBatch = "close without a batch"
	// ReasonMarked: a mark of the stage says that the round was claimed, and the broker shows no claim. See [Marks].
	ReasonMarked = "claimed before, and the broker lost the claim"
)

// void is a batch that burns a round. Its cutoff is the highest there is, so that nobody who sent a report finds
// itself above it: all stay charged.
func (f *facts) void(r round, attempt uint64, reason string) ([]byte, error) {
	return f.Identity.Sign(&wire.Batch{
		Version: stream.Version, TaskHash: f.taskHash[:], Round: r.number, Attempt: attempt,
		ManifestHash: r.manifest[:], Void: true, Reason: reason, Cutoff: math.MaxUint64,
	})
}

// closeOf is the Close of a batch: a pure function of it, so that any stage process can put it, at any time.
func (f *facts) closeOf(m *stream.Message) (*wire.Batch, []byte, error) {
	var b wire.Batch
	if _, err := f.read(m, f.Identity.Public(), &b); err != nil {
		return nil, nil, err
	}
	hash := stream.HashOf(m.Data)
	signed, err := f.Identity.Sign(&wire.Close{
		Version: stream.Version, TaskHash: f.taskHash[:], Round: b.Round, Attempt: b.Attempt,
		ManifestHash: b.ManifestHash, BatchHash: hash[:], Cutoff: b.Cutoff, Void: b.Void,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Subject, err)
	}
	return &b, signed, nil
}
