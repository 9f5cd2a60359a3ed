//go:build race

package longtest

// raced reports whether the race detector watches, as in make test-race.
const raced = true
