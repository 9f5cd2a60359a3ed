package main

import (
	"crypto/ed25519"
	crand "crypto/rand"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sender publishes reports that were made before: what remains is the broker, the stage, and the way between them.
type sender struct {
	world   *world
	writer  stream.ReportWriter
	records stream.Records
	learner ed25519.PublicKey
}

func (w *world) newSender() (*sender, error) {
	conn, err := w.connect()
	if err != nil {
		return nil, err
	}
	return &sender{world: w, writer: conn, records: conn, learner: w.learner}, nil
}

// fill sends a round n users in bundles and answers how long it took from the first publish to the batch.
func (s *sender) fill(round uint64, n, bundle int) (time.Duration, error) {
	ctx := s.world.ctx
	if err := s.world.opened.wait(ctx, round); err != nil {
		return 0, err
	}
	reports, err := s.reports(round, n, bundle)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := s.writer.Publish(ctx, reports); err != nil {
		return 0, err
	}
	err = s.world.released.wait(ctx, round)
	return time.Since(begun), err
}

// reports makes the messages of a round.
func (s *sender) reports(round uint64, n, bundle int) ([]stream.Outgoing, error) {
	w := s.world
	message, err := s.records.Get(w.ctx, w.name.Task())
	if err != nil {
		return nil, err
	}
	body, err := seal.Verify(message.Data, s.learner, new(wire.Task))
	if err != nil {
		return nil, err
	}
	if message, err = s.records.Latest(w.ctx, w.name.Opens(stream.Round(round))); err != nil {
		return nil, err
	}
	open := new(wire.Open)
	if _, err := seal.Verify(message.Data, w.stage.Public(), open); err != nil {
		return nil, err
	}
	context := seal.Context{ManifestHash: stream.Hash(open.ManifestHash), Attempt: open.Attempt, StageKey: w.stage.Public(), Public: open.PublicKey}
	encoder, err := randomizer.NewVectorSum(w.params, nil)
	if err != nil {
		return nil, err
	}
	x := make([]float64, w.params.Dim)
	x[0] = w.params.ClipNorm
	var out []stream.Outgoing
	var counts []uint32
	for n > 0 {
		ids := make([][16]byte, min(n, bundle))
		var plaintext []byte
		for i := range ids {
			_, _ = crand.Read(ids[i][:]) // never fails
			if counts, err = encoder.Encode(counts, x); err != nil {
				return nil, err
			}
			plaintext = w.params.Pack(plaintext, counts)
		}
		report, err := seal.Seal(open.Suite, context, stream.HashOf(body), ids, plaintext)
		if err != nil {
			return nil, err
		}
		data, err := stream.Marshal(report)
		if err != nil {
			return nil, err
		}
		out = append(out, stream.Outgoing{Subject: w.name.Report(stream.Round(round), stream.Attempt(open.Attempt)), ID: ids[0], Data: data})
		n -= len(ids)
	}
	return out, nil
}

// messageBytes is the length of a message of so many users.
func (w *world) messageBytes(bundle int) int {
	return seal.ReportSize(w.body.Suite, bundle, bundle*w.params.ReportBytes())
}
