package client_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
)

// A truth is what really happened to one event: the sequences under which the broker stored it, by round and attempt.
// The device sees answers only.
type truth struct {
	stored map[[2]uint64][]uint64
	last   uint64 // sequence
}

// counted says whether the batch of an attempt may hold the event.
func (u *truth) counted(round, attempt, cutoff uint64) bool {
	for _, s := range u.stored[[2]uint64{round, attempt}] {
		if s <= cutoff {
			return true
		}
	}
	return false
}

// Whatever the broker answers or swallows, whoever opens and closes attempts, and wherever the device loses its memory,
// an event that may be in a batch never takes part again.
func TestPossiblyCountedNeverGoesAgain(t *testing.T) {
	for range 20 {
		rapid.Check(t, possiblyCountedNeverGoesAgain)
	}
}

func possiblyCountedNeverGoesAgain(t *rapid.T) {
	floors := rapid.Bool().Draw(t, "floors")
	u := &truth{stored: map[[2]uint64][]uint64{}}
	var p client.Participation
	var durable []byte
	write := func() {
		var err error
		if durable, err = p.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	}
	manifest := func(r uint64) stream.Hash { return stream.HashOf(fmt.Append(nil, "round", r)) }
	batches := 0 // that may hold the event
	for round := uint64(1); round <= 4; round++ {
		if p.State == client.Fresh || p.State == client.Uncounted {
			d := client.Draw{Round: round, Step: round, Manifest: manifest(round), Counts: []byte{byte(round)}}
			if err := p.Join(d); err != nil {
				t.Fatal(err)
			}
		} else if err := p.Join(client.Draw{Round: round, Manifest: manifest(round)}); err == nil {
			t.Fatalf("joined round %d as %v", round, p.State)
		}
		attempt, pending := uint64(1), []uint64(nil) // attempts whose answer is on its way
		sent := map[uint64]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"send", "answer", "attempt", "crash", "others"}).Draw(t, "step") {
			case "send":
				if p.State != client.Charged || p.Draw.Round != round || !p.MaySend(nth(attempt), floors) {
					continue
				}
				p.Sending(nth(attempt), floors)
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
				p = client.Participation{}
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
		closing := rapid.Uint64Range(1, attempt).Draw(t, "closing")
		c := client.Closed{
			Round: round, Attempt: nth(closing), Manifest: manifest(round),
			Cutoff: rapid.Uint64Range(0, u.last+1).Draw(t, "cutoff"), Void: rapid.IntRange(0, 5).Draw(t, "void") == 0,
		}
		if p.State == client.Charged && p.Draw.Round == round {
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
		if p.State == client.Uncounted && p.Draw.Round == round {
			if in || c.Void {
				t.Fatalf("uncounted by a Close that holds it, or is void: %+v", c)
			}
			for a := range sent {
				if a != closing {
					t.Fatalf("uncounted though attempt %d never closed", a)
				}
			}
		}
		if p.State == client.Counted && p.Draw.Round == round && !in {
			t.Fatal("counted, and in no batch")
		}
		if p.State != client.Charged && p.Draw.Counts != nil {
			t.Fatalf("draw kept as %v", p.State)
		}
	}
}

// publish is what the broker does, and what it answers: it may store the message once more outside its window of ids.
func (u *truth) publish(t *rapid.T, round, attempt uint64) stream.Ack {
	at := [2]uint64{round, attempt}
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
		attempt uint64
		ack     stream.Ack
	}
	for _, c := range []struct {
		name  string
		sends []send
		close client.Closed
		want  client.State
	}{
		{"below the cutoff", []send{{1, stored(7)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Counted},
		{"at the cutoff", []send{{1, stored(9)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Counted},
		{"above the cutoff", []send{{1, stored(10)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Uncounted},
		{"no answer", []send{{1, unknown}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"no answer, retry above", []send{{1, unknown}, {1, stored(10)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"no answer, retry below", []send{{1, unknown}, {1, stored(8)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Counted},
		{"refused", []send{{1, refused}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"refused, retry above", []send{{1, refused}, {1, stored(10)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"the lowest sequence counts", []send{{1, stored(9)}, {1, stored(12)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Counted},
		{"all above", []send{{1, stored(11)}, {1, stored(12)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Uncounted},
		{"an attempt that died", []send{{1, stored(3)}, {2, stored(12)}}, client.Closed{Attempt: nth(2), Cutoff: 9}, client.Unknown},
		{"an attempt that died, counted in the next", []send{{1, stored(3)}, {2, stored(9)}}, client.Closed{Attempt: nth(2), Cutoff: 9}, client.Counted},
		{"the older attempt closed", []send{{1, stored(30)}, {2, stored(31)}}, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"only another attempt closed", []send{{1, stored(3)}}, client.Closed{Attempt: nth(2), Cutoff: 9}, client.Unknown},
		{"nothing was sent", nil, client.Closed{Attempt: nth(1), Cutoff: 9}, client.Unknown},
		{"void, below", []send{{1, stored(7)}}, client.Closed{Attempt: nth(1), Cutoff: 9, Void: true}, client.Unknown},
		{"void, above", []send{{1, stored(10)}}, client.Closed{Attempt: nth(1), Cutoff: 9, Void: true}, client.Unknown},
		{"Close of another manifest", []send{{1, stored(7)}}, client.Closed{Attempt: nth(1), Cutoff: 9, Manifest: stream.Hash{1}}, client.Charged},
		{"Close of another round", []send{{1, stored(7)}}, client.Closed{Attempt: nth(1), Cutoff: 9, Round: 6}, client.Charged},
	} {
		var p client.Participation
		must(t, p.Join(client.Draw{Round: 5, Counts: []byte{1}}))
		for _, s := range c.sends {
			p.Sending(nth(s.attempt), false)
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

// Join refuses a second draw for a round, and one manifest in two rounds.
func TestJoin(t *testing.T) {
	var p client.Participation
	must(t, p.Join(client.Draw{Round: 2, Step: 2, Manifest: stream.Hash{2}}))
	p.Sending(nth(1), false)
	p.Acked(nth(1), stream.Ack{Status: stream.Stored, Sequence: 4})
	p.Decide(client.Closed{Round: 2, Attempt: nth(1), Manifest: stream.Hash{2}, Cutoff: 3})
	if p.State != client.Uncounted || p.Refunds != 0 {
		t.Fatalf("%v with %d refunds, want uncounted with 0", p.State, p.Refunds)
	}
	for _, d := range []client.Draw{
		{Round: 1, Step: 3, Manifest: stream.Hash{1}}, {Round: 2, Step: 3, Manifest: stream.Hash{3}}, {Round: 3, Step: 3, Manifest: stream.Hash{2}},
		{Round: 3, Step: 2, Manifest: stream.Hash{3}},
	} {
		if err := p.Join(d); err == nil {
			t.Errorf("joined round %d after round 2", d.Round)
		}
	}
	must(t, p.Join(client.Draw{Round: 3, Step: 3, Manifest: stream.Hash{3}}))
	if p.Refunds != 1 || p.Rounds != 1 {
		t.Errorf("%d refunds, %d rounds of the phase, want 1 and 1", p.Refunds, p.Rounds)
	}
}

func TestNothingPrivatePrints(t *testing.T) {
	p := client.Participation{Key: client.EventKey("ann"), Draw: client.Draw{Round: 3, Counts: []byte{77, 78}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if s := fmt.Sprintf(verb, p); strings.Contains(s, "77") || strings.Contains(s, "4d4e") || strings.Contains(s, fmt.Sprintf("%x", p.Key[:2])) {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

// Every record decodes to what was encoded, and no other bytes decode.
func FuzzRecord(f *testing.F) {
	var p client.Participation
	must(f, p.Join(client.Draw{Round: 300, Manifest: stream.Hash{1}, Place: 2, Counts: []byte{1, 2, 3}}))
	add := func() {
		data, err := p.MarshalBinary()
		must(f, err)
		f.Add(data)
		f.Add(data[:len(data)-1])
		f.Add(append(data, 0))
	}
	add()
	p.Sending(nth(1), false)
	p.Acked(nth(1), stream.Ack{Status: stream.Stored, Sequence: 1 << 40})
	p.Sending(nth(2), false)
	add()
	p.Decide(client.Closed{Round: 300, Attempt: nth(2), Manifest: stream.Hash{1}})
	add()
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p client.Participation
		if err := p.UnmarshalBinary(data); err != nil {
			return
		}
		again, err := p.MarshalBinary()
		if err != nil || string(again) != string(data) {
			t.Fatalf("decoded bytes that encode otherwise: %v", err)
		}
	})
}
