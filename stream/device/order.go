package device

import (
	crand "crypto/rand"
	"math/rand/v2"
)

// newOrder draws the seed of the order of shuffled rows from the system's generator.
func newOrder() (seed [32]byte) {
	_, _ = crand.Read(seed[:]) // never fails: it ends the process instead
	return seed
}

// ordering returns the source from which the order of shuffled rows is drawn. The store keeps the seed, which no
// noise comes from: a later run has to take the rows in the same order, or the members of an interactive phase
// would come too late.
func ordering(seed [32]byte) rand.Source { return rand.NewChaCha8(seed) }
