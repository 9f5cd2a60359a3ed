package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// take looks up offers in the store and lets those wait that have not taken part.
func (g *gateway) take(offers []*offer) error {
	if len(offers) > 0 {
		if err := g.pin(); err != nil {
			g.give(offers)
			return err
		}
	}
	keys := make([]participation.Key, len(offers))
	for i, o := range offers {
		keys[i] = o.key
	}
	parts, err := g.Store.Read(keys)
	if err != nil {
		g.give(offers)
		return fmt.Errorf("look up events: %w", err)
	}
	for _, part := range parts {
		// A settled event proves that its round was closed, whatever a lagging replica shows now.
		if g.current != nil && part.State > participation.Charged && part.Draw.Round >= g.current.number {
			g.current.done = true
		}
	}
	var fresh []*event
	for i, o := range offers {
		if e := g.events[o.key]; e != nil {
			e.answers = append(e.answers, o.answer)
			if !e.present {
				e.example, e.present = o.example, true
			}
			continue
		}
		e := &event{part: parts[i], example: o.example, present: true, answers: []func(Outcome){o.answer}}
		if e.part.State == participation.Charged {
			// load took up all of them, and settle takes an event off g.events only after a write.
			g.give(offers[i:])
			return fmt.Errorf("the store answers a charged event that it did not list before")
		}
		if g.settled(e) {
			g.answer(e)
			continue
		}
		g.events[o.key] = e
		fresh = append(fresh, e)
	}
	g.again = append(g.again, fresh...) // advance lets those join that may
	g.untidy = true
	return nil
}

// pin has the store belong to the task and the source of the rows, where it does not yet. It comes with the first event that a
// round has room for: until then nobody took part, and data that the reader refuses leave the store free for others.
func (g *gateway) pin() error {
	if g.unpinned == nil {
		return nil
	}
	if err := g.Store.Write(participation.Change{Pin: g.unpinned}); err != nil {
		return fmt.Errorf("write pin: %w", err)
	}
	if !g.Policy.Pins() {
		g.log.Warn("pinned the task at first use: nothing but the broker vouches for it", "task_hash", fmt.Sprintf("%x", g.unpinned.Task))
	}
	g.unpinned = nil
	return nil
}

// settled says whether an event takes part in no further round.
func (g *gateway) settled(e *event) bool {
	switch e.part.State {
	case participation.Counted, participation.Unknown:
		return !g.stays(e)
	case participation.Uncounted:
		return !g.stays(e) && (g.over() || e.part.Exhausted(g.Policy.Reports()) || e.part.Refunds >= g.Policy.Refunds())
	case participation.Fresh:
		return g.over()
	}
	return false
}

// join charges waiting events to the newest round, and only then sends them.
func (g *gateway) join(ctx context.Context, events []*event) error {
	if len(events) == 0 {
		return nil
	}
	events, err := g.charge(events)
	if err != nil {
		return err
	}
	r := g.current
	bundle := g.bundle(r)
	parcels := make([]*parcel, 0, len(events)/bundle+1)
	var id [16]byte
	for i, e := range events {
		counts := g.reports.Report(make([]byte, 0, g.terms.Phases[g.phase].Params.ReportBytes()), e.example)
		place := i % bundle
		if place == 0 {
			_, _ = rand.Read(id[:]) // never fails: it ends the process instead
			parcels = append(parcels, new(parcel))
		}
		d := participation.Draw{Round: r.number, Phase: r.phase(), Step: stream.Step(r.message.Step), Most: r.place.Phase.RoundsPerUser,
			Manifest: r.manifest, Bundle: id, Place: uint32(place), Counts: counts}
		_, _ = rand.Read(d.Report[:])
		if err := e.part.Join(d); err != nil {
			return err
		}
		last := parcels[len(parcels)-1]
		last.events = append(last.events, e)
	}
	r.joined += uint64(len(events))
	r.parcels = append(r.parcels, parcels...)
	return g.send(ctx, r, parcels)
}
