package client

import (
	"context"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxAttempts bounds the Close messages that are looked for in one round: the newest attempts, and those that events
// were published to.
const maxAttempts = 16

// refresh reads what is new. Only a refusal is an error: what cannot be read now is read later.
func (g *gateway) refresh(ctx context.Context) error {
	if g.terms == nil {
		if err := g.agree(ctx); err != nil || g.terms == nil {
			return err
		}
	}
	if !g.over() {
		if err := g.refreshRound(ctx); err != nil {
			return err
		}
	}
	for _, r := range g.rounds {
		g.refreshAttempts(ctx, r)
	}
	if !g.over() {
		if end, ok := g.end(ctx, g.terms); ok {
			g.endedAt = time.Now()
			g.log.Info("the task has ended", "last_round", end.LastRound, "reason", end.Reason)
			close(g.ended)
			g.progress()
		}
	}
	return nil
}

// agree reads the Task and decides, once, whether to take part.
func (g *gateway) agree(ctx context.Context) error {
	t, hash, ok := g.readTask(ctx)
	if !ok {
		return nil
	}
	pin, pinned, err := g.Store.Pin()
	if err != nil {
		return fmt.Errorf("read pin: %w", err)
	}
	byPolicy := g.Policy.Pins()
	switch {
	case pinned && pin.Task != hash:
		return consent.Refuse("task hash", fmt.Sprintf("%x", hash), "%x, which this state folder pins", pin.Task)
	case pinned && pin.Source != g.Source:
		return consent.Refuse("source", fmt.Sprintf("%q", g.Source), "%q, as before: users could take part twice under other keys", pin.Source)
	case !pinned && !byPolicy && g.Policy.ForbidFirstUse:
		return consent.Refuse("task hash", fmt.Sprintf("%x, pinned by nobody", hash), "task_hash, task_hashes, or learner_key and stage_key, in the policy")
	}
	terms, err := g.Policy.CheckTask(t, hash)
	if err == nil && g.Spec != nil {
		err = terms.CheckDeclaration(g.Spec)
	}
	if err != nil {
		return err
	}
	for i, f := range t.Plan.Phases {
		bundle := min(g.Bundle, int(f.Mechanism.MaxBundle))
		if bundle < g.Bundle {
			g.log.Warn("the task takes smaller bundles", "phase", i+1, "bundle", g.Bundle, "max_bundle", bundle)
		}
		size := seal.ReportSize(t.Suite, bundle, bundle*terms.Phases[i].Params.ReportBytes())
		if g.Limits.MaxPayload > 0 && size > g.Limits.MaxPayload {
			return fmt.Errorf("a message of %d reports has %d bytes, the broker takes %d: use smaller bundles, or raise its max_payload",
				bundle, size, g.Limits.MaxPayload)
		}
	}
	if err := g.enter(terms, pinned); err != nil {
		return err
	}
	if !pinned {
		g.unpinned = &participation.Pin{Task: hash, Source: g.Source}
	}
	g.log.Info("agreed to the task", "task_hash", fmt.Sprintf("%x", hash), "trust", terms.Spec.Privacy.Trust,
		"epsilon", terms.Guarantee.Epsilon, "delta", terms.Delta, "honest_fraction", terms.HonestFraction.String())
	g.terms = terms
	close(g.agreed)
	return nil
}

// refreshRound follows the newest round.
func (g *gateway) refreshRound(ctx context.Context) error {
	m, hash, ok := g.latestRound(ctx, g.terms)
	if !ok || (g.current != nil && stream.Round(m.Round) < g.current.number) {
		return nil
	}
	if g.current != nil && stream.Round(m.Round) == g.current.number && hash == g.current.manifest {
		return nil
	}
	known, err := g.known(stream.Round(m.Round))
	if err != nil {
		return err
	}
	if err := g.terms.CheckRound(m, hash, known); err != nil {
		return err
	}
	if g.current != nil {
		if err := g.terms.CheckOrder(g.current.message, m); err != nil {
			return err
		}
	}
	at, _ := manifest.PhaseOf(g.terms.Task.Plan, m.Step) // CheckRound knows that there is one
	if err := g.ask(at.Index, m); err != nil {
		return err
	}
	number := stream.Round(m.Round)
	r := g.rounds[number]
	if r == nil {
		r = &round{number: number, manifest: hash}
		g.rounds[number] = r
	}
	r.message, r.place = m, at
	if old := g.current; old != nil && len(old.parcels) == 0 {
		delete(g.rounds, old.number)
	}
	g.current = r
	g.regroup()
	g.progress()
	return nil
}

// ask has reports drawn for a round, in a phase of the plan by its index.
func (g *gateway) ask(phase int, m *wire.Round) error {
	if g.reports == nil || g.phase != phase {
		reports, err := report.New(g.terms.Phases[phase].Reports, g.terms.Phases[phase].Params, g.Entropy)
		if err != nil {
			return err
		}
		g.reports, g.phase = reports, phase
	}
	return g.reports.At(m.Point, m.Scales)
}

// known answers the manifest hash under which a round was seen, or joined in an earlier run.
func (g *gateway) known(number stream.Round) (*stream.Hash, error) {
	if r := g.rounds[number]; r != nil {
		return &r.manifest, nil
	}
	hash, found, err := g.Store.Manifest(number)
	if err != nil || !found {
		return nil, err
	}
	return &hash, nil
}

// refreshAttempts looks for the newest attempt at a round and for its Close.
func (g *gateway) refreshAttempts(ctx context.Context, r *round) {
	if r.closed != nil || (r != g.current && len(r.parcels) == 0) {
		return
	}
	o, a, ok := g.latestOpen(ctx, g.terms, r.number, r.manifest)
	if ok && (r.open == nil || (a != r.attempt && a.Number >= r.attempt.Number)) {
		if r.open != nil && len(r.parcels) > 0 {
			g.log.Info("the stage opened the round again", "round", r.number, "attempt", o.Attempt,
				"sends_again", !g.terms.HasFloors())
		}
		r.open, r.attempt, r.opened = o, a, time.Now()
		r.owed = append(r.owed[:0:0], r.parcels...)
		if g.terms.HasFloors() {
			r.joined = r.standing(a)
		}
		g.progress()
	}
	for _, a := range r.attempts() {
		if c, ok := g.view.closed(ctx, g.terms, r.number, a, r.manifest); ok {
			r.closed = &c
			if c.Void {
				g.log.Warn("the round is void: its users stay charged", "round", r.number)
			}
			return
		}
	}
}

// standing is how many events may be sent to an attempt. Those that dropped out with an earlier one leave their places to
// others, or a gateway that had sent a whole cohort would wait for a Close that only it can bring about.
func (r *round) standing(attempt participation.Attempt) (n uint64) {
	for _, p := range r.parcels {
		if p.events[0].part.MaySend(attempt, true) {
			n += uint64(len(p.events))
		}
	}
	return n
}

// attempts are those whose Close may be there, newest first.
func (r *round) attempts() []stream.Attempt {
	var list []stream.Attempt
	seen := make(map[stream.Attempt]bool)
	add := func(a stream.Attempt) {
		if a > 0 && !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	if r.open != nil {
		for a := r.attempt.Number; a > 0 && r.attempt.Number-a < maxAttempts; a-- {
			add(a)
		}
	}
	for _, p := range r.parcels {
		for _, s := range p.events[0].part.Sends {
			add(s.Attempt.Number)
		}
	}
	return list
}
