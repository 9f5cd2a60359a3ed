package participation

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// As many attempts at a round as there are, and one alone.
var every, one = Attempts{Most: math.MaxUint32}, Attempts{Most: 1}

// attempted is an attempt at a round.
type attempted struct {
	round   stream.Round
	attempt stream.Attempt
}

// A truth holds what really happened to one event: the sequences under which the broker stored it, by round and
// attempt. The device sees only replies.
type truth struct {
	stored map[attempted][]uint64
	last   uint64 // sequence
}

// counted reports whether the batch of an attempt may hold the event.
func (u *truth) counted(round stream.Round, attempt stream.Attempt, cutoff uint64) bool {
	for _, s := range u.stored[attempted{round, attempt}] {
		if s <= cutoff {
			return true
		}
	}
	return false
}

// TestPossiblyCountedNeverGoesAgain checks that an event that may be in a batch never takes part again, whatever the
// broker replies or swallows, however attempts are opened and closed, and wherever the device loses its memory.
func TestPossiblyCountedNeverGoesAgain(t *testing.T) {
	for range 20 {
		rapid.Check(t, possiblyCountedNeverGoesAgain)
	}
}

func possiblyCountedNeverGoesAgain(t *rapid.T) {
	floors, of := rapid.Bool().Draw(t, "floors"), every
	if floors {
		of = one
	}
	u := &truth{stored: map[attempted][]uint64{}}
	var p Record
	var durable []byte
	write := func() {
		var err error
		if durable, err = p.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	}
	manifest := func(r stream.Round) stream.Hash { return stream.HashOf(fmt.Append(nil, "round", r)) }
	batches := 0 // that may hold the event
	for round := stream.Round(1); round <= 4; round++ {
		if p.State == Fresh || p.State == Uncounted {
			d := Draw{Round: round, Step: stream.Step(round), Manifest: manifest(round), Counts: []byte{byte(round)}}
			if err := p.Join(d); err != nil {
				t.Fatal(err)
			}
		} else if err := p.Join(Draw{Round: round, Manifest: manifest(round)}); err == nil {
			t.Fatalf("joined round %d as %v", round, p.State)
		}
		attempt, pending := stream.Attempt(1), []stream.Attempt(nil) // attempts whose answer is on its way
		sent := map[stream.Attempt]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"send", "answer", "attempt", "crash", "others"}).Draw(t, "step") {
			case "send":
				if p.State != Charged || p.Draw.Round != round || !p.MaySend(nth(attempt), of) {
					continue
				}
				p.Sending(nth(attempt), of)
				write()
				sent[attempt] = true
				pending = append(pending, attempt)
			case "answer":
				if len(pending) == 0 {
					continue
				}
				a := pending[0]
				pending = pending[1:]
				p.Acked(nth(a), u.publish(t, round, a))
				if rapid.Bool().Draw(t, "flush") {
					write()
				}
			case "attempt":
				attempt++
			case "crash":
				if durable == nil {
					continue
				}
				for _, a := range pending { // they arrive all the same
					u.publish(t, round, a)
				}
				pending = nil
				p = Record{}
				if err := p.UnmarshalBinary(durable); err != nil {
					t.Fatal(err)
				}
			case "others":
				u.last += uint64(rapid.IntRange(0, 3).Draw(t, "n"))
			}
		}
		for _, a := range pending {
			p.Acked(nth(a), u.publish(t, round, a))
		}
		closing := stream.Attempt(rapid.Uint64Range(1, uint64(attempt)).Draw(t, "closing"))
		c := Closed{
			Round: round, Attempt: nth(closing), Manifest: manifest(round),
			Cutoff: rapid.Uint64Range(0, u.last+1).Draw(t, "cutoff"), Void: rapid.IntRange(0, 5).Draw(t, "void") == 0,
		}
		if p.State == Charged && p.Draw.Round == round {
			p.Decide(c)
			write()
		}
		if floors && len(sent) > 1 {
			t.Fatalf("sent to %d attempts though somebody may have looked at the first", len(sent))
		}
		in := !c.Void && u.counted(round, closing, c.Cutoff)
		if in {
			batches++
		}
		if batches > 1 {
			t.Fatal("the event may be in two batches")
		}
		if p.State == Uncounted && p.Draw.Round == round {
			if in || c.Void {
				t.Fatalf("uncounted by a Close that holds it, or is void: %+v", c)
			}
			for a := range sent {
				if a != closing && len(u.stored[attempted{round, a}]) > 0 {
					t.Fatalf("uncounted though attempt %d, which has a report, never closed", a)
				}
			}
		}
		if p.State == Counted && p.Draw.Round == round && !in {
			t.Fatal("counted, and in no batch")
		}
		if p.State != Charged && p.Draw.Counts != nil {
			t.Fatalf("draw kept as %v", p.State)
		}
	}
}

// publish plays the broker and returns its answer: it may store the message once more outside its window of ids.
func (u *truth) publish(t *rapid.T, round stream.Round, attempt stream.Attempt) stream.Ack {
	at := attempted{round, attempt}
	store := func() uint64 {
		u.last++
		u.stored[at] = append(u.stored[at], u.last)
		return u.last
	}
	switch rapid.SampledFrom([]string{"stored", "duplicate", "lost", "unanswered", "refused", "zero"}).Draw(t, "broker") {
	case "stored":
		return stream.Ack{Status: stream.Stored, Sequence: store()}
	case "duplicate":
		if s := u.stored[at]; len(s) > 0 {
			return stream.Ack{Status: stream.Duplicate, Sequence: s[len(s)-1]} // its window knows the last only
		}
	case "unanswered":
		store()
	case "refused":
		return stream.Ack{Status: stream.Refused}
	case "zero":
		store()
		return stream.Ack{Status: stream.Stored}
	}
	return stream.Ack{}
}

// The rules of a refund, one case each.
func TestDecide(t *testing.T) {
	stored := func(s uint64) stream.Ack { return stream.Ack{Status: stream.Stored, Sequence: s} }
	unknown, refused := stream.Ack{}, stream.Ack{Status: stream.Refused}
	type send struct {
		attempt stream.Attempt
		ack     stream.Ack
	}
	for _, c := range []struct {
		name  string
		sends []send
		close Closed
		want  State
	}{
		{"below the cutoff", []send{{1, stored(7)}}, Closed{Attempt: nth(1), Cutoff: 9}, Counted},
		{"at the cutoff", []send{{1, stored(9)}}, Closed{Attempt: nth(1), Cutoff: 9}, Counted},
		{"above the cutoff", []send{{1, stored(10)}}, Closed{Attempt: nth(1), Cutoff: 9}, Uncounted},
		{"no answer", []send{{1, unknown}}, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"no answer, retry above", []send{{1, unknown}, {1, stored(10)}}, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"no answer, retry below", []send{{1, unknown}, {1, stored(8)}}, Closed{Attempt: nth(1), Cutoff: 9}, Counted},
		{"refused", []send{{1, refused}}, Closed{Attempt: nth(1), Cutoff: 9}, Uncounted},
		{"refused, retry above", []send{{1, refused}, {1, stored(10)}}, Closed{Attempt: nth(1), Cutoff: 9}, Uncounted},
		{"refused, retry below", []send{{1, refused}, {1, stored(9)}}, Closed{Attempt: nth(1), Cutoff: 9}, Counted},
		{"refused, retry without answer", []send{{1, refused}, {1, unknown}}, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"no answer, retry refused", []send{{1, unknown}, {1, refused}}, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"refused by an attempt that died", []send{{1, refused}, {2, stored(12)}}, Closed{Attempt: nth(2), Cutoff: 9},
			Uncounted},
		{"refused by an attempt that died, and never sent again", []send{{1, refused}}, Closed{Attempt: nth(2), Cutoff: 9},
			Uncounted},
		{"an attempt that died, refused by the next", []send{{1, stored(3)}, {2, refused}}, Closed{Attempt: nth(2),
			Cutoff: 9}, Unknown},
		{"refused, void", []send{{1, refused}}, Closed{Attempt: nth(1), Cutoff: 9, Void: true}, Unknown},
		{"the lowest sequence counts", []send{{1, stored(9)}, {1, stored(12)}}, Closed{Attempt: nth(1), Cutoff: 9}, Counted},
		{"all above", []send{{1, stored(11)}, {1, stored(12)}}, Closed{Attempt: nth(1), Cutoff: 9}, Uncounted},
		{"an attempt that died", []send{{1, stored(3)}, {2, stored(12)}}, Closed{Attempt: nth(2), Cutoff: 9}, Unknown},
		{"an attempt that died, counted in the next", []send{{1, stored(3)}, {2, stored(9)}}, Closed{Attempt: nth(2),
			Cutoff: 9}, Counted},
		{"the older attempt closed", []send{{1, stored(30)}, {2, stored(31)}}, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"only another attempt closed", []send{{1, stored(3)}}, Closed{Attempt: nth(2), Cutoff: 9}, Unknown},
		{"nothing was sent", nil, Closed{Attempt: nth(1), Cutoff: 9}, Unknown},
		{"void, below", []send{{1, stored(7)}}, Closed{Attempt: nth(1), Cutoff: 9, Void: true}, Unknown},
		{"void, above", []send{{1, stored(10)}}, Closed{Attempt: nth(1), Cutoff: 9, Void: true}, Unknown},
		{"Close of another manifest", []send{{1, stored(7)}}, Closed{Attempt: nth(1), Cutoff: 9, Manifest: stream.Hash{1}},
			Charged},
		{"Close of another round", []send{{1, stored(7)}}, Closed{Attempt: nth(1), Cutoff: 9, Round: 6}, Charged},
	} {
		var p Record
		must(t, p.Join(Draw{Round: 5, Counts: []byte{1}}))
		for _, s := range c.sends {
			p.Sending(nth(s.attempt), every)
			p.Acked(nth(s.attempt), s.ack)
		}
		if c.close.Round == 0 {
			c.close.Round = 5
		}
		if got := p.Decide(c.close); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFinalDraw: of a draw that is final nothing is given back, whatever broker and stage reply, and the stored record
// is the same.
func TestFinalDraw(t *testing.T) {
	for _, ack := range []stream.Ack{{}, {Status: stream.Refused}, {Status: stream.Stored, Sequence: 10},
		{Status: stream.Stored, Sequence: 9}} {
		for _, void := range []bool{false, true} {
			p := Record{Key: Key{1}}
			must(t, p.Join(Draw{Round: 5, Step: 1, Final: true, Counts: []byte{1}}))
			p.Sending(nth(1), every)
			p.Acked(nth(1), ack)
			want := Unknown
			if ack.Sequence == 9 && !void {
				want = Counted
			}
			for range 2 { // before and after it is stored
				data, err := p.MarshalBinary()
				must(t, err)
				p = Record{Key: p.Key}
				must(t, p.UnmarshalBinary(data))
				if p.Decide(Closed{Round: 5, Attempt: nth(1), Cutoff: 9, Void: void}) != want || !p.Draw.Final {
					t.Errorf("answered %v, void %t: %v, final %t, want %v", ack, void, p.State, p.Draw.Final, want)
				}
			}
			for _, final := range []bool{true, false} {
				if p.Join(Draw{Round: 6, Step: 2, Final: final, Manifest: stream.Hash{6}}) == nil {
					t.Errorf("answered %v, void %t: joins another round, with a draw that is final: %t", ack, void, final)
				}
			}
		}
	}
	p := Record{State: Uncounted, Rounds: 1, Draw: Draw{Round: 5, Final: true}}
	if _, err := p.MarshalBinary(); err == nil {
		t.Error("an event is stored as uncounted by a final draw")
	}
	asked := Record{}
	must(t, asked.Join(Draw{Round: 1, Step: 1, Most: 3, Final: true, Manifest: stream.Hash{1}}))
	asked.Abandon()
	if asked.Join(Draw{Round: 2, Step: 2, Most: 3, Manifest: stream.Hash{2}}) == nil {
		t.Error("an event whose draws are final joins with another that is not")
	}
	must(t, asked.Join(Draw{Round: 2, Step: 2, Most: 3, Final: true, Manifest: stream.Hash{2}}))
}

// Join refuses a second draw for a round, and one manifest in two rounds.
func TestJoin(t *testing.T) {
	var p Record
	must(t, p.Join(Draw{Round: 2, Step: 2, Manifest: stream.Hash{2}}))
	p.Sending(nth(1), every)
	p.Acked(nth(1), stream.Ack{Status: stream.Stored, Sequence: 4})
	p.Decide(Closed{Round: 2, Attempt: nth(1), Manifest: stream.Hash{2}, Cutoff: 3})
	if p.State != Uncounted || p.Refunds != 0 {
		t.Fatalf("%v with %d refunds, want uncounted with 0", p.State, p.Refunds)
	}
	for _, d := range []Draw{
		{Round: 1, Step: 3, Manifest: stream.Hash{1}}, {Round: 2, Step: 3, Manifest: stream.Hash{3}},
		{Round: 3, Step: 3, Manifest: stream.Hash{2}},
		{Round: 3, Step: 2, Manifest: stream.Hash{3}},
	} {
		if err := p.Join(d); err == nil {
			t.Errorf("joined round %d after round 2", d.Round)
		}
	}
	must(t, p.Join(Draw{Round: 3, Step: 3, Manifest: stream.Hash{3}}))
	if p.Refunds != 1 || p.Rounds != 1 {
		t.Errorf("%d refunds, %d rounds of the phase, want 1 and 1", p.Refunds, p.Rounds)
	}
}

func TestNothingPrivatePrints(t *testing.T) {
	p := Record{Key: EventKey("ann"), Draw: Draw{Round: 3, Counts: []byte{77, 78}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if s := fmt.Sprintf(verb, p); strings.Contains(s, "77") || strings.Contains(s, "4d4e") ||
			strings.Contains(s, fmt.Sprintf("%x", p.Key[:2])) {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

// TestAttemptsOfOneNumber: what the automaton does with two attempts of one number.
func TestAttemptsOfOneNumber(t *testing.T) {
	first, other := Attempt{Number: 3, Open: stream.Hash{1}}, Attempt{Number: 3, Open: stream.Hash{2}}
	sent := func(sequence uint64, to ...Attempt) Record {
		p := Record{Key: Key{1}}
		must(t, p.Join(Draw{Round: 1, Step: 1, Counts: []byte{5}}))
		for _, a := range to {
			p.Sending(a, every)
			p.Acked(a, stream.Ack{Status: stream.Stored, Sequence: sequence})
		}
		return p
	}
	p := sent(7, first)
	for _, c := range []struct {
		to           Attempt
		plain, floor bool
	}{
		{first, true, true}, {other, true, false}, {Attempt{Number: 4}, true, false}, {Attempt{Number: 2}, false, false},
		{Attempt{}, false, false},
	} {
		if p.MaySend(c.to, every) != c.plain || p.MaySend(c.to, one) != c.floor {
			t.Errorf("to attempt %d: may send %t, under floors %t", c.to.Number, p.MaySend(c.to, every), p.MaySend(c.to, one))
		}
	}
	if p.Answered(other) || !p.Answered(first) {
		t.Error("an answer of one attempt is one of the other")
	}
	if p := sent(7, first, other); p.MaySend(first, every) || !p.MaySend(other, one) || len(p.Sends) != 2 {
		t.Errorf("goes back to an older attempt of the number, or not on: %v", p.Sends)
	}
	for _, c := range []struct {
		p      Record
		closed Attempt
		cutoff uint64
		want   State
	}{
		{sent(7, first), first, 6, Uncounted}, {sent(7, first), first, 7, Counted},
		{sent(7, first), other, 6, Unknown}, {sent(7, first), other, 7, Unknown},
		{sent(7, first, other), other, 6, Unknown}, {sent(7, first, other), other, 7, Counted},
	} {
		data, err := c.p.MarshalBinary()
		must(t, err)
		again := Record{Key: c.p.Key}
		must(t, again.UnmarshalBinary(data))
		if got := again.Decide(Closed{Round: 1, Attempt: c.closed, Cutoff: c.cutoff}); got != c.want {
			t.Errorf("%d sends, closed by %v at %d: %v, want %v", len(c.p.Sends), c.closed, c.cutoff, got, c.want)
		}
	}
	p = sent(7, first)
	p.Sends = append(p.Sends, p.Sends[0])
	data, err := p.MarshalBinary()
	must(t, err)
	if new(Record).UnmarshalBinary(data) == nil {
		t.Error("two sends to one attempt are read")
	}
}

// nth returns the attempt of a number whose Open has no hash to speak of.
func nth(n stream.Attempt) Attempt { return Attempt{Number: n} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
