package private

import "testing"

// TestLastOf: the search finds the last number that is allowed, from any guess, and at once from the right one.
func TestLastOf(t *testing.T) {
	for n := 1; n < 40; n++ {
		for last := range n {
			for guess := range n {
				calls := 0
				got := lastOf(n, guess, func(i int) bool {
					if calls++; i < 1 || i >= n {
						t.Fatalf("of %d: asked about %d", n, i)
					}
					return i <= last
				})
				if got != last || guess == last && calls > 3 {
					t.Fatalf("of %d, from %d: %d after %d calls, want %d", n, guess, got, calls, last)
				}
			}
		}
	}
}
