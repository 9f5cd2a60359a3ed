package split

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
)

// Messages are encoded field by field, in the order of the type: numbers big-endian, hashes as they are, byte strings
// and lists behind a uint32 of their length. One value has one encoding.

func appendBytes(out, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(out, uint32(len(b))), b...)
}

// Fixed are the types of fixed length.
type Fixed interface {
	Attempt | Ping | Pong | Finish | Gone | Differs
}

// Append appends the encoding of m to out.
func Append[M Fixed](out []byte, m M) []byte {
	out, err := binary.Append(out, binary.BigEndian, m)
	if err != nil {
		panic(fmt.Sprintf("split: %T has no fixed length: %v", m, err))
	}
	return out
}

// Decode returns the value that b encodes.
func Decode[M Fixed](b []byte) (m M, err error) {
	if n, err := binary.Decode(b, binary.BigEndian, &m); err != nil || n != len(b) {
		return m, fmt.Errorf("decode %s: %w", strings.ToLower(reflect.TypeFor[M]().Name()), errEncoding)
	}
	return m, nil
}

// Append appends the attempt's encoding to out.
func (x Attempt) Append(out []byte) []byte { return Append(out, x) }

// appendBundles appends a list of bundles: of each its users, as id, public share and prep share, and its ciphertext.
func appendBundles(out []byte, bundles []Bundle) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(bundles)))
	for _, b := range bundles {
		out = binary.BigEndian.AppendUint32(out, uint32(len(b.Users)))
		for _, u := range b.Users {
			out = append(out, u.ID[:]...)
			out = appendBytes(out, u.Public)
			out = appendBytes(out, u.Prep)
		}
		out = appendBytes(out, b.Sealed)
	}
	return out
}

// Append appends the request's encoding to out.
func (r Request) Append(out []byte) []byte {
	out = r.X.Append(out)
	out = binary.BigEndian.AppendUint64(out, r.N)
	out = binary.BigEndian.AppendUint64(out, r.Base)
	return appendBundles(out, r.Bundles)
}

// Append appends the reply's encoding to out. Messages has no length: it is the number of accepted users.
func (r Reply) Append(out []byte) []byte {
	out = r.X.Append(out)
	out = binary.BigEndian.AppendUint64(out, r.N)
	out = append(out, r.Request[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(r.Outcomes)))
	for _, o := range r.Outcomes {
		out = append(out, byte(o))
	}
	for _, m := range r.Messages {
		out = append(out, m[:]...)
	}
	return append(out, r.Chain[:]...)
}
