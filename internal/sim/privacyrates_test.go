package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// silence returns a problem in which nothing is learned: all events are zero vectors, so that the exact model
// stays at the optimum, the origin, of the ridge that is left, and the whole risk of the private one is
// noise. The loss is smooth, or for methods on the envelope not. Few rounds in all, so that their number is
// always the same.
func silence(users uint64, dim int, epsilon float64, trust accounting.Trust, name string) planning.Problem {
	p := planning.Problem{Users: users, Dim: dim, Algorithm: name, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 4},
		Ridge: 1, Epsilon: epsilon, Delta: 1e-6,
		Trust: trust, HonestFraction: accounting.One, Rounds: planning.Rounds{MaxRounds: 8, Interactive: true}}
	return p.ForLoss(silent(name), 1, 0)
}

func silent(name string) convex.Loss {
	if m, _ := schedule.Of(name); m.Envelope {
		return convex.Absolute{}
	}
	return convex.Squared{}
}

// noiseRisk returns the mean risk of the private model of a silent problem, its standard error, and the plan.
// The exact model's risk is 0.
func noiseRisk(t *testing.T, p planning.Problem, repeats int) (mean, sd float64, plan *wire.Plan) {
	t.Helper()
	made, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	examples := make([]convex.Example, p.Users)
	for i := range examples {
		examples[i] = convex.Example{Value: make([]float64, p.Dim)}
	}
	var square float64
	for seed := range repeats {
		out, err := sim.Run(context.Background(), sim.Config{Plan: made.Plan, Loss: silent(p.Algorithm), Examples: examples,
			Seed: uint64(seed)})
		if err != nil {
			t.Fatal(err)
		}
		n := convex.Norm(out.Model)
		mean += n * n / 2 / float64(repeats)
		square += math.Pow(n, 4) / 4 / float64(repeats)
	}
	return mean, math.Sqrt((square - mean*mean) / float64(repeats-1)), made.Plan
}

// multiplier returns the mu for which a Gaussian of deviation 1/mu hides a difference of 1 at (epsilon,
// delta): Balle and Wang 2018, by bisection.
func multiplier(epsilon, delta float64) float64 {
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	low, high := 0.0, 10.0
	for range 60 {
		mu := (low + high) / 2
		if below(mu/2-epsilon/mu)-math.Exp(epsilon)*below(-mu/2-epsilon/mu) > delta {
			high = mu
		} else {
			low = mu
		}
	}
	return low
}

// gaussianRisk returns the risk that a plan would have with Gaussian noise of the least level: 2/(m mu) in every
// coordinate, mu divided by the root of the number of rounds a user, once for each share of noise.
func gaussianRisk(t *testing.T, p planning.Problem, plan *wire.Plan, copies float64) (mean float64) {
	t.Helper()
	const repeats = 400
	r := rand.New(rand.NewPCG(9, 9))
	for range repeats {
		a, err := learner.New(plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range plan.Phases {
			for round := range f.Rounds {
				m := f.Cohort
				if round == f.Rounds-1 {
					m = manifest.LastCohort(f)
				}
				s := 2 / (float64(m) * multiplier(p.Epsilon, p.Delta)) * math.Sqrt(copies*float64(f.RoundsPerUser))
				g := make([]float64, p.Dim)
				for j := range g {
					g[j] = s * r.NormFloat64()
				}
				if err := a.Step(method.Estimate{Gradient: g, Users: m}); err != nil {
					t.Fatal(err)
				}
			}
		}
		n := convex.Norm(a.Model())
		mean += n * n / 2 / repeats
	}
	return mean
}

// What privacy adds to the risk, private less exact, falls with the square of the users and of the epsilon's
// Gaussian multiplier and grows in proportion to the dimension, for every method and every trust, where the
// number of rounds is fixed and noise is all there is; and it equals the effect of Gaussian noise of the
// least level, one share under shuffle, two floors under pan, all three under both, up to what integers and
// the accountant's bounds cost. Seeds are fixed; bands are more than three standard errors wide, and the next
// wrong exponent is far outside.
func TestPrivacyIsPaidAtTheRightRate(t *testing.T) {
	const dim, repeats = 8, 24
	trusts := []struct {
		trust  accounting.Trust
		copies float64
	}{{accounting.Shuffle, 1}, {accounting.Pan, 2}, {accounting.ShufflePan, 3}}
	for _, name := range schedule.Names() {
		m, _ := schedule.Of(name)
		if m.Minimizers { // of silos
			continue
		}
		users := uint64(2000)
		if m.Interactive { // each of whom takes part several times
			users = 1000
		}
		for _, c := range trusts {
			if m.Interactive && c.trust != accounting.Shuffle || c.trust == accounting.ShufflePan && name != schedule.PAGD {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", name, c.trust), func(t *testing.T) {
				base := silence(users, dim, 1, c.trust, name)
				at, sd, plan := noiseRisk(t, base, repeats)
				if level, want := at, gaussianRisk(t, base, plan, c.copies); !(level > 0.75*want && level < 1.7*want) {
					t.Errorf("risk %.3g, %.2f of that of Gaussian noise", level, level/want)
				} else {
					t.Logf("risk %.3g (%.2g), %.2f of that of Gaussian noise", level, sd, level/want)
				}
				for what, change := range map[string]struct {
					problem planning.Problem
					ratio   float64
					slope   float64
				}{
					"users":     {silence(4*users, dim, 1, c.trust, name), 4, -2},
					"dimension": {silence(users, 4*dim, 1, c.trust, name), 4, 1},
					"epsilon":   {silence(users, dim, 4, c.trust, name), multiplier(4, 1e-6) / multiplier(1, 1e-6), -2},
				} {
					other, otherSD, changed := noiseRisk(t, change.problem, repeats)
					if manifest.Planned(changed) != manifest.Planned(plan) {
						t.Errorf("%s: %d rounds, and %d: nothing can be compared", what, manifest.Planned(plan),
							manifest.Planned(changed))
					}
					slope := math.Log(other/at) / math.Log(change.ratio)
					t.Logf("%s: slope %.2f (%.2f), want %.0f", what, slope, math.Hypot(sd/at, otherSD/other)/math.Log(change.ratio),
						change.slope)
					if !(math.Abs(slope-change.slope) < 0.4) {
						t.Errorf("%s: slope %.2f, want %v", what, slope, change.slope)
					}
				}
			})
		}
	}
}

// Theorem C.3 in its four settings, smooth or not, strongly convex or not: under pan the risk on data is within the
// planned bound, and with a ridge, where the plans' steps are long, most of it is noise.
func TestTheoremC3_RiskIsWithinTheBound(t *testing.T) {
	for _, p := range populations {
		c := sim.SeriesConfig{Synthetic: p.synthetic, Problem: smooth(), Methods: p.sequential[len(p.sequential)-1:],
			Users: []uint64{1000}, Repeats: 6}
		c.Problem.Trust = accounting.Pan
		points, err := sim.Series(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		within(t, points)
		if r := points[0].Risks[0]; p.synthetic.Ridge > 0 && !(r.Mean > 2*r.NonPrivate) {
			t.Errorf("%s, %s: risk %v, %v without noise: privacy costs nothing", p.name, r.Method, r.Mean, r.NonPrivate)
		}
	}
}
