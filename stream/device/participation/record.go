package participation

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// A State names the stage of one event's participation.
type State uint8

// The states of an event. Fresh, Charged and Uncounted can change; Counted and Unknown are final, but in an interactive
// phase, where they say what became of the event so far.
const (
	Fresh   State = iota // has not taken part
	Charged              // has taken part in a round whose outcome is not known; durable before the first publish
	// lies at or below the cutoff of its round: is in its batch, or was refused by the stage, or lost by a fault of the
	// broker
	Counted
	Uncounted // is provably in no batch of its round; may take part in another
	Unknown   // may or may not be in a batch, and nothing will tell more; never takes part again
	Refused   // of an Outcome only: was not sent, because the policy refused
)

var stateNames = [...]string{"fresh", "charged", "counted", "uncounted", "unknown", "refused"}

func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "invalid"
	}
	return stateNames[s]
}

// An Attempt is one opening of a round. After the broker lost an Open, the stage uses its number again: that is another
// attempt, with another key and another Open. Attempts are compared whole.
type Attempt struct {
	Number stream.Attempt
	Open   stream.Hash // of the body of its Open; under trust split of the signed Open
	Join   stream.Hash // of the helper's signed Join under trust split; zero elsewhere, and while there is none
}

// Attempts describes to how many attempts at one round an event may be sent, and what further ones cost it.
type Attempts struct {
	Most uint32 // attempts at one round, at least 1
	// Alike reports that all attempts at one round count as one report: under trust split, where a further one costs a
	// user nothing.
	Alike bool
}

// A Send counts the publishes for one attempt. All of them carry the same message id.
type Send struct {
	Attempt Attempt
	Sent    uint32 // publishes that were made, or may have been
	Acked   uint32 // publishes that were acknowledged with a sequence
	Refused uint32 // publishes that the broker answered not to have stored; with Acked at most Sent
	Lowest  uint64 // lowest sequence acknowledged; 0 where Acked is 0
}

// A Draw holds an event's report in one round: the same for all attempts at it.
type Draw struct {
	Round stream.Round
	Phase uint32 // of the plan, from 1
	Step  stream.Step
	Most  uint32 // rounds of the phase that one event may join; more than 1 in an interactive phase
	// Final reports that the draw is the last of its kind, whatever becomes of it: under trust local a publish is
	// a release, to the broker and the stage too, and nothing that those claim about it gives anything back. The
	// event is not Uncounted then, and joins only further rounds of its interactive phase.
	Final    bool
	Manifest stream.Hash
	Report   [16]byte // report id; zero under trust split, where it is another one in each attempt
	// Secret decides the report ids of all attempts under trust split; zero elsewhere. It is deleted with Counts.
	Secret [32]byte
	Bundle [16]byte // events with the same bundle travel in one message
	Place  uint32   // position in the bundle
	Counts []byte   // packed counts; private, deleted when the outcome is known
}

// Shared reports whether the draw's counts are shared between two operators: trust split.
func (d *Draw) Shared() bool { return d.Secret != [32]byte{} }

// Format prints a placeholder under every verb, so that no log or error can carry counts.
func (d Draw) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "participation.Draw{round %d}", d.Round) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (d Draw) MarshalText() ([]byte, error) { return fmt.Append(nil, d), nil }

// A Record is one event's part in a task, as an automaton without clock, network or disk. The caller makes
// every change durable before it acts on it: after Join and Sending, before it publishes.
//
//	Fresh ──Join──▶ Charged ──Decide──▶ Counted
//	                │  ▲  │ ──Decide──▶ Unknown   (also Abandon)
//	        Sending └──┘  └──Decide──▶ Uncounted ──Join──▶ Charged, with a new draw
//
// In an interactive phase the same events take part in every round: there Counted and Unknown may Join the next round
// of the same phase, each with a draw of its own, at later steps only and Most times in all. They never join another
// phase. The state then covers all rounds of the phase: Counted if one of them counted it, else Unknown if one is in
// doubt.
//
// An event whose draw is final is never Uncounted. Any other is Uncounted only if every publish that was made for it in
// the round was refused, or acknowledged with a sequence above the cutoff of the attempt that closed, to which it went.
// All else leaves it charged:
//
//   - A publish without an answer may be stored, and a retry's answer says nothing about it: the broker forgets
//     message ids after its duplicate window.
//   - A publish that was stored for an attempt that never closed was seen by a stage process that died, so no
//     cutoff covers it.
//   - A void batch charges everybody.
//
// Under trust split only what was sent to the attempt that closed matters: no other attempt at the round is ever
// released, nor can be, and its key opens nothing of this one. An event that was sent only to others is Uncounted.
//
// Each publish has its own answer. A refusal is as credible as a sequence: both are the broker's word, and a broker
// that lies wins nothing by either, because another round is charged beside this one (Agreement.Again in package
// consent).
type Record struct {
	Key   Key
	State State
	Draw  Draw // of the last round that the event joined; without Counts once that round is decided
	// Sends are the attempts that the event was published to, in this order, their numbers ascending; empty once the
	// round is decided.
	Sends []Send
	// Before is the state that it had when it joined its last round, if an earlier round of the same interactive phase
	// decided it; else Fresh.
	Before State
	// Rounds counts the rounds of its phase that it joined: each is charged, whatever becomes of it.
	Rounds uint32
	// Refunds counts how often it joined after it had been Uncounted, other than in its interactive phase.
	Refunds uint32
	// Reports counts the reports that were made of it: attempts that it was published to, over all rounds; all attempts
	// at one round as one where they are alike.
	Reports uint32
}

// Stays reports whether the event belongs to an interactive phase and may answer a round of it at a later step.
func (p *Record) Stays(phase uint32) bool {
	return p.State != Fresh && p.Draw.Most > 1 && p.Draw.Phase == phase && p.Rounds < p.Draw.Most
}

// Participations returns the number of participations of the event if it joins a round of a phase now: all rounds
// of one interactive phase are one participation, and so is every other round.
func (p *Record) Participations(phase uint32) uint32 {
	if p.State == Uncounted && !p.Stays(phase) {
		return p.Refunds + 2
	}
	return p.Refunds + 1
}

// Join charges the event to a round, with a draw made for that round's manifest alone. It is refused for an event that
// may be counted elsewhere, and for a round that is not newer than the last, in the plan too: a draw for the same round
// twice would halve its noise.
func (p *Record) Join(d Draw) error {
	again := p.Stays(d.Phase) && d.Most == p.Draw.Most // in its interactive phase
	switch {
	case p.State == Charged, p.State != Fresh && (p.State != Uncounted || p.Draw.Final) && !again:
		return fmt.Errorf("join round %d: the event is %v in round %d", d.Round, p.State, p.Draw.Round)
	case p.State != Fresh && d.Final != p.Draw.Final:
		return fmt.Errorf("join round %d: its draw is final: %t, that of round %d: %t", d.Round, d.Final, p.Draw.Round,
			p.Draw.Final)
	case d.Round <= p.Draw.Round:
		return fmt.Errorf("join round %d: the event took part in round %d already", d.Round, p.Draw.Round)
	case p.State != Fresh && (d.Step <= p.Draw.Step || d.Phase < p.Draw.Phase):
		return fmt.Errorf("join round %d: it is step %d of phase %d, the event answered step %d of phase %d",
			d.Round, d.Step, d.Phase, p.Draw.Step, p.Draw.Phase)
	case p.State != Fresh && !again && p.Draw.Most > 1 && p.Draw.Phase == d.Phase:
		return fmt.Errorf("join round %d: the event joined %d rounds of the phase", d.Round, p.Rounds)
	case p.State != Fresh && d.Manifest == p.Draw.Manifest:
		return fmt.Errorf("join round %d: it has the manifest of round %d", d.Round, p.Draw.Round)
	}
	before, rounds := Fresh, uint32(0)
	switch {
	case again:
		before, rounds = p.State, p.Rounds
	case p.State == Uncounted:
		p.Refunds++
	}
	p.State, p.Draw, p.Sends, p.Before, p.Rounds = Charged, d, nil, before, rounds+1
	return nil
}

// MaySend reports whether the event may be published to an attempt: to the newest that it knows, never back to an
// older one, and to so many at one round as of allows. Where an attempt that died may have been looked at (the pan
// trusts) only the first attempt is allowed, and another attempt under its number is not that one.
func (p *Record) MaySend(attempt Attempt, of Attempts) bool {
	if p.State != Charged || attempt.Number == 0 {
		return false
	}
	if n := len(p.Sends); n > 0 {
		last := p.Sends[n-1].Attempt
		return attempt == last || attempt.Number >= last.Number && p.send(attempt) == nil && uint64(n) < uint64(of.Most)
	}
	return true
}

// Answered reports whether a publish to an attempt was acknowledged with a sequence: the report is there, and
// sending it again has no use.
func (p *Record) Answered(attempt Attempt) bool {
	s := p.send(attempt)
	return s != nil && s.Lowest != 0
}

// Sending notes one publish that is about to be made. It panics where MaySend forbids it.
func (p *Record) Sending(attempt Attempt, of Attempts) {
	if !p.MaySend(attempt, of) {
		panic(fmt.Sprintf("participation: publish to attempt %d of an event that is %v with %d sends", attempt.Number,
			p.State, len(p.Sends)))
	}
	s := p.send(attempt)
	if s == nil {
		if len(p.Sends) == 0 || !of.Alike {
			p.Reports++
		}
		p.Sends = append(p.Sends, Send{Attempt: attempt})
		s = &p.Sends[len(p.Sends)-1]
	}
	s.Sent++
}

// Acked notes the answer to one publish: a sequence, or that it was refused.
func (p *Record) Acked(attempt Attempt, ack stream.Ack) {
	s := p.send(attempt)
	if s != nil && ack.Status == stream.Refused {
		s.Refused = min(s.Refused+1, s.Sent-s.Acked)
	}
	if s == nil || ack.Sequence == 0 || (ack.Status != stream.Stored && ack.Status != stream.Duplicate) {
		return
	}
	s.Acked = min(s.Acked+1, s.Sent-s.Refused)
	if s.Lowest == 0 || ack.Sequence < s.Lowest {
		s.Lowest = ack.Sequence
	}
}

// SentTo reports whether a publish to an attempt was made, or may have been.
func (p *Record) SentTo(attempt Attempt) bool { return p.send(attempt) != nil }

// Exhausted reports whether the event has used up its reports up to the round that it joined last: most reports in its
// first round, and one more in each further round of an interactive phase.
func (p *Record) Exhausted(most uint32) bool {
	return uint64(p.Reports) >= uint64(most)+uint64(max(p.Rounds, 1)-1)
}

func (p *Record) send(attempt Attempt) *Send {
	i := slices.IndexFunc(p.Sends, func(s Send) bool { return s.Attempt == attempt })
	if i < 0 {
		return nil
	}
	return &p.Sends[i]
}

// A Closed is a verified Close.
type Closed struct {
	Round    stream.Round
	Attempt  Attempt // its Open, as read beside the Close
	Manifest stream.Hash
	Cutoff   uint64 // highest sequence that the stage opened
	Void     bool
}

// Decide settles a charged event by the Close of its round, deletes its counts, and returns the state of all its
// rounds of the phase. It must not be called while an acknowledgement is on its way that would be believed. A Close of
// another round or manifest changes nothing.
func (p *Record) Decide(c Closed) State {
	if p.State != Charged || c.Round != p.Draw.Round || c.Manifest != p.Draw.Manifest {
		return p.State
	}
	p.settle(p.outcome(c))
	return p.State
}

func (p *Record) outcome(c Closed) State {
	if c.Void {
		return Unknown
	}
	if s := p.send(c.Attempt); s != nil && s.Lowest != 0 && s.Lowest <= c.Cutoff {
		return Counted
	}
	if p.Draw.Final {
		return Unknown
	}
	if len(p.Sends) == 0 {
		// Charged and then nothing: a publish may have followed that was not noted only if the caller broke its
		// obligation, but a refund needs a sequence and there is none.
		return Unknown
	}
	for _, s := range p.Sends {
		if p.Draw.Shared() && s.Attempt != c.Attempt {
			continue
		}
		if s.Acked+s.Refused != s.Sent || s.Acked > 0 && (s.Attempt != c.Attempt || s.Lowest <= c.Cutoff) {
			return Unknown
		}
	}
	return Uncounted
}

// Abandon settles a charged event that waits for no Close: the task ended without one, the records of the round were
// removed, or it was sent as often as it may be.
func (p *Record) Abandon() {
	if p.State == Charged {
		p.settle(Unknown)
	}
}

// settle records the outcome of the last round, together with the outcomes of the phase's earlier rounds.
func (p *Record) settle(s State) {
	switch {
	case p.Before == Counted, p.Before == Unknown && s == Uncounted:
		s = p.Before
	}
	clear(p.Draw.Counts)
	p.State, p.Draw.Counts, p.Draw.Secret, p.Sends, p.Before = s, nil, [32]byte{}, nil, Fresh
}

// Outcome returns the outcome as far as it is known now: Unknown while the event is charged, unless an earlier
// round Counted it.
func (p *Record) Outcome() State {
	switch {
	case p.State == Fresh:
		return Uncounted
	case p.State != Charged:
		return p.State
	case p.Before == Counted:
		return Counted
	}
	return Unknown
}
