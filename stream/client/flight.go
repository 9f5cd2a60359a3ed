package client

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A flight is one publish of some parcels to one attempt.
type flight struct {
	attempt participation.Attempt
	round   *round
	parcels []*parcel
	acks    []stream.Ack // one a parcel; short or empty where nothing was answered
	err     error
}

// cargo is the copy of a parcel that a flight works with.
type cargo struct {
	ids       [][16]byte
	plaintext []byte
}

// send notes a publish of parcels to the newest attempt, durably, and then makes it. All of them may be sent there.
func (g *gateway) send(ctx context.Context, r *round, parcels []*parcel) error {
	change := participation.Change{Rounds: map[stream.Round]stream.Hash{r.number: r.manifest}}
	for _, p := range parcels {
		for _, e := range p.events {
			e.part.Sending(r.attempt, g.terms.HasFloors())
			change.Events = append(change.Events, e.part)
			delete(g.dirty, e)
		}
	}
	if err := g.Store.Write(change); err != nil {
		return fmt.Errorf("charge events: %w", err)
	}
	cargos := make([]cargo, len(parcels))
	for i, p := range parcels {
		p.flying = true
		g.flying += len(p.events)
		for _, e := range p.events {
			cargos[i].ids = append(cargos[i].ids, e.part.Draw.Report)
			cargos[i].plaintext = append(cargos[i].plaintext, e.part.Draw.Counts...)
		}
	}
	f := flight{attempt: r.attempt, round: r, parcels: parcels}
	to := g.address(r)
	g.flights.Go(func() {
		f.acks, f.err = g.publish(ctx, to, cargos)
		g.landing <- f // has room for MaxInFlight events, and every flight has at least one
	})
	g.progress()
	return nil
}

// An address is what sealing for an attempt and sending to it needs.
type address struct {
	subject  string
	suite    wire.Suite
	context  seal.Context
	taskHash stream.Hash
}

func (g *gateway) address(r *round) address {
	return address{
		subject: g.view.task.Report(r.number, r.attempt.Number), suite: r.open.Suite, taskHash: g.terms.Hash,
		context: seal.Context{
			ManifestHash: r.manifest, Attempt: r.open.Attempt, StageKey: g.terms.Task.StageKey, Public: r.open.PublicKey,
		},
	}
}

// publish seals and sends. It runs outside the gateway's goroutine and touches none of its state.
func (g *gateway) publish(ctx context.Context, to address, cargos []cargo) ([]stream.Ack, error) {
	out := make([]stream.Outgoing, len(cargos))
	for i, c := range cargos {
		report, err := seal.Seal(to.suite, to.context, to.taskHash, c.ids, c.plaintext)
		clear(c.plaintext)
		if err != nil {
			return nil, err
		}
		data, err := stream.Marshal(report)
		if err != nil {
			return nil, err
		}
		out[i] = stream.Outgoing{Subject: to.subject, ID: messageID(c.ids[0], stream.Attempt(to.context.Attempt)), Data: data}
	}
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	return g.Reports.Publish(ctx, out)
}

// messageID is what all publishes of one message for one attempt share. Attempts must not share it: they lie in one
// stream, and the broker would drop the second one's message as a duplicate of the first one's.
func messageID(report [16]byte, attempt stream.Attempt) [16]byte {
	b := append([]byte("panlearn message id\x00"), report[:]...)
	h := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(attempt)))
	return [16]byte(h[:16])
}

// landed takes the answers of a flight.
func (g *gateway) landed(f flight) {
	switch {
	case f.err == nil:
		if g.publishing.Over() {
			g.log.Info("publishing works again")
		}
	case !errors.Is(f.err, context.Canceled) && g.publishing.Tell(time.Now(), f.err):
		g.log.Warn("publish failed; trying again", "messages", len(f.parcels), "err", f.err)
	}
	refused := 0
	for i, p := range f.parcels {
		p.flying = false
		g.flying -= len(p.events)
		if i < len(f.acks) {
			if f.acks[i].Status == stream.Refused {
				refused++
			}
			for _, e := range p.events {
				e.part.Acked(f.attempt, f.acks[i])
				g.dirty[e] = true
			}
		}
		if !p.events[0].part.Answered(f.round.attempt) {
			f.round.owed = append(f.round.owed, p)
		}
	}
	if refused > 0 {
		g.log.Warn("the broker refused reports; trying again", "messages", refused)
	}
	g.progress()
}

// resend sends the parcels of the newest round that its newest attempt has not, or may not have: at once to a new
// attempt, at the pace of the timer where an answer is missing.
func (g *gateway) resend(ctx context.Context) error {
	r := g.current
	if r == nil || r.open == nil || r.closed != nil || r.done || r.message == nil {
		return nil
	}
	var due, later []*parcel
	n := 0
	for _, p := range r.owed {
		part := &p.events[0].part
		a := r.attempt
		switch {
		case p.flying || part.Answered(a) || !part.MaySend(a, g.terms.HasFloors()):
			// Landing, settling or a newer attempt decides about it.
		case !part.SentTo(a) && p.exhausted(g.Policy.Reports()):
			// It was sent often enough: whatever the Close of its round says, it is not sent again.
		case g.flying+n >= g.MaxInFlight || (part.SentTo(a) && !g.retry):
			later = append(later, p)
		default:
			due = append(due, p)
			n += len(p.events)
		}
	}
	r.owed = later
	for batch := range slices.Chunk(due, chunkMessages) {
		if err := g.send(ctx, r, batch); err != nil {
			return err
		}
	}
	return nil
}

// exhausted says that of one of the events as many reports were made as may be.
func (p *parcel) exhausted(most uint32) bool {
	return slices.ContainsFunc(p.events, func(e *event) bool { return e.part.Exhausted(most) })
}

// flush stores the answers that are not stored yet. A store that misses some is safe: it takes a publish for unanswered.
func (g *gateway) flush() error {
	g.flushed = time.Now()
	for events := range slices.Chunk(slices.Collect(maps.Keys(g.dirty)), settleChunk) {
		change := participation.Change{Events: make([]participation.Record, len(events))}
		for i, e := range events {
			change.Events[i] = e.part
			delete(g.dirty, e)
		}
		if err := g.Store.Write(change); err != nil {
			return fmt.Errorf("store acknowledgements: %w", err)
		}
	}
	return nil
}
