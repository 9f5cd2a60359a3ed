package participation

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// Whatever a learner announces, honest or not, and whatever the broker replies, an event takes part in one phase alone:
// one of its rounds, or in an interactive phase at most as many as the phase has, each at a later step than the one
// before and with a draw of its own. It is uncounted only if no batch can hold it.
func TestOnePhaseAndNoMoreThanItsRounds(t *testing.T) {
	for range 20 {
		rapid.Check(t, onePhase)
	}
}

func onePhase(t *rapid.T) {
	u := &truth{stored: map[attempted][]uint64{}}
	most := []uint32{0, 1, 3, 2} // rounds of a user in phases 1 to 3
	final := rapid.Bool().Draw(t, "final")
	var p Record
	joined := map[uint32]map[stream.Step]bool{} // steps by phase
	in := map[uint32]int{}                      // batches that may hold it, by phase
	asked := map[uint32]bool{}                  // phases in which it is charged for good
	counted := false                            // in a batch of its phase
	forget := func() {                          // a crash: only what was durable is there
		data, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		again := Record{Key: p.Key}
		if err := again.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		p = again
	}
	step := stream.Step(1)
	for round := stream.Round(1); round <= 12; round++ {
		phase := uint32(1 + (step-1)/4%3)
		if rapid.IntRange(0, 4).Draw(t, "lies") == 0 { // a learner that goes back, or repeats
			phase, step = uint32(rapid.IntRange(1, 3).Draw(t, "phase")), stream.Step(rapid.IntRange(1, 12).Draw(t, "step"))
		}
		d := Draw{Round: round, Phase: phase, Step: step, Most: most[phase], Final: final,
			Manifest: stream.HashOf(fmt.Append(nil, round)), Counts: []byte{byte(round)}}
		before := p.Draw
		was := p.State
		if p.State == Charged || rapid.IntRange(0, 5).Draw(t, "leaves") == 0 {
			step++
			continue
		}
		if p.Join(d) == nil {
			if joined[phase] == nil {
				joined[phase] = map[stream.Step]bool{}
			}
			if joined[phase][step] {
				t.Fatalf("answered step %d twice", step)
			}
			joined[phase][step] = true
			if was != Fresh && (step <= before.Step || phase < before.Phase) {
				t.Fatalf("answered step %d of phase %d after step %d of phase %d", step, phase, before.Step, before.Phase)
			}
			if n := len(joined[phase]); most[phase] > 1 && n > int(most[phase]) {
				t.Fatalf("answered %d rounds of a phase of %d", n, most[phase])
			}
			if final && (len(joined) > 1 || was == Uncounted || most[phase] <= 1 && len(joined[phase]) > 1) {
				t.Fatalf("drawn again as %v, though a draw is final: %v", was, joined)
			}
			for other := range asked {
				if other != phase {
					t.Fatalf("answers phase %d, and may be in a batch of phase %d", phase, other)
				}
			}
			if asked[phase] && most[phase] <= 1 {
				t.Fatalf("answers two rounds of phase %d", phase)
			}
			if before.Phase != phase {
				counted = false
			}
			attempt := stream.Attempt(rapid.IntRange(1, 2).Draw(t, "attempt"))
			for range rapid.IntRange(0, 2).Draw(t, "sends") {
				p.Sending(nth(attempt), every)
				p.Acked(nth(attempt), u.publish(t, round, attempt))
			}
			forget()
			c := Closed{Round: round, Attempt: nth(stream.Attempt(rapid.IntRange(1, 2).Draw(t, "closing"))),
				Manifest: d.Manifest,
				Cutoff:   rapid.Uint64Range(0, u.last+1).Draw(t, "cutoff"), Void: rapid.IntRange(0, 5).Draw(t, "void") == 0}
			state := p.Decide(c)
			holds := !c.Void && u.counted(round, c.Attempt.Number, c.Cutoff)
			if holds {
				in[phase]++
			}
			if len(in) > 1 {
				t.Fatalf("batches of two phases may hold it: %v", in)
			}
			counted = counted || state == Counted
			if counted && state != Counted {
				t.Fatalf("a batch of the phase counted it, and it says %v", state)
			}
			if state == Counted && in[phase] == 0 {
				t.Fatal("counted, and in no batch of the phase")
			}
			if state == Uncounted && in[phase] > 0 {
				t.Fatal("uncounted, and a batch of the phase may hold it")
			}
			if final && state != Counted && state != Unknown {
				t.Fatalf("a final draw is %v", state)
			}
			if state != Uncounted {
				asked[phase] = true
			}
			if p.Draw.Counts != nil || p.Before != Fresh {
				t.Fatalf("kept a draw, or %v, when it was decided", p.Before)
			}
			forget()
			step++
		}
	}
}

// TestRoundsOfOnePhase: the rules of further rounds, one case each.
func TestRoundsOfOnePhase(t *testing.T) {
	draw := func(round stream.Round, phase uint32, step stream.Step, most uint32) Draw {
		return Draw{Round: round, Phase: phase, Step: step, Most: most, Manifest: stream.HashOf(fmt.Append(nil, round))}
	}
	// after takes part in the first rounds of an interactive phase of three, and is counted, in doubt or uncounted in
	// each.
	after := func(fates ...State) Record {
		var p Record
		for i, fate := range fates {
			r := stream.Round(i) + 1
			must(t, p.Join(draw(r, 1, stream.Step(r), 3)))
			p.Sending(nth(1), every)
			ack := stream.Ack{Status: stream.Stored, Sequence: 5}
			if fate == Unknown {
				ack = stream.Ack{}
			}
			p.Acked(nth(1), ack)
			cutoff := uint64(9)
			if fate == Uncounted {
				cutoff = 1
			}
			p.Decide(Closed{Round: r, Attempt: nth(1), Manifest: p.Draw.Manifest, Cutoff: cutoff})
		}
		return p
	}
	c, n, u := Counted, Unknown, Uncounted
	for _, one := range []struct {
		fates []State
		state State
		next  Draw
		joins bool
	}{
		{[]State{c}, c, draw(2, 1, 2, 3), true},
		{[]State{n}, n, draw(2, 1, 2, 3), true},
		{[]State{u}, u, draw(2, 1, 2, 3), true},
		{[]State{c, u}, c, draw(3, 1, 3, 3), true},
		{[]State{c, n}, c, draw(3, 1, 3, 3), true},
		{[]State{u, c}, c, draw(3, 1, 3, 3), true},
		{[]State{n, c}, c, draw(3, 1, 3, 3), true},
		{[]State{u, n}, n, draw(3, 1, 3, 3), true},
		{[]State{n, u}, n, draw(3, 1, 3, 3), true},
		{[]State{u, u, u}, u, draw(4, 1, 4, 3), false}, // three rounds were three
		{[]State{c, c, c}, c, draw(4, 1, 4, 3), false},
		{[]State{c}, c, draw(2, 1, 1, 3), false}, // the same step again
		{[]State{c, c}, c, draw(3, 1, 1, 3), false},
		{[]State{c}, c, draw(1, 1, 2, 3), false}, // the same round
		{[]State{c}, c, draw(2, 1, 2, 9), false}, // more rounds than agreed
		{[]State{c}, c, draw(2, 2, 2, 3), false}, // another phase
		{[]State{n}, n, draw(2, 2, 2, 3), false},
		{[]State{c, u}, c, draw(3, 2, 3, 1), false},
		{[]State{u, u}, u, draw(3, 2, 3, 1), true}, // in no batch of the first
		{[]State{u, u}, u, draw(3, 2, 3, 2), true},
	} {
		p := after(one.fates...)
		if p.State != one.state {
			t.Errorf("%v: %v, want %v", one.fates, p.State, one.state)
		}
		refunds := p.Refunds
		if err := p.Join(one.next); (err == nil) != one.joins {
			t.Errorf("%v, then step %d of phase %d: %v", one.fates, one.next.Step, one.next.Phase, err)
			continue
		}
		if one.joins {
			if moved := one.next.Phase != 1; (p.Refunds > refunds) != moved || (p.Rounds == 1) != moved {
				t.Errorf("%v, then phase %d: %d refunds, round %d of the phase", one.fates, one.next.Phase, p.Refunds, p.Rounds)
			}
			if want := Unknown; one.state == Counted != (p.Outcome() == Counted) || (one.state != Counted &&
				p.Outcome() != want) {
				t.Errorf("%v, and charged again: %v", one.fates, p.Outcome())
			}
		}
	}
}
