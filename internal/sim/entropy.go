package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Entropy returns the generator of one purpose under a seed. Generators of different seeds, purposes or indices are
// independent; the same arguments give the same stream.
func Entropy(seed uint64, purpose string, index ...uint64) *rand.ChaCha8 {
	h := []byte("panlearn/sim entropy 1\x00")
	h = binary.LittleEndian.AppendUint64(h, seed)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(purpose)))
	h = append(h, purpose...)
	for _, i := range index {
		h = binary.LittleEndian.AppendUint64(h, i)
	}
	return rand.NewChaCha8(sha256.Sum256(h))
}
