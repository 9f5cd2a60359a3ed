package device

import (
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// rules decides what an event may still do, by its record, the policy and the known rounds. It changes nothing.
type rules struct {
	settings *Settings
	contract *contract
	rounds   *rounds
}

// settled reports whether an event takes part in no further round.
func (r *rules) settled(e *event) bool {
	switch e.record.State {
	case participation.Counted, participation.Unknown:
		return !r.stays(e)
	case participation.Uncounted:
		return !r.stays(e) && (r.spent(e) || r.dear(e) != nil)
	case participation.Fresh:
		return r.rounds.over()
	}
	return false
}

// spent reports whether an uncounted event may join no further round, whatever that round costs: the task is over,
// or the event used up its reports or refunds.
func (r *rules) spent(e *event) bool {
	policy := &r.settings.Policy
	return r.rounds.over() || e.record.Exhausted(policy.Reports()) || e.record.Refunds >= policy.Refunds()
}

// dear returns the refusal of an uncounted event that may not pay for a further round or phase, nil if it may.
func (r *rules) dear(e *event) *consent.RefusedError {
	if r.contract.agreement == nil || e.record.State != participation.Uncounted {
		return nil
	}
	return r.contract.agreement.Again(e.record.Refunds + 2)
}

// stays reports whether an event of an interactive phase may take part again in that phase.
func (r *rules) stays(e *event) bool {
	p, newest := &e.record, r.rounds.known.newest
	if r.rounds.over() || !p.Stays(p.Draw.Phase) ||
		uint64(p.Reports) >= uint64(r.settings.Policy.Reports())+uint64(p.Rounds) {
		return false // the next round allows one report more than Exhausted allows for the last
	}
	if newest != nil && newest.message != nil && newest.phase() != p.Draw.Phase {
		return false
	}
	if r.contract.agreement == nil {
		return true
	}
	at, found := manifest.PhaseOf(r.contract.agreement.Task.Plan, uint64(p.Draw.Step))
	return found && uint64(p.Draw.Step) < at.Stint.Last
}
