package participation

import (
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// TestRecordsOfRounds: a record says no more rounds than its phase has, and none of a state that the rounds before
// cannot have left.
func TestRecordsOfRounds(t *testing.T) {
	of := func(state, before State, most, rounds uint32) Record {
		return Record{State: state, Before: before, Rounds: rounds, Draw: Draw{Round: 7, Most: most}}
	}
	for _, p := range []Record{
		of(Counted, Fresh, 1, 1), of(Counted, Fresh, 0, 1), of(Unknown, Fresh, 3, 3),
		of(Charged, Fresh, 3, 1), of(Charged, Uncounted, 3, 2), of(Charged, Counted, 3, 3),
	} {
		data, err := p.MarshalBinary()
		must(t, err)
		var again Record
		must(t, again.UnmarshalBinary(data))
		if again.State != p.State || again.Before != p.Before || again.Rounds != p.Rounds || again.Draw.Most != p.Draw.Most {
			t.Errorf("%v of %d rounds became %v of %d", p.State, p.Rounds, again.State, again.Rounds)
		}
		const mostAt, roundsAt = 6, 7 // in the encoding of these small numbers
		for at, v := range map[int]byte{mostAt: byte(p.Rounds) - 1, roundsAt: byte(max(1, p.Draw.Most)) + 1} {
			bad := append([]byte(nil), data...)
			if bad[at] = v; v != data[at] && max(1, bad[mostAt]) < bad[roundsAt] && again.UnmarshalBinary(bad) == nil {
				t.Errorf("a record of %d rounds of %d is read", bad[roundsAt], bad[mostAt])
			}
		}
	}
	for _, p := range []Record{
		of(Counted, Fresh, 3, 0), of(Counted, Fresh, 3, 4), of(Counted, Fresh, 1, 2),
		of(Counted, Unknown, 3, 2), of(Charged, Counted, 3, 1), of(Charged, Fresh, 3, 2),
		of(Charged, Charged, 3, 2), of(Charged, Refused, 3, 2), of(Fresh, Fresh, 3, 1),
	} {
		if _, err := p.MarshalBinary(); err == nil {
			t.Errorf("%v in round %d of %d, after %v, is written", p.State, p.Rounds, p.Draw.Most, p.Before)
		}
	}
}

// Every record decodes to what was encoded, and no other bytes decode.
func FuzzRecord(f *testing.F) {
	var p Record
	must(f, p.Join(Draw{Round: 300, Manifest: stream.Hash{1}, Place: 2, Counts: []byte{1, 2, 3}}))
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
	p.Decide(Closed{Round: 300, Attempt: nth(2), Manifest: stream.Hash{1}})
	add()
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Record
		if err := p.UnmarshalBinary(data); err != nil {
			return
		}
		again, err := p.MarshalBinary()
		if err != nil || string(again) != string(data) {
			t.Fatalf("decoded bytes that encode otherwise: %v", err)
		}
	})
}
