package split

import (
	"encoding/binary"
	"fmt"
)

// A Note holds what a stage keeps beside its share for the claim, the spent lists and the batch, so that any process with
// the folder puts the same bytes.
type Note struct {
	// Cutoff is the broker's sequence up to which reports were taken or refused.
	Cutoff uint64
	// Manifest is the hash of the round's manifest, as devices had it: no other round of its number gets the totals.
	Manifest Hash
	// Spent holds 16 bytes of a hash of the nonce of each counted user's grant, sorted; empty in a task without grants.
	Spent [][16]byte
}

// A Prepared is all that the leader needs to end an attempt: its state in the exchange, and its aggregate share with
// its floor. It is stored encrypted under a key in a file of its own, which is overwritten when the attempt dies: with
// the next attempt's release it would be a second one. Nothing of it but Finish leaves the folder.
type Prepared struct {
	Finish    Finish
	Note      Note
	Rejects   Rejects
	Aggregate []byte // Lengths.Aggregate bytes
}

// X returns the attempt.
func (p Prepared) X() Attempt { return p.Finish.X }

// Format hides the share.
func (p Prepared) Format(f fmt.State, _ rune) { fmt.Fprint(f, "prepared share") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (p Prepared) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// Append appends the encoding of p to out: Finish, Cutoff, Manifest, the number of Spent and Spent, the number of Rejects and
// Rejects, Aggregate behind its length.
func (p Prepared) Append(out []byte) []byte {
	out = Append(out, p.Finish)
	out = binary.BigEndian.AppendUint64(out, p.Note.Cutoff)
	out = append(out, p.Note.Manifest[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(p.Note.Spent)))
	for _, s := range p.Note.Spent {
		out = append(out, s[:]...)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(p.Rejects)))
	for _, n := range p.Rejects {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return appendBytes(out, p.Aggregate)
}

// DecodePrepared returns the value that b encodes.
func DecodePrepared(b []byte) (Prepared, error) {
	r := reader{rest: b}
	p := Prepared{
		Finish: fixed[Finish](&r),
		Note:   Note{Cutoff: r.uint64(), Manifest: r.hash()},
	}
	for range r.count(len([16]byte{})) {
		var s [16]byte
		copy(s[:], r.take(uint64(len(s))))
		p.Note.Spent = append(p.Note.Spent, s)
	}
	if r.uint32() != uint32(len(p.Rejects)) {
		r.failed = true
	}
	for i := range p.Rejects {
		p.Rejects[i] = r.uint64()
	}
	p.Aggregate = r.bytes()
	return p, r.end("prepared share")
}
