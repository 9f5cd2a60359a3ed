package dptest

import (
	"math"
	"slices"
	"testing"
)

// SameLaw returns the Kolmogorov-Smirnov p-value of two samples: about the probability, where both have one law, of a
// distance as large as theirs. It sorts both. Ties make it larger.
func SameLaw(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	var i, j int
	var distance float64
	for i < len(a) && j < len(b) {
		v := min(a[i], b[j])
		for i < len(a) && a[i] == v {
			i++
		}
		for j < len(b) && b[j] == v {
			j++
		}
		distance = max(distance, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	n := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	l, p := (n+0.12+0.11/n)*distance, 0.0
	if l < 0.2 {
		return 1
	}
	for k := 1.0; k < 200; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*l*l)
	}
	return min(max(p, 0), 1)
}

// holm returns p-values adjusted by holm's method: all hypotheses whose adjusted value is below a level may be
// rejected, and some true one is with at most that probability, whatever depends on what.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if p[i] < p[j] {
			return -1
		}
		return 1
	})
	out := make([]float64, len(p))
	last := 0.0
	for rank, i := range order {
		last = max(last, min(1, float64(len(p)-rank)*p[i]))
		out[i] = last
	}
	return out
}

// alikeLevel and alikePasses bound the false alarms of Alike by 1e-10.
const (
	alikeLevel  = 0.01
	alikePasses = 5
)

// Alike fails the test if two samples of one of the named cases do not have one law, by repetition: every case is drawn
// once, and the p-values are adjusted by Holm's method; those below .01 are drawn again, until none is left. It fails
// after five passes, which happens by chance with probability 1e-10 at most, if draws of a pass do not depend on
// earlier ones. Differences so small that one pass may miss them may be missed.
func Alike(t testing.TB, cases []string, draw func(name string, pass int) (a, b []float64)) {
	t.Helper()
	for pass := range alikePasses {
		var p []float64
		for _, name := range cases {
			a, b := draw(name, pass)
			p = append(p, SameLaw(a, b))
		}
		var apart []string
		for i, adjusted := range holm(p) {
			t.Logf("pass %d, %s: p = %.3g, adjusted %.3g", pass+1, cases[i], p[i], adjusted)
			if adjusted < alikeLevel {
				apart = append(apart, cases[i])
			}
		}
		if cases = apart; len(cases) == 0 {
			return
		}
	}
	t.Errorf("%d passes tell apart, with an adjusted p-value below %v each: %q", alikePasses, alikeLevel, cases)
}
