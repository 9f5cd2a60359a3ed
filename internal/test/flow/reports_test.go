package flow

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sender publishes reports that were made before: what remains is the broker, the stage, and the way between them.
type sender struct {
	*deployment
	conn *natsjs.Conn
}

// fill sends a round n users in bundles and returns how long it took from the first publish to the batch.
func (s sender) fill(round uint64, n, bundle int) (time.Duration, error) {
	if err := s.opened.wait(s.ctx, round); err != nil {
		return 0, err
	}
	reports, err := s.reports(stream.Round(round), n, bundle)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := s.conn.Publish(s.ctx, reports); err != nil {
		return 0, err
	}
	err = s.released.wait(s.ctx, round)
	return time.Since(begun), err
}

// reports makes the messages of a round.
func (s sender) reports(round stream.Round, n, bundle int) ([]stream.Outgoing, error) {
	message, err := s.conn.Get(s.ctx, taskName.Task())
	if err != nil {
		return nil, err
	}
	body, err := seal.Verify(message.Data, s.learner.Public(), new(wire.Task))
	if err != nil {
		return nil, err
	}
	if message, err = s.conn.Latest(s.ctx, taskName.Opens(round)); err != nil {
		return nil, err
	}
	open := new(wire.Open)
	if _, err := seal.Verify(message.Data, s.stage.Public(), open); err != nil {
		return nil, err
	}
	context := seal.Context{ManifestHash: stream.Hash(open.ManifestHash), Attempt: open.Attempt,
		StageKey: s.stage.Public(), Public: open.PublicKey}
	encoder, err := randomizer.NewVectorSum(s.params, nil)
	if err != nil {
		return nil, err
	}
	x := make([]float64, s.params.Dim)
	x[0] = s.params.ClipNorm
	var out []stream.Outgoing
	var counts []uint32
	for n > 0 {
		ids := make([][16]byte, min(n, bundle))
		var plaintext []byte
		for i := range ids {
			_, _ = rand.Read(ids[i][:]) // never fails
			if counts, err = encoder.Encode(counts, x); err != nil {
				return nil, err
			}
			plaintext = s.params.Pack(plaintext, counts)
		}
		report, err := seal.Seal(open.Suite, context, stream.HashOf(body), ids, plaintext)
		if err != nil {
			return nil, err
		}
		data, err := stream.Marshal(report)
		if err != nil {
			return nil, err
		}
		out = append(out, stream.Outgoing{Subject: taskName.Report(round, stream.Attempt(open.Attempt)), ID: ids[0],
			Data: data})
		n -= len(ids)
	}
	return out, nil
}

func newSender(b *testing.B, d *deployment) sender { return sender{d, d.connect(b)} }
