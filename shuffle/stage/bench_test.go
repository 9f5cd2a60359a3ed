package stage

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/stream/wire"
)

// BenchmarkExamine is one report from its bytes to the totals, by suite and dimension: what a stage does on one core.
func BenchmarkExamine(b *testing.B) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		for _, dim := range []uint64{124, 4096} {
			b.Run(fmt.Sprintf("%v/dim=%d", suite, dim), func(b *testing.B) {
				w := newWorld(b, plan{cohort: dim, suite: suite})
				a, in := w.attempt(1)
				data := w.seal(in, [][16]byte{randomID()}, w.plaintext(0))
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					// The same report again: opened like every other one, then a duplicate, so that the cohort never fills.
					if got := a.examine(w.message(in, 1, data)); got != Accepted && got != Duplicate {
						b.Fatal(got)
					}
				}
			})
		}
	}
}
