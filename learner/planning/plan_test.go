package planning_test

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// a9a returns the LIBSVM data set with an intercept: at most 14 ones and a 1, so X^2 = 15.
func a9a() planning.Problem {
	return planning.Problem{Users: 32561, Dim: 124, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 20}, Epsilon: 1,
		Delta:          1e-6,
		HonestFraction: accounting.One}.ForLoss(convex.Logistic{}, math.Sqrt(15), 1)
}

func plan(t *testing.T, p planning.Problem) planning.Proposal {
	t.Helper()
	out, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPlanOfA9A(t *testing.T) {
	p := plan(t, a9a())
	if p.Plan.Algorithm != "pagd" || manifest.Planned(p.Plan) != 75 || p.Plan.Phases[0].Cohort != 434 ||
		manifest.LastCohort(p.Plan.Phases[0]) != 445 || p.Plan.Phases[0].Minimum != 391 {
		t.Errorf("%s with %d rounds of %d (last %d, minimum %d), want pagd with 75 of 434 (445, 391)",
			p.Plan.Algorithm, manifest.Planned(p.Plan), p.Plan.Phases[0].Cohort, manifest.LastCohort(p.Plan.Phases[0]),
			p.Plan.Phases[0].Minimum)
	}
	if math.Abs(p.Plan.Phases[0].GetAcceleration().GetV()-7.5) > 1e-9 {
		t.Errorf("v = %v, want 2 beta = 7.5", p.Plan.Phases[0].GetAcceleration().GetV())
	}
	if math.Abs(p.ExcessRisk-1.76) > 0.03 || !p.Plan.Clips || !p.Vacuous || p.TrivialRisk != math.Ln2 {
		t.Errorf("risk %v (clips %v, vacuous %v against %v), want about 1.76, clipped and vacuous against ln 2",
			p.ExcessRisk, p.Plan.Clips, p.Vacuous, p.TrivialRisk)
	}
	if p.Forecasts[0].Privacy.Users != p.Plan.Phases[0].Cohort || p.Forecasts[0].Privacy.Dim != 124 ||
		p.Forecasts[0].Privacy.Epsilon > 1 || p.Forecasts[0].Privacy.RoundsPerUser != 1 {
		t.Errorf("charged %+v, want one round of the planned cohort", p.Forecasts[0].Privacy)
	}
	params, err := manifest.Params(p.Plan.Phases[0].Mechanism)
	if err != nil || params.Dim != 124 || params.ClipNorm != 1 {
		t.Errorf("params %+v, %v", params, err)
	}
}

// TestPlanAndEstimatorAgree: the plan's variance is what the estimator will report for a planned cohort.
func TestPlanAndEstimatorAgree(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		q := a9a()
		q.Trust = trust
		p := plan(t, q)
		params, err := manifest.Params(p.Plan.Phases[0].Mechanism)
		if err != nil {
			t.Fatal(err)
		}
		e, err := method.EstimateMean(params, make([]uint64, 124), p.Plan.Phases[0].Cohort,
			params.NoiseTrials(p.Plan.Phases[0].Cohort, p.Plan.Phases[0].Cohort))
		if err != nil {
			t.Fatal(err)
		}
		if got := planning.OracleVariance(1, p.Plan.Phases[0].Cohort, 124, e.PrivacyVariance,
			e.RoundingVariance); math.Abs(got/p.Forecasts[0].OracleVariance-1) > 1e-9 {
			t.Errorf("%v: planned V = %v, measured V = %v", trust, p.Forecasts[0].OracleVariance, got)
		}
	}
}

// TestPlanIsOptimal: no other cohort has a bound lower by more than what the search ignores.
func TestPlanIsOptimal(t *testing.T) {
	base := a9a()
	few := base
	few.Users, few.Dim, few.Set.Radius, few.MaxBits = 5000, 10, 2, 12
	for name, q := range map[string]planning.Problem{"a9a": base, "few bits": few} {
		for _, method := range []string{schedule.PAGD, schedule.PSGD} {
			q.Algorithm = method
			best := plan(t, q)
			for _, f := range []float64{0.5, 0.9, 1.1, 2} {
				other := q
				if other.Cohort = uint64(f * float64(best.Plan.Phases[0].Cohort)); other.Cohort < 1 || other.Cohort > q.Users {
					continue
				}
				p, err := planning.MakePlan(other)
				if err == nil && p.ExcessRisk < 0.98*best.ExcessRisk {
					t.Errorf("%s, %s: risk %v with a cohort of %d, planned %v with %d",
						name, method, p.ExcessRisk, p.Plan.Phases[0].Cohort, best.ExcessRisk, best.Plan.Phases[0].Cohort)
				}
			}
		}
	}
}

func TestPlanKeepsWhatIsFixed(t *testing.T) {
	q := a9a()
	q.Cohort, q.Minimum = 1000, 700
	if p := plan(t, q); p.Plan.Phases[0].Cohort != 1000 || manifest.Planned(p.Plan) != 32 ||
		manifest.LastCohort(p.Plan.Phases[0]) != 1561 || p.Plan.Phases[0].Minimum != 700 ||
		manifest.Cohort(p.Plan, 31) != 1000 || manifest.Cohort(p.Plan, 32) != 1561 {
		t.Errorf("cohort %d, rounds %d, last %d, minimum %d", p.Plan.Phases[0].Cohort, manifest.Planned(p.Plan),
			manifest.LastCohort(p.Plan.Phases[0]), p.Plan.Phases[0].Minimum)
	}
	q.MaxRounds = 10
	if p := plan(t, q); p.Plan.Phases[0].Cohort != 1000 || manifest.Planned(p.Plan) != 10 ||
		manifest.LastCohort(p.Plan.Phases[0]) != 1000 {
		t.Errorf("ten rounds at most: cohort %d, rounds %d, last %d", p.Plan.Phases[0].Cohort, manifest.Planned(p.Plan),
			manifest.LastCohort(p.Plan.Phases[0]))
	}
	q.Cohort = 0
	if p := plan(t, q); p.Plan.Phases[0].Cohort != 3256 || manifest.Planned(p.Plan) != 10 ||
		manifest.LastCohort(p.Plan.Phases[0]) != 3257 {
		t.Errorf("ten rounds at most, free cohort: cohort %d, rounds %d, last %d", p.Plan.Phases[0].Cohort,
			manifest.Planned(p.Plan), manifest.LastCohort(p.Plan.Phases[0]))
	}
	q = a9a()
	q.Minimum = 1500
	if p := plan(t, q); p.Plan.Phases[0].Cohort < 1500 {
		t.Errorf("cohort %d below its own minimum 1500", p.Plan.Phases[0].Cohort)
	}
	q = a9a()
	q.MaxBits = 8
	if p := plan(t, q); p.Forecasts[0].Privacy.BitsPerCoordinate > 8 {
		t.Errorf("%d bits a coordinate, want at most 8", p.Forecasts[0].Privacy.BitsPerCoordinate)
	}
}

// TestPlanChargesExtraCoordinates: two extra coordinates of norm w are charged as one block: sensitivity
// hypot(L, w) in d+2 coordinates.
func TestPlanChargesExtraCoordinates(t *testing.T) {
	q := a9a()
	q.Cohort, q.Validation = 434, &convex.Scorecard{Norm: 0.75, High: 1, Correctness: true}
	p := plan(t, q)
	m := p.Plan.Phases[0].Mechanism
	if m.ClipNorm != 1.25 || p.Forecasts[0].Privacy.Dim != 126 || p.Plan.ClipNorm != 1 || manifest.Dim(p.Plan) != 124 ||
		p.Inflation() != 1.25 {
		t.Errorf("encoded norm %v in %d coordinates, gradient %v in %d", m.ClipNorm, p.Forecasts[0].Privacy.Dim,
			p.Plan.ClipNorm, manifest.Dim(p.Plan))
	}
	if params, err := manifest.Params(p.Plan.Phases[0].Mechanism); err != nil || params.Dim != 126 ||
		params.ClipNorm != 1.25 {
		t.Errorf("params %+v, %v", params, err)
	}
	mse := p.Forecasts[0].Privacy.NoiseStd*p.Forecasts[0].Privacy.NoiseStd +
		p.Forecasts[0].Privacy.RoundingStd*p.Forecasts[0].Privacy.RoundingStd
	if want := 1.0/434 + 124*1.25*1.25*mse; math.Abs(p.Forecasts[0].OracleVariance/want-1) > 1e-12 {
		t.Errorf("V = %v, want %v", p.Forecasts[0].OracleVariance, want)
	}
}

// TestPlanWithThePapersConstants: the paper's constants give a plan to look at, not to run.
func TestPlanWithThePapersConstants(t *testing.T) {
	q := a9a()
	q.Cohort = 434
	numeric := plan(t, q)
	q.Profile = accounting.Paper
	p := plan(t, q)
	if p.ExcessRisk < numeric.ExcessRisk {
		t.Errorf("risk %v with the paper's constants, %v numerically", p.ExcessRisk, numeric.ExcessRisk)
	}
	if _, err := manifest.Params(p.Plan.Phases[0].Mechanism); (err == nil) != p.Forecasts[0].Privacy.Runnable ||
		(p.Runnable() == nil) != (err == nil) {
		t.Errorf("runnable %v, but Params says %v, Runnable %v", p.Forecasts[0].Privacy.Runnable, err, p.Runnable())
	}
}

func TestProblemsAreRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, change := range map[string]func(*planning.Problem){
		"users":           func(p *planning.Problem) { p.Users = 0 },
		"dim":             func(p *planning.Problem) { p.Dim = 0 },
		"algorithm":       func(p *planning.Problem) { p.Algorithm = "adam" },
		"clip norm":       func(p *planning.Problem) { p.ClipNorm = 0 },
		"radius":          func(p *planning.Problem) { p.Set.Radius = inf },
		"smoothness":      func(p *planning.Problem) { p.Smoothness = nan },
		"lipschitz":       func(p *planning.Problem) { p.Lipschitz = nan },
		"start risk":      func(p *planning.Problem) { p.StartRisk = -1 },
		"norm":            func(p *planning.Problem) { p.Validation = &convex.Scorecard{High: 1} },
		"cohort":          func(p *planning.Problem) { p.Cohort = 40000 },
		"minimum cohort":  func(p *planning.Problem) { p.Cohort, p.Minimum = 10, 11 },
		"mean smoothness": func(p *planning.Problem) { p.MeanSmoothness = nan },
		"epsilon":         func(p *planning.Problem) { p.Epsilon = 0 },
		"delta":           func(p *planning.Problem) { p.Delta = 1 },
		"fraction":        func(p *planning.Problem) { p.HonestFraction = accounting.Fraction{} },
		"overflow":        func(p *planning.Problem) { p.ClipNorm, p.Set.Radius, p.Lipschitz = 1e200, 1e200, 1e200 },
		"trust":           func(p *planning.Problem) { p.Trust = 9 },
	} {
		q := a9a()
		change(&q)
		_, err := planning.MakePlan(q)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

// BenchmarkMakePlan plans the a9a task.
func BenchmarkMakePlan(b *testing.B) {
	for b.Loop() {
		if _, err := planning.MakePlan(a9a()); err != nil {
			b.Fatal(err)
		}
	}
}
