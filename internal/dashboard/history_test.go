package dashboard

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHistoryIsBounded: however long a sequence is, its history is short, begins with its beginning, is in order and
// even, and has lost nothing of a sum.
func TestHistoryIsBounded(t *testing.T) {
	type span struct{ first, last, sum int }
	rapid.Check(t, func(t *rapid.T) {
		h := history[span]{merge: func(a, b span) span { return span{a.first, b.last, a.sum + b.sum} }}
		n := rapid.IntRange(1, 20*kept).Draw(t, "entries")
		sum := 0
		for i := range n {
			h.add(span{i, i, i})
			sum += i
		}
		all := h.all()
		if len(all) > kept || len(all) < min(n, kept/2) {
			t.Fatalf("%d points of %d entries", len(all), n)
		}
		next := 0
		for _, p := range all {
			if p.first != next {
				t.Fatalf("a point begins at %d, want %d", p.first, next)
			}
			if next = p.last + 1; next < n && next-p.first != all[0].last+1 {
				t.Fatalf("a point has %d entries, the first has %d", next-p.first, all[0].last+1)
			}
			sum -= p.sum
		}
		if next != n || sum != 0 {
			t.Errorf("the points end before %d, want %d; the sums differ by %d", next, n, sum)
		}
		if h.n > 0 && slices.Equal(all, h.points) {
			t.Error("the newest entries are not shown")
		}
	})
}
