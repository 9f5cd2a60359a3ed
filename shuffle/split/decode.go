package split

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errEncoding means that bytes are not the encoding of any value.
var errEncoding = errors.New("malformed")

// A reader takes an encoding apart. After the first failure it returns zeros and stays failed.
type reader struct {
	rest   []byte
	failed bool
}

// take returns the next n bytes, which the value shares with the encoding.
func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) hash() (h Hash) {
	copy(h[:], r.take(uint64(len(h))))
	return h
}

// bytes returns a byte string; the empty one is nil.
func (r *reader) bytes() []byte {
	if b := r.take(uint64(r.uint32())); len(b) > 0 {
		return b
	}
	return nil
}

// count reads the length of a list of items of at least size bytes each. It is never more than the remaining bytes can
// hold, so that a length in a message reserves no more memory than the message's own size.
func (r *reader) count(size int) int {
	n := r.uint32()
	if uint64(n)*uint64(size) > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) attempt() Attempt { return fixed[Attempt](r) }

// fixed reads a value of fixed length.
func fixed[M Fixed](r *reader) (m M) {
	m, _ = Decode[M](r.take(uint64(binary.Size(m)))) // the zero value where take failed
	return m
}

// end returns an error if the reader failed or bytes are left.
func (r *reader) end(what string) error {
	if r.failed || len(r.rest) != 0 {
		return fmt.Errorf("decode %s: %w", what, errEncoding)
	}
	return nil
}

// Least lengths of the items of a list.
const (
	leastUser   = 16 + 4 + 4
	leastBundle = 4 + 4
)

func (r *reader) bundles() []Bundle {
	var out []Bundle
	for range r.count(leastBundle) {
		var b Bundle
		for range r.count(leastUser) {
			var u User
			copy(u.ID[:], r.take(uint64(len(u.ID))))
			u.Public, u.Prep = r.bytes(), r.bytes()
			b.Users = append(b.Users, u)
		}
		b.Sealed = r.bytes()
		out = append(out, b)
	}
	return out
}

// DecodeRequest returns the request that b encodes. Its byte strings share b's memory.
func DecodeRequest(b []byte) (Request, error) {
	r := reader{rest: b}
	out := Request{X: r.attempt(), N: r.uint64(), Base: r.uint64(), Bundles: r.bundles()}
	return out, r.end("request")
}

// DecodeReply returns the reply that b encodes.
func DecodeReply(b []byte) (Reply, error) {
	r := reader{rest: b}
	out := Reply{X: r.attempt(), N: r.uint64(), Request: r.hash()}
	accepted := 0
	for _, o := range r.take(uint64(r.uint32())) {
		if Outcome(o) >= outcomes {
			r.failed = true
		}
		if Outcome(o) == Accepted {
			accepted++
		}
		out.Outcomes = append(out.Outcomes, Outcome(o))
	}
	for range accepted {
		var m PrepMessage
		copy(m[:], r.take(uint64(len(m))))
		if r.failed {
			break
		}
		out.Messages = append(out.Messages, m)
	}
	out.Chain = r.hash()
	return out, r.end("reply")
}
