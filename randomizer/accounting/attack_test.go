package accounting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/randomizer"
)

// Exact attacks: hockey-stick divergences of concrete neighbours by direct sums,
// against the bound. Nothing here shares code with the accountant but the pmf,
// which TestTableAgainstRationals checks.

// coordinateLaw returns the law of SR(a) + noise, on the noise's range extended by g.
func coordinateLaw(noise []float64, a float64, g int) []float64 {
	law := make([]float64, len(noise)+g)
	base := int(math.Floor(a))
	frac := a - float64(base)
	for x, q := range noise {
		law[x+base] += (1 - frac) * q
		if frac > 0 {
			law[x+base+1] += frac * q
		}
	}
	return law
}

// hockeyStick returns sup_A P(A) - e^eps P'(A) of two product laws. Cells in which P has
// next to no mass are left out, which only lowers the result.
func hockeyStick(p, q [][]float64, eps float64) float64 {
	const negligible = 1e-20
	first, last := make([]int, len(p)), make([]int, len(p))
	for j, law := range p {
		last[j] = len(law)
		for law[first[j]] < negligible {
			first[j]++
		}
		for law[last[j]-1] < negligible {
			last[j]--
		}
	}
	c := math.Exp(eps)
	var walk func(j int, u, v float64) float64
	walk = func(j int, u, v float64) float64 {
		sum := 0.0
		if j == len(p)-1 {
			v *= c
			inner, other := p[j], q[j]
			for x := first[j]; x < last[j]; x++ {
				if d := u*inner[x] - v*other[x]; d > 0 {
					sum += d
				}
			}
			return sum
		}
		for x := first[j]; x < last[j]; x++ {
			if pu := u * p[j][x]; pu > negligible {
				sum += walk(j+1, pu, v*q[j][x])
			}
		}
		return sum
	}
	return walk(0, 1, 1)
}

// noiseLaw returns Bin(n, p) where its mass is above tableFloor. Its offset drops out:
// every law of an attack has the same.
func noiseLaw(n uint64, p float64) []float64 {
	b := binomial{int64(n), int64(p * (1 << coinBits))}
	lo, hi := tableRange(b)
	var law []float64
	for x := lo; x <= hi; x++ {
		law = append(law, b.pmf(x))
	}
	return law
}

// randomPair draws positions of two vectors in the ball of radius g/2 around the
// centre: the extremes where the bound is tight, and anything else.
func randomPair(rng *rand.Rand, g, d int) (a, b []float64) {
	s, t := make([]float64, d), make([]float64, d)
	radius := float64(g) / 2
	draw := func(v []float64) {
		norm := 0.0
		for j := range v {
			v[j] = rng.NormFloat64()
			norm += v[j] * v[j]
		}
		scale := radius / math.Sqrt(norm) * (1 - 1e-12)
		if rng.IntN(3) == 0 {
			scale *= math.Pow(rng.Float64(), 1/float64(d))
		}
		for j := range v {
			v[j] *= scale
		}
	}
	switch rng.IntN(4) {
	case 0: // opposite ends of one axis
		s[0], t[0] = radius, -radius
	case 1: // opposite ends of a random diameter
		draw(s)
		for j := range s {
			t[j] = -s[j]
		}
	default:
		draw(s)
		draw(t)
	}
	if rng.IntN(2) == 0 {
		s, t = t, s
	}
	for j := range s {
		s[j] = min(max(s[j]+radius, 0), float64(g))
		t[j] = min(max(t[j]+radius, 0), float64(g))
	}
	return s, t
}

// pairOf returns randomPair or, for a report of which one unit of several changes, two places: the others in the ball
// that is left to them, and one of two vectors in the ball of one unit.
func pairOf(rng *rand.Rand, m Mechanism) (a, b []float64) {
	if m.Units <= 1 {
		return randomPair(rng, m.Levels, m.Dim)
	}
	s, t := randomPair(rng, 1, m.Dim)      // around 1/2
	others, _ := randomPair(rng, 1, m.Dim) // those of all other units
	g, k := float64(m.Levels), float64(m.Units)
	snap := rng.IntN(2) == 0 // one end on a level, where the roundings' variances differ most
	for j := range s {
		o := g/2 + (others[j]-0.5)*g*(k-1)/k
		if snap {
			o += math.Round(o+(s[j]-0.5)*g/k) - (o + (s[j]-0.5)*g/k)
		}
		s[j], t[j] = o+(s[j]-0.5)*g/k, o+(t[j]-0.5)*g/k
		if move := max(-min(s[j], t[j]), 0) - max(max(s[j], t[j])-g, 0); move != 0 { // snapped past an end
			s[j], t[j] = s[j]+move, t[j]+move
		}
		s[j], t[j] = min(max(s[j], 0), g), min(max(t[j], 0), g)
	}
	return s, t
}

// attackOutcome is the largest exact/bound over a hunt.
type attackOutcome struct {
	worst    float64
	mech     Mechanism
	eps      float64
	settings int
}

// hunt attacks bounds with random mechanisms and pairs. bound(m, eps) is the
// accountant under test.
func hunt(t *testing.T, seed uint64, settings, pairs int, shape func(*rand.Rand) Mechanism,
	bound func(Mechanism, float64) float64) attackOutcome {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	var out attackOutcome
	for range settings {
		m := shape(rng)
		target := math.Pow(10, -9+7.7*rng.Float64())
		eps, err := m.Epsilon(target)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsInf(eps, 1) {
			continue
		}
		out.settings++
		claim := bound(m, eps)
		noise := noiseLaw(m.Trials, m.P)
		for range pairs {
			var p, q [][]float64
			for range m.Rounds {
				a, b := pairOf(rng, m)
				for j := range a {
					p = append(p, coordinateLaw(noise, a[j], m.Levels))
					q = append(q, coordinateLaw(noise, b[j], m.Levels))
				}
			}
			for _, exact := range []float64{hockeyStick(p, q, eps), hockeyStick(q, p, eps)} {
				if r := exact / claim; r > out.worst {
					out.worst, out.mech, out.eps = r, m, eps
				}
			}
		}
	}
	return out
}

func gridded(p float64) float64 { return math.Round(p*(1<<coinBits)) / (1 << coinBits) }

// shapes returns random mechanisms of the given dimension and rounds whose noise
// has a standard deviation of about lo .. hi.
func shapes(d, rounds int, lo, hi float64) func(*rand.Rand) Mechanism {
	return func(rng *rand.Rand) Mechanism {
		p := gridded(0.02 + 0.96*rng.Float64())
		if rng.IntN(3) == 0 {
			p = 0.5
		}
		sd := lo * math.Pow(hi/lo, rng.Float64())
		return Mechanism{
			Trials: uint64(sd*sd/(p*(1-p))) + 1, P: p, Levels: 1 + rng.IntN(10), Dim: d, Rounds: rounds,
		}
	}
}

// blocks gives mechanisms units: the noise hides a shift of g/K, from a twelfth of a step to a few.
func blocks(shape func(*rand.Rand) Mechanism) func(*rand.Rand) Mechanism {
	return func(rng *rand.Rand) Mechanism {
		m := shape(rng)
		m.P, m.Trials = 0.5, 2*(m.Trials/2+1)
		m.Units = 2 + rng.Uint64N(12)
		m.Levels = 1 + rng.IntN(4*int(m.Units))
		return m
	}
}

// minimisers returns mechanisms whose reports are one vector of all units, which moves as far as one of several units.
func minimisers(shape func(*rand.Rand) Mechanism) func(*rand.Rand) Mechanism {
	return func(rng *rand.Rand) Mechanism {
		m := shape(rng)
		m.Shift = randomizer.MinimizerShift(m.Levels, m.Units, m.Dim)
		return m
	}
}

func theoremA(t *testing.T) func(Mechanism, float64) float64 {
	return func(m Mechanism, eps float64) float64 {
		d, err := Delta(eps, m)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// deepFactor multiplies the effort of the slow searches.
func deepFactor(t *testing.T, factor int) int {
	if longtest.Run(t, fmt.Sprintf("the deep search, of %d times as many settings", factor)) {
		return factor
	}
	return 1
}

// TestTheoremA_NeverBelowExactAttack: no concrete pair of neighbours, in either
// order, loses more than the bound; and the search comes close to it, so it would
// notice a bound that is too low.
func TestTheoremA_NeverBelowExactAttack(t *testing.T) {
	deep := deepFactor(t, 60)
	for _, c := range []struct {
		name            string
		settings, pairs int
		shape           func(*rand.Rand) Mechanism
		close           float64
	}{
		{"d=1", 200, 8, shapes(1, 1, 3, 60), 0.97},
		{"d=2", 50, 5, shapes(2, 1, 4, 40), 0.9},
		{"d=3", 5, 3, shapes(3, 1, 8, 14), 0.3},
		{"d=1 T=2", 50, 5, shapes(1, 2, 4, 40), 0.9},
		{"d=1, one of several units", 200, 12, blocks(shapes(1, 1, 3, 40)), 0.99},
		{"d=2, one of several units", 40, 8, blocks(shapes(2, 1, 4, 20)), 0.9},
		{"d=1, a minimiser", 60, 12, minimisers(blocks(shapes(1, 1, 3, 40))), 0.99},
	} {
		t.Run(c.name, func(t *testing.T) {
			const seed = 20260101
			out := hunt(t, seed, c.settings*deep, c.pairs, c.shape, theoremA(t))
			t.Logf("seed %d: %d settings, closest exact/bound %.4f at %+v, epsilon %.3f", seed, out.settings, out.worst,
				out.mech, out.eps)
			if out.worst > 1 {
				t.Errorf("seed %d: %+v at epsilon %v loses %.6f times the bound", seed, out.mech, out.eps, out.worst)
			}
			if out.worst < c.close {
				t.Errorf("seed %d: closest attack is %.4f of the bound; the search has lost its power (want %.2f)", seed, out.worst,
					c.close)
			}
		})
	}
}

// TestAttackCatchesWrongAccountants is the test of the test: accountants with
// mistakes that look innocent are refuted.
func TestAttackCatchesWrongAccountants(t *testing.T) {
	exact := theoremA(t)
	for name, wrong := range map[string]func(Mechanism, float64) float64{
		"Gaussian of the same variance": func(m Mechanism, eps float64) float64 {
			sd := math.Sqrt(float64(m.Trials) * m.P * (1 - m.P))
			return gaussianDelta(eps, math.Sqrt(float64(m.Rounds))*float64(m.Levels)/sd)
		},
		"ten percent more trials than there are": func(m Mechanism, eps float64) float64 {
			m.Trials += m.Trials/10 + 1
			return exact(m, eps)
		},
		"one grid step less": func(m Mechanism, eps float64) float64 {
			m.Levels = max(1, m.Levels-1)
			return exact(m, eps)
		},
	} {
		if out := hunt(t, 7, 150, 12, shapes(1, 1, 3, 60), wrong); out.worst <= 1 {
			t.Errorf("%s: closest attack is %.4f of the claim; not refuted", name, out.worst)
		}
	}
	for name, wrong := range map[string]func(Mechanism, float64) float64{
		"half of the distance of a unit": func(m Mechanism, eps float64) float64 {
			m.Units *= 2
			return exact(m, eps)
		},
		"twice the trials of a report": func(m Mechanism, eps float64) float64 {
			m.Trials *= 2
			return exact(m, eps)
		},
	} {
		if out := hunt(t, 9, 40, 12, blocks(shapes(1, 1, 3, 40)), wrong); out.worst <= 1 {
			t.Errorf("%s: closest attack is %.4f of the claim; not refuted", name, out.worst)
		}
	}
	twice := func(m Mechanism, eps float64) float64 {
		m.Rounds = 1
		return exact(m, eps)
	}
	if out := hunt(t, 8, 20, 8, shapes(1, 2, 3, 10), twice); out.worst <= 1 {
		t.Errorf("second round for free: closest attack is %.4f of the claim; not refuted", out.worst)
	}
}

// TestComposition_DifferingRounds attacks one round with each of two mechanisms.
func TestComposition_DifferingRounds(t *testing.T) {
	const seed = 99
	rng := rand.New(rand.NewPCG(seed, 0))
	worst := 0.0
	for range 80 {
		m1, m2 := shapes(1, 1, 6, 30)(rng), shapes(1, 1, 6, 30)(rng)
		eps, err := Epsilon(math.Pow(10, -7+5*rng.Float64()), m1, m2)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsInf(eps, 1) {
			continue
		}
		claim, err := Delta(eps, m1, m2)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			var p, q [][]float64
			for _, m := range []Mechanism{m1, m2} {
				x, y := randomPair(rng, m.Levels, 1)
				noise := noiseLaw(m.Trials, m.P)
				p = append(p, coordinateLaw(noise, x[0], m.Levels))
				q = append(q, coordinateLaw(noise, y[0], m.Levels))
			}
			worst = max(worst, hockeyStick(p, q, eps)/claim, hockeyStick(q, p, eps)/claim)
		}
	}
	t.Logf("seed %d: closest exact/bound %.4f", seed, worst)
	if worst > 1 || worst < 0.5 {
		t.Errorf("seed %d: closest exact/bound %v, want 0.5 to 1", seed, worst)
	}
}
