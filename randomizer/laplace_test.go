package randomizer

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// laplaceCells divides the outcomes of a discrete Laplace into 41 cells of a quarter of its scale each, the last at
// either end open.
func laplaceCells(l DiscreteLaplace) (prob []float64, of func(int64) int) {
	const ends = 20
	width := max(1, int64(1/(4*l.Rate())))
	prob = make([]float64, 2*ends+1)
	from := func(i int) int64 { return int64(i-ends)*width - width/2 }
	for i := range prob {
		at := 1.0
		if i > 0 {
			at = l.Tail(from(i))
		}
		if i < 2*ends {
			at -= l.Tail(from(i + 1))
		}
		prob[i] = at
	}
	return prob, func(x int64) int {
		i := 0
		for i < 2*ends && x >= from(i+1) {
			i++
		}
		return i
	}
}

// TestDiscreteLaplaceLaw checks counts, mean, variance and the mean of |X| against the law, from half a step of scale
// to thousands.
func TestDiscreteLaplaceLaw(t *testing.T) {
	const draws = 60000
	for i, c := range []struct{ s, t uint64 }{{1, 1}, {1, 2}, {2, 1}, {3, 7}, {1, 100}, {22, 7}, {5, 1 << 14},
		{1<<49 + 1, 1<<50 - 3}, {4, 1}} {
		l, err := newDiscreteLaplace(c.s, c.t)
		if err != nil {
			t.Fatal(err)
		}
		src, name := dptest.Source(t, uint64(i)), fmt.Sprintf("rate %d/%d", c.s, c.t)
		prob, of := laplaceCells(l)
		counts := make([]uint64, len(prob))
		var sum, squares, sizes float64
		for range draws {
			x := l.Sample(src)
			counts[of(x)]++
			sum, squares, sizes = sum+float64(x), squares+float64(x)*float64(x), sizes+math.Abs(float64(x))
		}
		dptest.ChiSquare(t, name, counts, prob, 1e-7)
		q := math.Exp(-float64(c.s) / float64(c.t))
		variance, size := 2*q/((1-q)*(1-q)), 2*q/(1-q*q)
		fourth := variance * (1 + 10*q + q*q) / ((1 - q) * (1 - q)) // of X
		for _, m := range []struct {
			name            string
			got, want, root float64 // and the standard deviation of one draw
		}{
			{"mean", sum, 0, math.Sqrt(variance)}, {"variance", squares, variance, math.Sqrt(fourth - variance*variance)},
			{"mean size", sizes, size, math.Sqrt(variance - size*size)},
		} {
			if off := math.Abs(m.got/draws-m.want) / (m.root / math.Sqrt(draws)); !(off < 6) {
				t.Errorf("%s: %s %v, want %v: %.1f standard errors", name, m.name, m.got/draws, m.want, off)
			}
		}
	}
}

// TestDiscreteLaplaceTail: the tail is never below the sum of the probabilities, and hardly above; it sums from either
// end.
func TestDiscreteLaplaceTail(t *testing.T) {
	for _, c := range []struct{ s, t uint64 }{{1, 1}, {1, 30}, {5, 2}} {
		l, _ := newDiscreteLaplace(c.s, c.t)
		q := math.Exp(-float64(c.s) / float64(c.t))
		sum := math.Pow(q, 2001) / (1 + q)
		for k := int64(2000); k >= -300; k-- {
			sum += (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(k)))
			if got := l.Tail(k); got < sum*(1-1e-12) || got > sum*(1+3e-9)+1e-300 {
				t.Fatalf("rate %v: Pr[X >= %d] is %v, want %v", l.Rate(), k, got, sum)
			}
		}
	}
}

// TestLaplaceOfRate: the rate is not above what is asked for, and hardly below.
func TestLaplaceOfRate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := math.Exp2(rapid.Float64Range(-25, 6).Draw(rt, "log rate"))
		l, err := LaplaceOfRate(want)
		if err != nil || l.Rate() > want || l.Rate() < want*(1-0x1p-23) {
			rt.Fatalf("rate %v: %v, %v", want, l.Rate(), err)
		}
	})
	if l, err := LaplaceOfRate(0.5); err != nil || l != (DiscreteLaplace{1, 2}) {
		t.Errorf("a half is %v: %v", l, err)
	}
	for _, rate := range []float64{0, -1, 0x1p-26, 65, math.NaN(), math.Inf(1)} {
		if _, err := LaplaceOfRate(rate); err == nil {
			t.Errorf("rate %v is accepted", rate)
		}
	}
	for _, c := range [][2]uint64{{0, 1}, {1, 0}, {1, 1 << 27}, {65, 1}, {1 << 50, 1 << 49}, {1 << 49, 1 << 50}} {
		if _, err := newDiscreteLaplace(c[0], c[1]); err == nil {
			t.Errorf("rate %d/%d is accepted", c[0], c[1])
		}
	}
}

// TestBelowFavoursNothing: every remainder has its share, where many draws are refused.
func TestBelowFavoursNothing(t *testing.T) {
	src := dptest.Source(t, 5)
	for _, n := range []uint64{1, 3, 1<<63 + 1, 3 << 62} {
		const cells = 12
		counts, prob := make([]uint64, cells), make([]float64, cells)
		for range 40000 {
			x := below(src, n)
			if x >= n {
				t.Fatalf("%d is not below %d", x, n)
			}
			if n < cells {
				counts[x]++
			} else {
				counts[x/(n/cells+1)]++
			}
		}
		width := float64(n/cells + 1)
		for i := range prob {
			if n < cells {
				prob[i] = 0
				if uint64(i) < n {
					prob[i] = 1 / float64(n)
				}
			} else {
				prob[i] = (math.Min(float64(i+1)*width, float64(n)) - float64(i)*width) / float64(n)
			}
		}
		if n < cells {
			counts, prob = counts[:n], prob[:n]
		}
		if len(prob) > 1 {
			dptest.ChiSquare(t, fmt.Sprintf("below %d", n), counts, prob, 1e-7)
		}
	}
}

// TestTruncatedLaplaceLaw: draws have the law, which is the truncated one of the paper; its two sums agree.
func TestTruncatedLaplaceLaw(t *testing.T) {
	for i, c := range []struct {
		s, t  uint64
		kappa int
	}{{1, 2, 3}, {1, 1, 1}, {36, 10, 4}, {1, 4, 25}} {
		l, err := newDiscreteLaplace(c.s, c.t)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewTruncatedLaplace(l, c.kappa)
		if err != nil || r.Kappa() != c.kappa || r.Rate() != l.Rate() {
			t.Fatal(r, err)
		}
		at, below := r.Survival()
		n := 2*c.kappa + 1
		if len(at) != n+1 || len(below) != n+1 || at[0] != 1 || at[n] != 0 || below[0] != 0 || below[n] != 1 {
			t.Fatalf("the ends of %v and %v", at, below)
		}
		counts, prob := make([]uint64, n), make([]float64, n)
		for s := range n {
			prob[s] = at[s] - at[s+1]
			if math.Abs(at[s]+below[s]-1) > 1e-12 {
				t.Errorf("at %d: %v and %v", s, at[s], below[s])
			}
		}
		src := dptest.Source(t, 100+uint64(i))
		for range 40000 {
			counts[r.Sample(src)]++
		}
		dptest.ChiSquare(t, fmt.Sprintf("%+v", c), counts, prob, 1e-7)
	}
	l, _ := newDiscreteLaplace(1, 1)
	r, _ := NewTruncatedLaplace(l, 15) // the paper's for epsilon 1, delta 1e-6
	at, below := r.Survival()
	for _, c := range []struct{ got, want float64 }{{below[1], 1.4136273e-7}, {at[30], 1.4136273e-7},
		{at[15] - at[16], 0.46211723}, {(below[2] - below[1]) / below[1], math.E}} {
		if math.Abs(c.got/c.want-1) > 1e-6 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	l, _ = newDiscreteLaplace(2, 1)
	r, _ = NewTruncatedLaplace(l, 8)
	if _, below := r.Survival(); math.Abs(below[1]/8.5706134e-8-1) > 1e-6 {
		t.Errorf("Pr[R = 0] is %v", below[1])
	}
	for _, kappa := range []int{0, -1, 351, 1<<20 + 1} {
		if _, err := NewTruncatedLaplace(l, kappa); err == nil {
			t.Errorf("kappa %d is accepted", kappa)
		}
	}
	if _, err := NewTruncatedLaplace(DiscreteLaplace{}, 3); err == nil {
		t.Error("no law is accepted")
	}
}

// TestLaplaceIsFixed: the draws of a seed, so that a replay is one.
func TestLaplaceIsFixed(t *testing.T) {
	l, _ := newDiscreteLaplace(1, 10)
	r, _ := NewTruncatedLaplace(l, 20)
	src := dptest.Source(t, 1)
	var got []int64
	for range 6 {
		got = append(got, l.Sample(src), int64(r.Sample(src)))
	}
	if want := "[1 20 3 21 4 26 2 0 1 22 6 35]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}
