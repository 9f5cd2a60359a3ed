package client

import (
	"bytes"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// phase is the number of a round's phase in the plan, from 1.
func (r *round) phase() uint32 { return uint32(r.place.Index) + 1 }

// later says whether a round is one of an interactive phase, after its first: its users are those who answered before.
func (r *round) later() bool {
	return r != nil && r.message != nil && r.place.Interactive() && r.message.Step > r.place.First
}

// stays says whether an event of an interactive phase may be asked again in that phase.
func (g *gateway) stays(e *event) bool {
	p := &e.part
	if g.over() || !p.Stays(p.Draw.Phase) || uint64(p.Reports) >= uint64(g.Policy.Reports())+uint64(p.Rounds) {
		return false // the next round allows one report more than exhausted says of the last
	}
	if g.current != nil && g.current.message != nil && g.current.phase() != p.Draw.Phase {
		return false
	}
	if g.terms == nil {
		return true
	}
	at, found := manifest.PhaseOf(g.terms.Task.Plan, uint64(p.Draw.Step))
	return found && uint64(p.Draw.Step) < at.Last()
}

// member says whether an event belongs to the newest round: an earlier round of its interactive phase counted it, or may
// have. Others wait a while, so that they only take places of members who left.
func (g *gateway) member(e *event) bool {
	return g.current.later() && e.part.Stays(g.current.phase()) && (e.part.State == participation.Counted || e.part.State == participation.Unknown)
}

// mayJoin says whether an event may be charged to the newest round.
func (g *gateway) mayJoin(e *event) bool {
	p, r := &e.part, g.current
	switch {
	case p.State == participation.Fresh:
		return true
	case p.State == participation.Charged || r.number <= p.Draw.Round || stream.Step(r.message.Step) <= p.Draw.Step || r.phase() < p.Draw.Phase:
		return false
	}
	return p.Stays(r.phase()) || (p.State == participation.Uncounted && (r.phase() != p.Draw.Phase || p.Draw.Most <= 1))
}

// arrange puts the members of the newest round before all others that wait, and answers those that wait for nothing.
func (g *gateway) arrange() {
	if !g.untidy {
		return
	}
	g.untidy = false
	var members, others []*event
	for _, e := range g.again {
		switch {
		case g.settled(e):
			delete(g.events, e.part.Key)
			g.answer(e)
		case g.member(e):
			members = append(members, e)
		default:
			others = append(others, e)
		}
	}
	// In the order of their keys, which for rows is that of the file: the same in every run.
	slices.SortFunc(members, func(a, b *event) int { return bytes.Compare(a.part.Key[:], b.part.Key[:]) })
	g.again = members
	if g.current.later() {
		g.reserve = append(g.reserve, others...)
		return
	}
	g.again = append(g.again, others...)
}

// gathering says whether the members of a round wait a moment for those whose outcome is on its way, so that all of them
// join in one order.
func (g *gateway) gathering(now time.Time) bool {
	return g.joinable() && g.current.later() && g.elapsed(now) < g.Poll && g.absent() > 0
}

// relieve lets the reserve join when the members had their time.
func (g *gateway) relieve(now time.Time) {
	r := g.current
	if len(g.reserve) > 0 && r.later() && g.joinable() && len(g.again) == 0 &&
		g.elapsed(now) >= stream.ReserveAfter(manifest.Deadline(r.message)) {
		g.again, g.reserve = g.reserve, nil
	}
}

// regroup has all events that wait sorted again: another round has come.
func (g *gateway) regroup() {
	g.unlot()
	g.again = slices.Concat(g.again, g.reserve)
	g.reserve, g.untidy = nil, true
}

// absent is how many members of the newest round are still charged in an earlier one. Their places are theirs.
func (g *gateway) absent() (n uint64) {
	if !g.current.later() {
		return 0
	}
	for _, r := range g.rounds {
		if r == g.current {
			continue
		}
		for _, p := range r.parcels {
			for _, e := range p.events {
				if e.part.Stays(g.current.phase()) {
					n++
				}
			}
		}
	}
	return n
}
