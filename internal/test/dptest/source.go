package dptest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Source returns a generator with a fixed seed, and logs the seed.
func Source(t testing.TB, seed uint64) *rand.ChaCha8 {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.NewChaCha8(Seed(seed))
}

// Seed spreads a small number over the seed of a ChaCha8.
func Seed(seed uint64) [32]byte {
	var s [32]byte
	binary.LittleEndian.PutUint64(s[:], seed)
	return s
}

// Words is a source that gives the listed words and then fails the test: for enumerating all coins.
type Words struct {
	T    testing.TB
	List []uint64
	Used int
}

// Uint64 returns the next word.
func (w *Words) Uint64() uint64 {
	if w.Used == len(w.List) {
		w.T.Fatalf("more than %d words drawn", len(w.List))
	}
	w.Used++
	return w.List[w.Used-1]
}
