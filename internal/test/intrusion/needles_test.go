package intrusion

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
)

// A secret is something that must not be on a disk, in all the forms in which it might be.
type secret struct {
	name  string
	forms [][]byte
}

// minForm keeps chance out: a form is at least so long, and made of noisy integers, random bytes, or a whole
// vector. A copy has below 2^30 bytes, and a run below 2^16 forms, so random data matches one with a probability
// below 2^-80.
const minForm = 16

// vector returns a secret of integers: as words, as floats, as varints, as text. Each form is cut in two, so
// that a log that breaks records into blocks does not hide it.
func vector[T uint32 | uint64](name string, v []T) secret {
	s := secret{name: name}
	var le4, be4, le8, be8, f8, varint []byte
	text := map[string][]string{" ": nil, ",": nil, ", ": nil, "\n": nil}
	for _, x := range v {
		le4 = binary.LittleEndian.AppendUint32(le4, uint32(x))
		be4 = binary.BigEndian.AppendUint32(be4, uint32(x))
		le8 = binary.LittleEndian.AppendUint64(le8, uint64(x))
		be8 = binary.BigEndian.AppendUint64(be8, uint64(x))
		f8 = binary.LittleEndian.AppendUint64(f8, math.Float64bits(float64(x)))
		varint = binary.AppendUvarint(varint, uint64(x))
		for sep := range text {
			text[sep] = append(text[sep], fmt.Sprint(x))
		}
	}
	for _, b := range [][]byte{le4, be4, le8, be8, f8, varint} {
		s.halves(b)
	}
	for sep, words := range text {
		s.halves([]byte(strings.Join(words, sep)))
	}
	return s
}

// floats returns a secret vector of floats.
func floats(name string, v []float64) secret {
	s := secret{name: name}
	var le, be []byte
	for _, x := range v {
		le = binary.LittleEndian.AppendUint64(le, math.Float64bits(x))
		be = binary.BigEndian.AppendUint64(be, math.Float64bits(x))
	}
	// Whole: half of it may be nothing but zeros.
	s.forms = append(s.forms, le, be)
	return s
}

// raw adds bytes, and their hexadecimal and base64, wherever in a longer text they may begin.
func (s *secret) raw(b []byte) {
	s.halves(b)
	s.halves([]byte(hex.EncodeToString(b)))
	s.halves([]byte(strings.ToUpper(hex.EncodeToString(b))))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			// Whole groups of three bytes encode alike whatever is before and after them.
			from := (3 - shift) % 3
			whole := b[from : from+(len(b)-from)/3*3]
			s.halves([]byte(e.EncodeToString(whole)))
		}
	}
}

func (s *secret) halves(b []byte) {
	if len(b) < 2*minForm {
		if len(b) < minForm {
			panic(fmt.Sprintf("a form of %s has %d bytes: want at least %d, or chance finds it", s.name, len(b), minForm))
		}
		s.forms = append(s.forms, b)
		return
	}
	s.forms = append(s.forms, b[:len(b)/2], b[len(b)/2:])
}

// Needles search data for many secrets at once, at every offset.
type needles struct {
	index map[uint64][]anchored
	maybe []uint64 // a bit set over hashed words: most offsets are passed over by it
	forms int
}

// An anchored form is found by the eight bytes in it that repeat the least.
type anchored struct {
	name  string
	form  []byte
	start int // of the eight bytes
}

const maybeBits = 20

func hashWord(w uint64) uint64 { return w * 0x9e3779b97f4a7c15 >> (64 - maybeBits) }

func newNeedles(secrets ...secret) *needles {
	n := &needles{index: map[uint64][]anchored{}, maybe: make([]uint64, 1<<maybeBits/64)}
	for _, s := range secrets {
		for _, f := range s.forms {
			best, most := 0, -1
			for i := 0; i+8 <= len(f); i++ {
				if d := distinct(f[i : i+8]); d > most {
					best, most = i, d
				}
			}
			w := binary.LittleEndian.Uint64(f[best:])
			n.index[w] = append(n.index[w], anchored{s.name, f, best})
			h := hashWord(w)
			n.maybe[h/64] |= 1 << (h % 64)
			n.forms++
		}
	}
	return n
}

func distinct(b []byte) int {
	n := 0
	for i, c := range b {
		if bytes.IndexByte(b[:i], c) < 0 {
			n++
		}
	}
	return n
}

// in returns the names of the secrets that are in data.
func (n *needles) in(data []byte) map[string]bool {
	found := map[string]bool{}
	for i := 0; i+8 <= len(data); i++ {
		w := binary.LittleEndian.Uint64(data[i:])
		if h := hashWord(w); n.maybe[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, a := range n.index[w] {
			at := i - a.start
			if at >= 0 && at+len(a.form) <= len(data) && bytes.Equal(data[at:at+len(a.form)], a.form) {
				found[a.name] = true
			}
		}
	}
	return found
}
