package task

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// TestShuffled: a shuffled order has every row once, none more than the window early, and goes on as it was
// where rows are added.
func TestShuffled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, window := rapid.IntRange(0, 60).Draw(t, "rows"), rapid.IntRange(0, 80).Draw(t, "window")
		drawn := rapid.Byte().Draw(t, "seed")
		seed := func() rand.Source { return rand.NewChaCha8([32]byte{drawn}) }
		order := slices.Collect(Shuffled(numbers(n), window, seed()))
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, slices.Collect(numbers(n))) {
			t.Fatalf("%v are not %d rows", order, n)
		}
		for at, row := range order {
			if row >= at+max(window, 1) {
				t.Fatalf("row %d came at place %d with a window of %d", row, at, window)
			}
		}
		longer := slices.Collect(Shuffled(numbers(n+20), window, seed()))
		if same := max(n-max(window-1, 0), 0); !slices.Equal(order[:same], longer[:same]) {
			t.Fatalf("%v became %v", order, longer)
		}
		var few []int
		for row := range Shuffled(numbers(n), window, seed()) {
			if few = append(few, row); len(few) == 5 {
				break
			}
		}
		if !slices.Equal(few, order[:min(n, 5)]) {
			t.Fatalf("%v of %v", few, order)
		}
	})
}

// TestShuffledIsUniform: in a window that holds all rows each order is as likely as any other.
func TestShuffledIsUniform(t *testing.T) {
	const trials = 24 * 2000
	seen := map[[4]int]uint64{}
	for i := range trials {
		seen[[4]int(slices.Collect(Shuffled(numbers(4), 4+i%2, rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}))))]++
	}
	counts, prob := make([]uint64, 0, 24), make([]float64, 24)
	for _, n := range seen {
		counts = append(counts, n)
	}
	if len(counts) != 24 {
		t.Fatalf("%d orders of 24", len(counts))
	}
	for i := range prob {
		prob[i] = 1. / 24
	}
	dptest.ChiSquare(t, "orders of four", counts, prob, 1e-9)
}
