package planning_test

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// ridged returns a smooth, strongly convex problem to which every method applies. Nothing is clipped.
func ridged() planning.Problem {
	return planning.Problem{Users: 20000, Dim: 5, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 2}, Ridge: 0.05,
		Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One, Rounds: planning.Rounds{Interactive: true}}.ForLoss(convex.Logistic{}, 1, -1, 1)
}

// independent recomputes the bound of a phase from its rounds, cohort and noise, with formulas of its own and
// constants found by trying many. It uses nothing of package learner.
func independent(method string, ph *wire.Phase, privacy accounting.Plan, dim int, lip, beta, ridge, radius, distance,
	prior float64) (variance, risk float64) {
	T, m := float64(ph.Rounds), float64(ph.Cohort)
	rounding := float64(dim) * math.Pow(privacy.RoundingStd, 2)
	variance = float64(dim)*math.Pow(privacy.NoiseStd, 2) + rounding
	interactive, envelope := strings.HasPrefix(method, "pgd") || strings.HasPrefix(method, "apgd"),
		strings.Contains(method, "envelope")
	if !interactive {
		variance += lip * lip / m
	}
	D2, whole := distance*distance, lip+ridge*radius
	accelerated := func(b float64) float64 {
		least := math.Inf(1)
		for _, v := range []float64{math.Max(2*b, math.Sqrt(2*variance*T*(T+1)*(T+2)/3)/distance), b} {
			noise := 8 * variance / (ridge * (T + 1))
			if v >= 2*b {
				noise = math.Min(noise, 4*variance*(T+2)/(3*v))
			}
			least = math.Min(least, 2*v*D2/(T*(T+1))+noise)
		}
		return least
	}
	descent := func(b float64) float64 {
		least := math.Inf(1)
		slope := lip*lip*T/m + 2*lip/3*math.Sqrt(2*rounding*T)
		for i := range 2000 {
			eta := 2 / (b + ridge) * math.Pow(1e-5, float64(i)/2000)
			common := D2/(2*eta*T) + eta*slope
			least = math.Min(least, common+eta/2*(whole*whole+variance))
			if eta*b < 1 {
				least = math.Min(least, common+eta*variance/2/(1-eta*b)+(prior+2*eta*slope)/T)
			}
			if q := 1 - eta*ridge; q > 0 { // weights q^-1, q^-2 .. q^-T
				sum, end := (math.Pow(q, -T)-1)/(1-q), math.Pow(q, T)
				moved := 2 * lip * lip / (m * ridge)
				spread := lip * eta * math.Sqrt(2*rounding/(1-q*q))
				gen := moved*(1-T/(q*sum)) + spread*math.Sqrt(math.Max(0, 1-(1-end)/(q*(1-q)*sum)))
				least = math.Min(least, gen+D2/(2*eta*sum)+eta/2*(whole*whole+variance))
				if eta*b < 1 {
					last := moved*(1-end) + spread*math.Sqrt(1-end*end)
					least = math.Min(least, gen+(D2/(2*eta*sum)+eta*variance/2/(1-eta*b)+prior/sum)/q+last*math.Pow(q, -T)/(q*sum))
				}
			}
		}
		return least
	}
	bound := accelerated
	switch {
	case method == "psgd":
		risk, square := math.Inf(1), whole*whole+variance
		for i := range 5000 {
			eta := 0.999 / ridge * math.Pow(1e-6, float64(i)/5000)
			risk = math.Min(risk, D2*ridge/2/(math.Pow(1-eta*ridge, -T)-1)+eta*square/2)
		}
		return variance, risk
	case strings.HasPrefix(method, "pgd"):
		bound = descent
	}
	if !envelope {
		return variance, bound(beta + ridge)
	}
	risk = math.Inf(1)
	for i := range 500 {
		B := 1e-3 * math.Pow(10, float64(i)/50) // to 1e7
		risk = math.Min(risk, bound(1/(1/beta+1/B)+ridge)+lip*lip/(2*B))
	}
	return variance, risk
}

// TestPlansFollowFromTheirNoise: every number of every plan follows from its rounds and its noise: Lemma 4.2,
// Theorems 4.3, 4.7, 4.8 and 4.9 of the ICLR 2022 paper.
func TestPlansFollowFromTheirNoise(t *testing.T) {
	for name, p := range map[string]planning.Problem{"logistic": ridged(), "hinge": ridged().ForLoss(convex.Hinge{}, 1, -1,
		1)} {
		for _, method := range schedule.Names() {
			if p.Applies(method) != nil {
				continue
			}
			p.Algorithm = method
			plan, err := planning.MakePlan(p)
			if err != nil {
				t.Fatal(err)
			}
			if phases := 1; method == schedule.APGDRestarts {
				if plan.Plan.Phases[0].Again || len(plan.Stints()) != 1 {
					t.Errorf("%s: %d stints, want one", method, len(plan.Stints()))
				}
			} else if strings.Contains(method, "restarts") {
				if phases = 4; len(plan.Plan.Phases) != phases { // log2 log2 20000 = 3.84
					t.Errorf("%s: %d phases, want %d", method, len(plan.Plan.Phases), phases)
				}
			} else if len(plan.Plan.Phases) != phases {
				t.Errorf("%s: %d phases, want %d", method, len(plan.Plan.Phases), phases)
			}
			prior, reach := plan.TrivialRisk, 2.0
			for i, ph := range plan.Plan.Phases {
				of := plan.Forecasts[i]
				distance := math.Min(reach, math.Sqrt(2*prior/0.05))
				variance, risk := independent(method, ph, of.Privacy, 5, 1, p.Smoothness, 0.05, 2, distance, prior)
				if math.Abs(of.Distance/distance-1) > 1e-12 || math.Abs(of.OracleVariance/variance-1) > 1e-9 ||
					of.Risk < 0.995*risk || of.Risk > 1.01*risk {
					t.Errorf("%s, %s, phase %d: D %v, V %v, risk %v, want %v, %v, %v", name, method, i+1, of.Distance,
						of.OracleVariance, of.Risk,
						distance, variance, risk)
				}
				if of.Privacy.Epsilon > 1 || of.Privacy.Users != ph.Cohort || of.Privacy.RoundsPerUser != int(ph.RoundsPerUser) ||
					*of.Privacy.ProvedEpsilon > 1 {
					t.Errorf("%s, phase %d: charged %+v", method, i+1, of.Privacy)
				}
				prior, reach = of.Risk, 4
			}
			if strings.HasPrefix(method, "apgd") { // the prior is that on the users' mean loss; L = 1, L' = 1.1
				prior = 2/(0.05*20000) + 1.1*math.Sqrt(2*prior/0.05)
			}
			if math.Abs(plan.ExcessRisk/prior-1) > 1e-12 || plan.OnRecords {
				t.Errorf("%s, %s: risk %v, want %v", name, method, plan.ExcessRisk, prior)
			}
			t.Logf("%s, %s: %d rounds, risk %.4g", name, method, manifest.Planned(plan.Plan), plan.ExcessRisk)
		}
	}
}

// TestAutoComparesAllThatApply checks that auto takes the method that did best on simulated rows, of all that
// apply, and names the methods that it compared.
func TestAutoComparesAllThatApply(t *testing.T) {
	p := ridged()
	p.Users, p.MaxRounds, p.Algorithm = 3000, 100, schedule.Auto
	all, err := p.Alternatives()
	if err != nil || len(all) != len(schedule.Names()) {
		t.Fatalf("%d alternatives, %v", len(all), err)
	}
	plan, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Method == schedule.Prox { // of silos, and by name
			if a.Err == nil || strings.Contains(plan.Why, a.Method) {
				t.Errorf("prox: %v, in %q", a.Err, plan.Why)
			}
		} else if a.Err != nil {
			t.Errorf("%s does not apply: %v", a.Method, a.Err)
		} else if a.Why != "" || !strings.Contains(plan.Why, a.Method) {
			t.Errorf("%q does not mention %s, or %q says why", plan.Why, a.Method, a.Why)
		}
	}
	if !strings.HasPrefix(plan.Why, "auto took "+plan.Plan.Algorithm+": with simulated rows ") {
		t.Errorf("why: %q", plan.Why)
	}
}

// TestMethodsThatApply: the methods that apply: not smooth, no plain PAGD or PGD; no ridge, no restarts; no
// prox, no envelope; asked once, no PGD or APGD, and never under floors.
func TestMethodsThatApply(t *testing.T) {
	const psgd, pagd, pagdE, pagdR, pagdER, pgd, pgdE, pgdR, pgdER, apgd, apgdE, apgdR = 1, 2, 4, 8, 16, 32, 64, 128, 256,
		512, 1024, 2048
	for name, c := range map[string]struct {
		change func(*planning.Problem)
		want   int
		then   string // DefaultMethod
	}{
		"all":        {func(*planning.Problem) {}, 4095, "auto"},
		"asked once": {func(p *planning.Problem) { p.Interactive = false }, psgd | pagd | pagdE | pagdR | pagdER, "pagd"},
		"no ridge":   {func(p *planning.Problem) { p.Ridge = 0 }, psgd | pagd | pagdE | pgd | pgdE | apgd | apgdE, "auto"},
		"not smooth": {func(p *planning.Problem) { p.Smoothness = math.Inf(1); p.Interactive = false }, psgd | pagdE |
			pagdER, "pagd-envelope"},
		"no prox": {func(p *planning.Problem) { p.Proximal = false }, psgd | pagd | pagdR | pgd | pgdR | apgd | apgdR,
			"auto"},
		"neither": {func(p *planning.Problem) { p.Proximal, p.Smoothness, p.Interactive = false, math.Inf(1), false },
			psgd, "psgd"},
		"floors":   {func(p *planning.Problem) { p.Trust = accounting.Pan }, psgd | pagd | pagdE | pagdR | pagdER, "auto"},
		"cohort":   {func(p *planning.Problem) { p.Cohort = 100 }, psgd | pagd | pagdE | pagdR | pagdER, "auto"},
		"constant": {func(p *planning.Problem) { p.Continuous, p.Interactive = "constant", false }, psgd, "psgd"},
		"decaying": {func(p *planning.Problem) { p.Continuous, p.Interactive = "decaying", false }, psgd, "psgd"},
		"epochs":   {func(p *planning.Problem) { p.Continuous, p.Interactive = "epochs", false }, pagd | pagdE, "pagd"},
		"epochs hing": {func(p *planning.Problem) {
			p.Continuous, p.Interactive, p.Smoothness = "epochs", false,
				math.Inf(1)
		}, pagdE, "pagd-envelope"},
	} {
		p := ridged()
		c.change(&p)
		got := 0
		for i, m := range schedule.Names() {
			if p.Applies(m) == nil {
				got |= 1 << i
			}
		}
		if got != c.want || p.DefaultMethod() != c.then {
			t.Errorf("%s: methods %b and %s, want %b and %s", name, got, p.DefaultMethod(), c.want, c.then)
		}
	}
	p := ridged()
	p.Trust, p.Algorithm = accounting.ShufflePan, schedule.PGD
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "pgd: ") ||
		!strings.Contains(err.Error(), "C.3") {
		t.Errorf("pgd under floors: %v", err)
	}
}

// TestNoPlan checks that the error gives a reason for each method where auto finds none, and names the limit
// where it leaves no room for phases.
func TestNoPlan(t *testing.T) {
	p := ridged()
	p.Algorithm, p.MaxRounds = schedule.PAGDRestarts, 3
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "3 rounds do not go into 4 phases") {
		t.Errorf("three rounds in four phases: %v", err)
	}
	p = ridged()
	p.Algorithm, p.MaxBits, p.Users, p.Epsilon = schedule.Auto, 2, 100, 0.01
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "no method has a plan") {
		t.Errorf("two bits a coordinate, a hundred users: %v", err)
	}
}

// TestTrivialRisk: trivial: with the start at the origin it is the loss there, with a ridge at most L^2/(2
// lambda); a simplex starts elsewhere.
func TestTrivialRisk(t *testing.T) {
	p := ridged()
	for _, c := range []struct {
		set   convex.SetDeclaration
		ridge float64
		want  float64
	}{
		{convex.SetDeclaration{Radius: 2}, 0, math.Ln2}, {convex.SetDeclaration{Radius: 0.5}, 0, 0.5},
		{convex.SetDeclaration{Radius: 2}, 2, 0.25},
		// start (1/5 ..), of norm 1/sqrt 5
		{convex.SetDeclaration{Kind: "simplex", Radius: 1}, 0, 1}, {convex.SetDeclaration{Kind: "simplex", Radius: 1}, 1,
			math.Pow(1+1/math.Sqrt(5), 2) / 2},
	} {
		p.Set, p.Ridge, p.Algorithm = c.set, c.ridge, schedule.PSGD
		if got := plan(t, p).TrivialRisk; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v, ridge %v: trivial risk %v, want %v", c.set, c.ridge, got, c.want)
		}
	}
}

// TestUsersNeeded checks that predictions over n agree with plans: the number of users that would do is just
// enough.
func TestUsersNeeded(t *testing.T) {
	p := a9a()
	made, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := p.Curve(made)
	if err != nil {
		t.Fatal(err)
	}
	if at := curve.At(p.Users, p.Epsilon); math.Abs(at/made.ExcessRisk-1) > 0.02 {
		t.Errorf("the curve says %v where the plan says %v", at, made.ExcessRisk)
	}
	n, ok := curve.UsersNeeded(made.TrivialRisk)
	if !ok {
		t.Fatal("no number of users is enough")
	}
	for _, f := range []float64{0.9, 1.1} {
		q := p
		q.Users = uint64(f * float64(n))
		if other := plan(t, q); other.Vacuous != (f < 1) {
			t.Errorf("%d users are needed, but with %d the bound is %v against %v", n, q.Users, other.ExcessRisk,
				other.TrivialRisk)
		}
	}
	if _, ok := curve.UsersNeeded(0); ok {
		t.Error("a risk of 0 is reached")
	}
}

// TestYardsticksAreOrdered: a trusted curator never does worse than nobody trusted, nor than this system, and
// the constants of the paper do worse than both.
func TestYardsticksAreOrdered(t *testing.T) {
	for _, epsilon := range []float64{0.5, 8} {
		p := ridged()
		p.Users, p.Epsilon, p.Interactive, p.Ridge, p.Algorithm = 5000, epsilon, false, 0, schedule.Auto
		made, err := planning.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.Baselines(made.Plan.Algorithm)
		if err != nil {
			t.Fatal(err)
		}
		risk := map[string]float64{}
		for _, y := range all {
			if y.Err != nil || y.Method == "" || y.Rounds < 1 || !(y.NoiseStd > 0) {
				t.Errorf("epsilon %v: %+v", epsilon, y)
			}
			risk[y.Name] = y.Risk
			if c, err := y.Curve(p); y.Name != planning.BaselinePaper &&
				(err != nil || math.Abs(c.At(p.Users, epsilon)/y.Risk-1) > 1e-9) {
				t.Errorf("epsilon %v: the curve of %s says %v, the baseline %v", epsilon, y.Name, c.At(p.Users, epsilon), y.Risk)
			}
		}
		t.Logf("epsilon %v: this system %.4g, %v", epsilon, made.ExcessRisk, risk)
		if !(risk["central"] <= risk["local"] && risk["central"] <= made.ExcessRisk && made.ExcessRisk <= risk["paper"]) ||
			len(risk) != 4 {
			t.Errorf("epsilon %v: this system %v, baselines %v", epsilon, made.ExcessRisk, risk)
		}
	}
}
