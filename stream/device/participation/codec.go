package participation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream"
)

// version is the first byte of every record, except that of a charged one with counts shared between two operators,
// which is sharedVersion.
const (
	version       = 1
	sharedVersion = 2
)

// final is the bit of a state whose draw is final.
const final = 1 << 7

// Bounds of a record; a store may be damaged, and nothing in it may grow memory.
const (
	maxSends  = 1 << 12
	maxCounts = 1 << 28 // bytes
)

var errRecord = errors.New("damaged record of a participation")

// MarshalBinary encodes all of a participation but its key:
//
//	version, state       1 byte each; the highest bit of state says that the draw is final
//	refunds, reports     uvarint each
//	phase, step, most    uvarint each
//	rounds               uvarint: of the phase that it joined
//	round                uvarint
//	manifest             32 bytes
//	and if the state is charged
//	before               1 byte: the state that earlier rounds of the phase left
//	report id, bundle    16 bytes each
//	place, n             uvarint
//	n sends              uvarints: attempt, sent, acked, refused, lowest; open: 32 bytes
//	length, counts       uvarint, bytes
//
// Of version 2, which is charged, the secret of the draw (32 bytes) replaces version 1's report id, and in a send the
// hash of a Join (32 bytes) follows the hash of its Open.
func (p Record) MarshalBinary() ([]byte, error) {
	return p.AppendBinary(make([]byte, 0, 128+len(p.Draw.Counts)))
}

// AppendBinary appends to b what MarshalBinary returns. With an error it returns b as it was.
func (p Record) AppendBinary(b []byte) ([]byte, error) {
	if p.State == Fresh || p.State > Unknown || p.Draw.Round == 0 {
		return b, fmt.Errorf("encode participation: state %v, round %d: want one that took part", p.State, p.Draw.Round)
	}
	switch most := max(1, p.Draw.Most); {
	case p.Rounds == 0 || p.Rounds > most,
		p.Before != Fresh && (p.State != Charged || p.Rounds == 1),
		p.Before == Fresh && p.State == Charged && p.Rounds > 1,
		p.Before == Charged || p.Before > Unknown,
		p.Draw.Shared() && (p.State != Charged || p.Draw.Report != [16]byte{}),
		p.Draw.Final && (p.State == Uncounted || p.Before == Uncounted || p.Refunds > 0):
		return b, fmt.Errorf("encode participation: joined %d rounds of %d, was %v, final %t: want one that took part",
			p.Rounds, most, p.Before, p.Draw.Final)
	}
	state := byte(p.State)
	if p.Draw.Final {
		state |= final
	}
	of, shared := byte(version), p.Draw.Shared()
	if shared {
		of = sharedVersion
	}
	b = append(b, of, state)
	for _, v := range [...]uint64{uint64(p.Refunds), uint64(p.Reports), uint64(p.Draw.Phase), uint64(p.Draw.Step),
		uint64(p.Draw.Most),
		uint64(p.Rounds), uint64(p.Draw.Round)} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, p.Draw.Manifest[:]...)
	if p.State != Charged {
		return b, nil
	}
	b = append(b, byte(p.Before))
	if shared {
		b = append(b, p.Draw.Secret[:]...)
	} else {
		b = append(b, p.Draw.Report[:]...)
	}
	b = append(b, p.Draw.Bundle[:]...)
	b = binary.AppendUvarint(b, uint64(p.Draw.Place))
	b = binary.AppendUvarint(b, uint64(len(p.Sends)))
	for _, s := range p.Sends {
		for _, v := range [...]uint64{uint64(s.Attempt.Number), uint64(s.Sent), uint64(s.Acked), uint64(s.Refused),
			s.Lowest} {
			b = binary.AppendUvarint(b, v)
		}
		b = append(b, s.Attempt.Open[:]...)
		if shared {
			b = append(b, s.Attempt.Join[:]...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(p.Draw.Counts)))
	return append(b, p.Draw.Counts...), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote, and nothing else. It leaves Key alone and keeps no reference to
// data.
func (p *Record) UnmarshalBinary(data []byte) error {
	r := reader{data: data}
	q := Record{Key: p.Key}
	found := r.byte()
	switch {
	case r.bad:
		return errRecord
	case found != version && found != sharedVersion:
		return fmt.Errorf("record of a participation: version %d, of another program: this one reads %d and %d: use the program that wrote it or a newer one", found,
			version, sharedVersion)
	}
	state := r.byte()
	q.State, q.Draw.Final = State(state&^final), state&final != 0
	q.Refunds, q.Reports = r.uint32(), r.uint32()
	q.Draw.Phase, q.Draw.Step, q.Draw.Most, q.Rounds = r.uint32(), stream.Step(r.uint64()), r.uint32(), r.uint32()
	q.Draw.Round = stream.Round(r.uint64())
	r.copy(q.Draw.Manifest[:])
	if q.State == Charged {
		q.Before = State(r.byte())
		if found == sharedVersion {
			r.copy(q.Draw.Secret[:])
		} else {
			r.copy(q.Draw.Report[:])
		}
		r.copy(q.Draw.Bundle[:])
		q.Draw.Place = r.uint32()
		n := r.uint64()
		if n > maxSends {
			return errRecord
		}
		for range n {
			s := Send{Attempt: Attempt{Number: stream.Attempt(r.uint64())}, Sent: r.uint32(), Acked: r.uint32(),
				Refused: r.uint32(), Lowest: r.uint64()}
			r.copy(s.Attempt.Open[:])
			if found == sharedVersion {
				r.copy(s.Attempt.Join[:])
			}
			if k := len(q.Sends); s.Attempt.Number == 0 || s.Sent == 0 || s.Acked > s.Sent || s.Refused > s.Sent-s.Acked ||
				(s.Lowest == 0) != (s.Acked == 0) ||
				(k > 0 && q.Sends[k-1].Attempt.Number > s.Attempt.Number) || q.send(s.Attempt) != nil {
				return errRecord
			}
			q.Sends = append(q.Sends, s)
		}
		if n := r.uint64(); n > 0 && n <= maxCounts && n <= uint64(len(r.data)) {
			q.Draw.Counts = make([]byte, n)
			r.copy(q.Draw.Counts)
		}
	}
	if r.bad || len(r.data) != 0 {
		return errRecord
	}
	// Padded varints and unknown states end here: one participation has one encoding.
	if again, err := q.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
		return errRecord
	}
	*p = q
	return nil
}

// A reader takes fields off data; after a field that is not there it is bad and gives zeros.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) copy(dst []byte) {
	if len(r.data) < len(dst) {
		r.bad, r.data = true, nil
		return
	}
	r.data = r.data[copy(dst, r.data):]
}

func (r *reader) byte() byte {
	var b [1]byte
	r.copy(b[:])
	return b[0]
}

func (r *reader) uint64() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uint64()
	if v > math.MaxUint32 {
		r.bad, r.data = true, nil
	}
	return uint32(v)
}
