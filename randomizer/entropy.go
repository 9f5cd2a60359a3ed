package randomizer

import (
	crand "crypto/rand"
	"math/rand/v2"
)

// NewEntropy returns a ChaCha8 generator with a fresh 256-bit seed from the operating system. It is not for
// concurrent use.
func NewEntropy() *rand.ChaCha8 {
	src := new(rand.ChaCha8)
	reseed(src)
	return src
}

// reseed restarts a generator with a fresh seed from the operating system, and overwrites its old state.
func reseed(src *rand.ChaCha8) {
	var seed [32]byte
	// crypto/rand.Read does not return errors; it ends the process when the system has no randomness.
	_, _ = crand.Read(seed[:])
	src.Seed(seed)
	clear(seed[:])
}
