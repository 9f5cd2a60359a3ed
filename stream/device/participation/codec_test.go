package participation

import (
	"bytes"
	"encoding/hex"
	"reflect"
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

// TestOldRecordsAreRead: records as they were written before there were tasks of two operators are read, and written the
// same way.
func TestOldRecordsAreRead(t *testing.T) {
	for _, text := range []string{"0101000101020101030100000000000000000000000000000000000000000000000000000000000000000200000000000000" +
		"000000000000000003000000000000000000000000000000040101010100ac02070000000000000000000000000000000000" +
		"0000000000000000000000000000020506",
		"0102000101020101030100000000000000000000000000000000000000000000000000000000000000"} {
		data, err := hex.DecodeString(text)
		must(t, err)
		var p Record
		must(t, p.UnmarshalBinary(data))
		again, err := p.MarshalBinary()
		must(t, err)
		if hex.EncodeToString(again) != text || p.Draw.Round != 3 || p.Draw.Shared() {
			t.Errorf("%x became %+v and %x", data, p, again)
		}
	}
}

// TestRecordsOfTwoOperators: a charged record has the secret of its draw and both hashes of each attempt, and version 2;
// a settled one has neither, and is as all others.
func TestRecordsOfTwoOperators(t *testing.T) {
	var p Record
	must(t, p.Join(Draw{Round: 3, Step: 3, Manifest: stream.Hash{1}, Secret: [32]byte{9}, Counts: []byte{7}}))
	of := Attempts{Most: 2, Alike: true}
	for _, a := range []Attempt{{1, stream.Hash{1}, stream.Hash{2}}, {1, stream.Hash{1}, stream.Hash{3}}} {
		p.Sending(a, of)
	}
	data, err := p.MarshalBinary()
	must(t, err)
	var again Record
	must(t, again.UnmarshalBinary(data))
	if data[0] != 2 || !reflect.DeepEqual(again, p) {
		t.Errorf("version %d: %+v became %+v", data[0], p, again)
	}
	for _, v := range []byte{1, 3} {
		bad := bytes.Clone(data)
		if bad[0] = v; again.UnmarshalBinary(bad) == nil {
			t.Errorf("read as version %d", v)
		}
	}
	none := bytes.Clone(data)
	clear(none[bytes.IndexByte(none, 9):][:1])
	if again.UnmarshalBinary(none) == nil {
		t.Error("version 2 without a secret is read")
	}
	bad := Record{State: Charged, Rounds: 1, Draw: Draw{Round: 1, Secret: [32]byte{1}, Report: [16]byte{1}}}
	if _, err := bad.MarshalBinary(); err == nil {
		t.Error("a record with a report id beside its secret is written")
	}
	p.Decide(Closed{Round: 3, Attempt: Attempt{Number: 2}, Manifest: stream.Hash{1}})
	if data, err = p.MarshalBinary(); err != nil || data[0] != 1 || p.State != Uncounted || p.Draw.Shared() {
		t.Errorf("settled: %v, version %d, %+v", err, data[0], p)
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
	p.Sending(nth(1), every)
	p.Acked(nth(1), stream.Ack{Status: stream.Stored, Sequence: 1 << 40})
	p.Sending(nth(2), every)
	add()
	p.Decide(Closed{Round: 300, Attempt: nth(2), Manifest: stream.Hash{1}})
	add()
	p = Record{}
	must(f, p.Join(Draw{Round: 300, Manifest: stream.Hash{1}, Place: 2, Counts: []byte{1, 2, 3}, Secret: [32]byte{4}}))
	p.Sending(Attempt{1, stream.Hash{5}, stream.Hash{6}}, every)
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
