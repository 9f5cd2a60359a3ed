package accounting

import (
	"math"
	"sort"
)

// tableFloor ends the table: what is beyond it is below the last digit of every
// sum that is used.
const tableFloor = 1e-67

// table holds Bin(n, p) over first .. first+len(q)-1 and both distribution
// functions, below[i] = Pr[B < first+i] and above[i] = Pr[B >= first+i].
type table struct {
	first        int64
	q            []float64
	below, above []float64
}

// newTable sums each tail from its own end with positive terms only: one minus a
// sum would lose the tail.
func newTable(b binomial) table {
	lo, hi := tableRange(b)
	size := int(hi - lo + 1)
	t := table{first: lo, q: make([]float64, size), below: make([]float64, size+1), above: make([]float64, size+1)}
	for i := range t.q {
		t.q[i] = b.pmf(lo + int64(i))
	}
	var f, s neumaier
	for i, q := range t.q {
		f.add(q)
		t.below[i+1] = f.sum()
	}
	for i := size - 1; i >= 0; i-- {
		s.add(t.q[i])
		t.above[i] = s.sum()
	}
	return t
}

// tableRange returns the range with pmf >= tableFloor, by bisection on each side of
// the mode: the pmf is unimodal.
func tableRange(b binomial) (lo, hi int64) {
	mode := min(b.mode(), b.n)
	lo = int64(sort.Search(int(mode), func(x int) bool { return b.pmf(int64(x)) >= tableFloor }))
	hi = mode + int64(sort.Search(int(b.n-mode), func(x int) bool { return b.pmf(mode+1+int64(x)) < tableFloor }))
	return lo, hi
}

// window is a rung of the ladder as offsets into a table: cells lo+1 .. hi.
type window struct{ rung, lo, hi int }

func ladder(k int) float64 { return math.Pow(10, -2-float64(k)/4) }

// windows returns the admissible windows, nested, smallest first: for every rung
// the narrowest one whose tails hold at most tau_k/2 each, down to a rung.
func (t table) windows(rungs int) []window {
	size := len(t.q)
	// A window needs 1 <= lo and hi <= N, and mass beyond both ends.
	minLo, maxHi := 0, size
	for minLo < size && (t.first == 0 && minLo == 0 || t.below[minLo] == 0) {
		minLo++
	}
	for maxHi > 0 && t.above[maxHi] == 0 {
		maxHi--
	}
	var ws []window
	for k := range rungs {
		half := ladder(k) / 2
		lo := sort.Search(size+1, func(i int) bool { return t.below[i] > half }) - 1
		hi := sort.Search(size+1, func(i int) bool { return t.above[i] <= half })
		w := window{k, max(lo, minLo), min(hi, maxHi)}
		if w.hi-w.lo < 3 || t.below[w.lo+1] >= 0.5 || t.above[w.hi-1] >= 0.5 {
			continue
		}
		if n := len(ws); n > 0 && ws[n-1].lo == w.lo && ws[n-1].hi == w.hi {
			continue
		}
		ws = append(ws, w)
	}
	return ws
}

// neumaier is a compensated sum.
type neumaier struct{ s, c float64 }

func (n *neumaier) add(v float64) {
	t := n.s + v
	if math.Abs(n.s) >= math.Abs(v) {
		n.c += (n.s - t) + v
	} else {
		n.c += (v - t) + n.s
	}
	n.s = t
}

func (n *neumaier) sum() float64 { return n.s + n.c }
