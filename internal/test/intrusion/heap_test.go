package intrusion

import (
	"crypto/ecdh"
	"crypto/hpke"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/subtle"
	"encoding/binary"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/panlearn/panlearn/stream/wire"
)

// keySize is the size of an X25519 scalar, and of the seed from which the hybrid key is made.
const keySize = 32

// heapDump returns every live object, every stack and every global of the process.
func heapDump() []byte {
	f, err := os.CreateTemp("", "heap")
	must(err)
	defer os.Remove(f.Name())
	// Twice: what the first collection finds dead, the second has swept.
	runtime.GC()
	runtime.GC()
	debug.WriteHeapDump(f.Fd())
	must(f.Close())
	data, err := os.ReadFile(f.Name())
	must(err)
	return data
}

// A maskedKey is a private key that the test holds without having its bytes in memory, so that it can look for them
// there.
type maskedKey struct{ pad, masked [keySize]byte }

func mask(key []byte) *maskedKey {
	m := new(maskedKey)
	_, _ = crand.Read(m.pad[:])
	subtle.XORBytes(m.masked[:], m.pad[:], key)
	return m
}

// use gives the bytes of the key for as long as the function runs.
func (m *maskedKey) use(f func(key []byte)) {
	key := make([]byte, keySize)
	subtle.XORBytes(key, m.pad[:], m.masked[:])
	f(key)
	clear(key)
}

// in reports whether the key's bytes are in data, at any offset.
func (m *maskedKey) in(data []byte) bool {
	pad, masked := binary.LittleEndian.Uint64(m.pad[:]), binary.LittleEndian.Uint64(m.masked[:])
	for i := 0; i+keySize <= len(data); i++ {
		if binary.LittleEndian.Uint64(data[i:])^pad == masked && m.equals(data[i:i+keySize]) {
			return true
		}
	}
	return false
}

func (m *maskedKey) equals(b []byte) bool {
	same := true
	for j, c := range b {
		same = same && c^m.pad[j] == m.masked[j]
	}
	return same
}

// parts returns the key and what it is expanded to: the seed of ML-KEM and the X25519 scalar of the hybrid.
func (m *maskedKey) parts(suite wire.Suite) []*maskedKey {
	all := []*maskedKey{m}
	if suite == wire.Suite_SUITE_MLKEM768_X25519 {
		m.use(func(key []byte) {
			expanded := sha3.SumSHAKE256(key, 3*keySize)
			for i := 0; i < len(expanded); i += keySize {
				all = append(all, mask(expanded[i:i+keySize]))
			}
			clear(expanded)
		})
	}
	return all
}

// private makes an HPKE key of its bytes.
func private(suite wire.Suite, key []byte) (hpke.PrivateKey, error) {
	if suite == wire.Suite_SUITE_X25519 {
		return hpke.DHKEM(ecdh.X25519()).NewPrivateKey(key)
	}
	return hpke.MLKEM768X25519().NewPrivateKey(key)
}

// looksLikeKey leaves out text, pointers, zeros: of 32 random bytes fewer than 20 are different with a probability
// below 1e-12, so a real key passes.
func looksLikeKey(b []byte) bool {
	var seen [256]bool
	n := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n >= 20
}

// A searcher looks for private keys by trying what could be one. What it has tried it knows by its hash, so that it
// tries nothing twice and holds no key itself.
type searcher struct {
	suite wire.Suite
	tried map[[sha256.Size]byte]string // hash of a candidate: the public key that it makes
}

func newSearcher(suite wire.Suite) *searcher {
	return &searcher{suite, map[[sha256.Size]byte]string{}}
}

// try returns the candidate's public key, empty if it is none.
func (s *searcher) try(candidate []byte) string {
	if !looksLikeKey(candidate) {
		return ""
	}
	id := sha256.Sum256(candidate)
	public, known := s.tried[id]
	if !known {
		if k, err := private(s.suite, candidate); err == nil {
			public = string(k.PublicKey().Bytes())
		}
		s.tried[id] = public
	}
	return public
}

// inHeap tries every object of 32 bytes without pointers, which is what a private key is kept in.
func (s *searcher) inHeap(dump, public []byte) *maskedKey {
	for i := 1; i+keySize < len(dump); i++ {
		if isObject(dump, i) && s.try(dump[i:i+keySize]) == string(public) {
			return mask(dump[i : i+keySize])
		}
	}
	return nil
}

// isObject reports whether an object of 32 bytes without pointers begins at i. In a dump that is a 1, the
// address as a varint, the length, the content, and a 0 where pointers would be listed.
func isObject(dump []byte, i int) bool {
	if dump[i-1] != keySize || dump[i+keySize] != 0 || i < 2 || dump[i-2] >= 0x80 {
		return false
	}
	j := i - 3
	for j >= 0 && dump[j] >= 0x80 {
		j--
	}
	return j >= 0 && dump[j] == 1 && i-2-j >= 4
}

// anywhere tries 32 bytes at every offset.
func (s *searcher) anywhere(data, public []byte) *maskedKey {
	for i := 0; i+keySize <= len(data); i++ {
		if s.try(data[i:i+keySize]) == string(public) {
			return mask(data[i : i+keySize])
		}
	}
	return nil
}
