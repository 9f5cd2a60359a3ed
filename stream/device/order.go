package device

import "math/rand/v2"

// ordering returns the source from which the order of shuffled rows is drawn. The store keeps the seed, which no
// noise comes from: a later run has to take the rows in the same order, or the members of an interactive phase
// would come too late.
func ordering(seed [32]byte) rand.Source { return rand.NewChaCha8(seed) }
