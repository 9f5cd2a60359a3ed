package resque

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// The epochs of Algorithm 1, with the paper's 3 for the second moment.
func TestEpochSchedule(t *testing.T) {
	for _, c := range []struct {
		phi     float64
		epochs  int
		queries int64
	}{{.01, 4, 236}, {.0025, 6, 1002}, {.32, 0, 0}, {.5, 0, 0}} {
		if k, _ := epochs(1, 3, 10, c.phi); k != c.epochs || epochQueries(k) != c.queries {
			t.Errorf("phi = %v: %d epochs of %d gradients, want %d of %d", c.phi, k, epochQueries(k), c.epochs, c.queries)
		}
	}
}

// The schedule of Algorithm 2, with the paper's 3.
func TestACSASchedule(t *testing.T) {
	b := ball{longest: 1, rho: .1, r: .1}
	for _, c := range []struct {
		phi          float64
		restarts     int
		queries      int64
		first, final int64
	}{{.01, 4, 1440, 16, 128}, {.0025, 6, 6048, 16, 512}} {
		s := schedule(b, 3, 10, c.phi)
		if s.restarts != c.restarts || s.steps != 6 || s.queries() != c.queries || s.batches[0] != c.first ||
			s.batches[s.restarts-1] != c.final {
			t.Errorf("phi = %v: %+v of %d queries", c.phi, s, s.queries())
		}
	}
}

// Costs are at most those of the formulas, and guarantee what is asked for.
func TestSolverCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := ball{longest: math.Exp(rapid.Float64Range(-3, 3).Draw(t, "log L")),
			rho: math.Exp(rapid.Float64Range(-6, 0).Draw(t, "log rho"))}
		b.r = b.rho * rapid.Float64Range(.1, 2).Draw(t, "s")
		lambda := b.longest / b.r * math.Exp(rapid.Float64Range(-4, 4).Draw(t, "log lambda r/L"))
		phi := b.longest * b.longest / lambda * math.Exp(rapid.Float64Range(-12, 2).Draw(t, "log phi"))
		for _, s := range []solver{epochSGD{}, restarted{}} {
			n, gap := s.cost(b, lambda, phi)
			if gap > phi*(1+1e-12) && n <= maxCall {
				t.Errorf("%T: a gap of %v, want %v", s, gap, phi)
			}
			if again, _ := s.cost(b, lambda, phi/2); again < n {
				t.Errorf("%T: half the gap costs %d queries after %d", s, again, n)
			}
		}
		k, _ := epochs(b.longest, b.variance(), lambda, phi)
		if most := math.Ceil(16 * b.variance() / lambda / phi); firstEpoch*(math.Ldexp(1, k)-1) > most {
			t.Errorf("%d epochs, which Algorithm 1 does not have with T = %v", k, most)
		}
	})
}

// Both solvers keep their guarantee: the mean gap of many solves of a subproblem whose minimum is known, a
// quadratic plus a slope, is below phi by more than its standard errors.
func TestSolversReachTheirGap(t *testing.T) {
	const d, lambda = 4, 6.
	b := ball{longest: 2, rho: .2, r: .2}
	q, slope, centre := []float64{.1, .5, 1, 2}, []float64{.7, -.5, .3, .2}, []float64{.1, .2, -.1, 0}
	// E||g||^2 <= L^2 where the solver asks: the noise is chosen for that.
	oracle := oracleFunc(func(_ context.Context, dst, points []float64, random *rand.Rand) error {
		for i, v := range points {
			dst[i] = float64(q[i%d]*v) + slope[i%d] + .7*random.NormFloat64()
		}
		return nil
	})
	value := func(v []float64) (sum float64) {
		for i, u := range v {
			x := centre[i] + u
			sum += q[i]*x*x/2 + slope[i]*x + lambda/2*u*u
		}
		return sum
	}
	best := make([]float64, d)
	for i := range best {
		best[i] = -(q[i]*centre[i] + slope[i]) / (q[i] + lambda)
	}
	if dot(best, best) > b.r*b.r {
		t.Fatal("the minimum is not in the ball")
	}
	for _, s := range []solver{epochSGD{}, restarted{}} {
		for _, phi := range []float64{.2, .05, .0125} {
			p := &pool{oracle: oracle, dim: d, seed: dptest.Seed(5)}
			var total, squares float64
			const trials = 60
			for range trials {
				v, err := s.solve(t.Context(), p, b, centre, lambda, phi)
				if err != nil {
					t.Fatal(err)
				}
				if dot(v, v) > b.r*b.r*(1+1e-12) {
					t.Errorf("%T: outside of the ball", s)
				}
				gap := value(v) - value(best)
				total, squares = total+gap, squares+gap*gap
			}
			queries, _ := s.cost(b, lambda, phi)
			if p.queries != trials*queries {
				t.Errorf("%T: %d queries, want %d", s, p.queries, trials*queries)
			}
			m := total / trials
			t.Logf("%T, phi %v: mean gap %.2g of %d queries", s, phi, m, queries)
			if deviation := math.Sqrt(squares/trials-m*m) / math.Sqrt(trials); m+zLimit*deviation > phi {
				t.Errorf("%T: mean gap %v, standard error %v, want at most %v", s, m, deviation, phi)
			}
		}
	}
}
