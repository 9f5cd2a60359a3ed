package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// surrogate is B” of Theorem A, step 1: the binomial inside a window, log-linear
// tails outside.
type surrogate struct {
	tab    table
	lo, hi int // offsets into tab
}

// quantile returns Z_a(first+c) = Phi^-1(F_a(first+c)) for a = base + f, from
// whichever tail is smaller.
func (s surrogate) quantile(a float64, c int) float64 {
	base := int(math.Floor(a))
	f := a - float64(base)
	i := c - base
	below := (1-f)*s.below(i) + f*s.below(i-1)
	if below <= 0.5 {
		return -tailQuantile(below)
	}
	return tailQuantile(min(0.5, (1-f)*s.above(i)+f*s.above(i-1)))
}

func (s surrogate) below(i int) float64 {
	switch {
	case i < s.lo:
		return s.tab.below[s.lo] * math.Pow(s.tab.below[s.lo]/s.tab.below[s.lo+1], float64(s.lo-i))
	case i > s.hi:
		return 1 - s.above(i)
	}
	return s.tab.below[i]
}

func (s surrogate) above(i int) float64 {
	switch {
	case i > s.hi:
		return s.tab.above[s.hi] * math.Pow(s.tab.above[s.hi]/s.tab.above[s.hi-1], float64(i-s.hi))
	case i < s.lo:
		return 1 - s.below(i)
	}
	return s.tab.above[i]
}

func rounding(a float64) float64 {
	f := a - math.Floor(a)
	return f * (1 - f)
}

// TestTheoremA_PerCoordinateInequality checks steps 6 and 7 themselves:
// Z_a'(c) - Z_a(c) stays below both forms, for random noise, windows, positions
// and cells, tails included; and comes close to each.
func TestTheoremA_PerCoordinateInequality(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	worst1, worst2 := 0.0, 0.0
	for range 600 * deepFactor(t, 50) {
		m := shapes(1, 1, 3, 80)(rng)
		b := binomial{int64(m.Trials), int64(m.P * (1 << coinBits))}
		levels := newProfile(depth{b, rungs}).levels
		if len(levels) == 0 {
			continue
		}
		tab := newTable(b)
		for range 25 {
			l := levels[rng.IntN(len(levels))]
			s := surrogate{tab, int(int64(l.lo) - tab.first), int(int64(l.hi) - tab.first)}
			hiPos, loPos := 4*rng.Float64(), 4*rng.Float64()
			switch rng.IntN(4) {
			case 0:
				hiPos, loPos = math.Ceil(hiPos), math.Floor(loPos)
			case 1: // one cell, tiny difference: the derivative
				hiPos = loPos + 1e-3*rng.Float64()
			}
			if hiPos < loPos {
				hiPos, loPos = loPos, hiPos
			}
			r, w := hiPos-loPos, math.Abs(rounding(hiPos)-rounding(loPos))
			a1 := l.M1*r + l.Theta1/2*w
			a2 := l.Mu1*r + l.Theta2/2*w + l.K
			for range 8 {
				c := s.lo - 10 + rng.IntN(s.hi-s.lo+20)
				switch rng.IntN(3) {
				case 0:
					c = s.lo - 3 + rng.IntN(8)
				case 1:
					c = s.hi - 3 + rng.IntN(8)
				}
				got := s.quantile(loPos, c) - s.quantile(hiPos, c)
				if math.IsNaN(got) || math.IsInf(got, 0) {
					continue // beyond the quantiles' range, far outside the window
				}
				// The quantiles themselves are exact to a few units of the last place.
				if noise := 1e-12; got > a1+noise || got > a2+noise {
					t.Errorf("seed %d: %+v level %+v positions %v > %v at %d: %v, forms %v and %v", seed, b, l, hiPos, loPos, c, got,
						a1, a2)
				}
				if r > 1e-6 {
					worst1, worst2 = max(worst1, got/a1), max(worst2, got/a2)
				}
			}
		}
	}
	t.Logf("seed %d: closest to A1 %.5f, to A2 %.5f", seed, worst1, worst2)
	if worst1 < 0.99 || worst2 < 0.9 {
		t.Errorf("closest to A1 %.4f, to A2 %.4f: the search has lost its power", worst1, worst2)
	}
}

// TestProfileLevels holds every level to what the proof assumes of a window.
func TestProfileLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	for range 40 {
		m := shapes(1, 1, 0.3, 60)(rng)
		p := profileOf(t, m.Trials, m.P)
		levels := p.levels
		if len(levels) > rungs {
			t.Errorf("%d levels, want at most %d", len(levels), rungs)
		}
		for i, l := range levels {
			if l.lo < 1 || l.hi > m.Trials || l.hi-l.lo < 3 {
				t.Errorf("%+v: window %d..%d", m, l.lo, l.hi)
			}
			for _, v := range []float64{l.tau, l.M1, l.Theta1, l.Mu1, l.Theta2, l.K} {
				if !(v > 0) || math.IsInf(v, 0) {
					t.Errorf("%+v level %d: %+v", m, i, l)
				}
			}
			if i == 0 {
				continue
			}
			prev := levels[i-1]
			if l.rung <= prev.rung || l.lo > prev.lo || l.hi < prev.hi || l.tau > prev.tau ||
				l.M1 < prev.M1 || l.Theta1 < prev.Theta1 || l.Mu1 < prev.Mu1 || l.Theta2 < prev.Theta2 || l.K < prev.K {
				t.Errorf("%+v: level %+v after %+v is not nested", m, l, prev)
			}
		}
	}
}
