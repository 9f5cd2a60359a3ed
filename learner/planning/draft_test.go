package planning

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// modelled plans with the smooth model of the noise instead of the accountant: it runs all of the planner
// except the calibration.
func modelled(t interface{ Fatal(...any) }, p Problem, method string) (Proposal, error) {
	from, err := p.accountedFor()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDraft(p, method, scaled{source: from, factor: 1})
	if err != nil {
		return Proposal{}, err
	}
	return d.plan()
}

func drawProblem(t *rapid.T) Problem {
	between := func(name string, low, high float64) float64 {
		return math.Exp(rapid.Float64Range(math.Log(low), math.Log(high)).Draw(t, name))
	}
	losses := []convex.Loss{convex.Logistic{}, convex.Hinge{}, convex.Squared{}, convex.Absolute{}}
	trusts := []accounting.Trust{accounting.Shuffle, accounting.Shuffle, accounting.Pan, accounting.ShufflePan}
	p := Problem{
		Users: uint64(between("users", 1, 1e9)), Dim: int(between("dim", 1, 1e4)), ClipNorm: between("clip norm", 0.01, 100),
		Epsilon: between("epsilon", 0.01, 20), Delta: between("delta", 1e-12, 0.1), HonestFraction: accounting.One,
		Trust: rapid.SampledFrom(trusts).Draw(t, "trust"),
		Rounds: Rounds{Interactive: rapid.Bool().Draw(t, "interactive"),
			Continuous: rapid.SampledFrom([]string{"", "", "", schedule.Constant, schedule.Decaying, schedule.Epochs}).Draw(t,
				"continuous")},
		Set: convex.SetDeclaration{Kind: rapid.SampledFrom([]string{"ball", "simplex", "l1"}).Draw(t, "set"),
			Radius: between("radius", 0.01, 100)},
	}
	if rapid.Bool().Draw(t, "ridge") {
		p.Ridge = between("lambda", 1e-6, 10)
	}
	if rapid.Bool().Draw(t, "limited") {
		p.MaxRounds = uint64(between("rounds", 1, 1e5))
	}
	switch rapid.IntRange(0, 3).Draw(t, "fixed") {
	case 0:
		p.Cohort = 1 + p.Users/uint64(between("cohort", 1, 1e4))
		p.Cohort = min(p.Cohort, p.Users)
	case 1:
		p.Minimum = 1 + p.Users/uint64(between("minimum", 10, 1e4))
		p.Minimum = min(p.Minimum, p.Users)
	}
	return p.ForLoss(rapid.SampledFrom(losses).Draw(t, "loss"), between("norm", 0.1, 10), -1, 1)
}

// TestPlansKeepTheirPromises: every plan of every problem keeps what a plan promises: phases on disjoint users,
// no more of them than there are, rounds within the limit, constants with which the method can be built, and a
// finite bound.
func TestPlansKeepTheirPromises(t *testing.T) {
	made := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for _, method := range schedule.Names() {
			if p.Applies(method) == nil && keepsPromises(t, p, method) {
				made[method]++
			}
		}
	})
	t.Logf("plans made: %v", made)
	if made[schedule.PSGD] == 0 {
		t.Error("no plan was made")
	}
}

func keepsPromises(t *rapid.T, p Problem, method string) bool {
	plan, err := modelled(t, p, method)
	if err != nil {
		if traitsOf(method).Restarts || p.Minimum > 0 { // small phases cannot have large cohorts
			return false
		}
		t.Fatalf("%s: %v", method, err)
	}
	if manifest.Users(plan.Plan) > p.Users {
		t.Errorf("%s takes %d of %d users", method, manifest.Users(plan.Plan), p.Users)
	}
	interactive := traitsOf(method).Interactive
	if p.MaxRounds > 0 && manifest.Planned(plan.Plan) > p.MaxRounds {
		t.Errorf("%s plans %d rounds, at most %d are allowed", method, manifest.Planned(plan.Plan), p.MaxRounds)
	}
	for i, ph := range plan.Plan.Phases {
		of, last := plan.Forecasts[i], manifest.LastCohort(ph)
		eta, v := ph.GetDescent().GetStepSize(), ph.GetAcceleration().GetV()
		want := (ph.Rounds-1)*ph.Cohort + last
		if interactive {
			want = ph.Cohort
		}
		if ph.Users != want || ph.Rounds < 1 || ph.Cohort < 1 || last < ph.Cohort || ph.Minimum < 1 ||
			ph.Minimum > ph.Cohort {
			t.Errorf("%s, phase %d: %d users in %d rounds of %d, the last %d, at least %d", method, i, ph.Users, ph.Rounds,
				ph.Cohort, last, ph.Minimum)
		}
		if p.Cohort > 0 && ph.Cohort != p.Cohort || p.Minimum > 0 && ph.Minimum != p.Minimum {
			t.Errorf("%s, phase %d: cohort %d, minimum %d, want %d, %d", method, i, ph.Cohort, ph.Minimum, p.Cohort, p.Minimum)
		}
		if interactive != (uint64(ph.RoundsPerUser) == ph.Rounds) && ph.Rounds > 1 || !interactive && ph.RoundsPerUser != 1 {
			t.Errorf("%s, phase %d: %d answers in %d rounds", method, i, ph.RoundsPerUser, ph.Rounds)
		}
		if !(of.Risk > 0) || math.IsInf(of.Risk, 0) || !(of.Distance > 0) || !(of.OracleVariance > 0) {
			t.Errorf("%s, phase %d: risk %v, distance %v, variance %v", method, i, of.Risk, of.Distance, of.OracleVariance)
		}
		if traitsOf(method).Accelerated != (v > 0 && eta == 0) || (eta > 0) == (v > 0) {
			t.Errorf("%s, phase %d: step size %v, v %v", method, i, eta, v)
		}
		if traitsOf(method).Envelope != (ph.Smoothing > 0) {
			t.Errorf("%s, phase %d: smoothing %v", method, i, ph.Smoothing)
		}
		if interactive && eta > (1+1e-9)*2/of.Smoothness {
			t.Errorf("%s, phase %d: step size %v pulls points apart at smoothness %v", method, i, eta, of.Smoothness)
		}
		if p.Continuous == "" && v > 0 && v < of.Smoothness {
			t.Errorf("%s, phase %d: v %v below the smoothness %v", method, i, v, of.Smoothness)
		}
	}
	if o := traitsOf(method).OnRecords(); plan.OnRecords != (o && p.Ridge == 0) || (!o || p.Ridge == 0) &&
		plan.ExcessRisk != plan.Forecasts[len(plan.Forecasts)-1].Risk ||
		plan.Vacuous != (plan.ExcessRisk >= plan.TrivialRisk) {
		t.Errorf("%s predicts %v (vacuous %v, trivial %v), its last phase %v", method, plan.ExcessRisk, plan.Vacuous,
			plan.TrivialRisk,
			plan.Forecasts[len(plan.Forecasts)-1].Risk)
	}
	if p.Dim < 100 {
		if _, err := learner.New(plan.Plan); err != nil {
			t.Errorf("%s cannot be built: %v", method, err)
		}
	}
	return true
}

// steady returns problems with each class of objective, in which the number of phases stays the same.
func steady() map[string]Problem {
	p := Problem{Users: 1 << 17, Dim: 30, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 2}, Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One, Rounds: Rounds{Interactive: true}}
	out := map[string]Problem{"logistic": p.ForLoss(convex.Logistic{}, 1, -1, 1), "hinge": p.ForLoss(convex.Hinge{}, 1, -1,
		1)}
	p.Ridge = 0.3
	out["logistic, ridge"], out["hinge, ridge"] = p.ForLoss(convex.Logistic{}, 1, -1, 1), p.ForLoss(convex.Hinge{}, 1, -1,
		1)
	return out
}

// TestBoundsFallWithUsersAndEpsilon checks that more users and a larger epsilon never make the bound worse,
// apart from whole rounds and cohorts, which cost up to 1%, and a hundredth that interactive methods give away
// for fewer rounds.
func TestBoundsFallWithUsersAndEpsilon(t *testing.T) {
	checked, points := 0, 2
	long := longtest.Run(t, "bounds over more users, epsilons and problems")
	if long {
		points = 14
	}
	for name, p := range steady() {
		if p.Ridge == 0 && !long {
			continue
		}
		for _, method := range schedule.Names() {
			if t := traitsOf(method); p.Applies(method) != nil || t.Envelope && t.Restarts && !long {
				continue
			}
			tolerance := 1.01
			if traitsOf(method).Interactive {
				tolerance = 1.03
			}
			for what, change := range map[string]func(*Problem, int){
				"users":   func(p *Problem, i int) { p.Users += uint64(i) * p.Users },
				"epsilon": func(p *Problem, i int) { p.Epsilon = 0.1 * math.Pow(2, float64(i)) },
			} {
				last := math.Inf(1)
				for i := range points {
					q := p
					change(&q, i)
					plan, err := modelled(t, q, method)
					if err != nil {
						t.Fatal(err)
					}
					if r := plan.ExcessRisk; r > tolerance*last {
						t.Errorf("%s, %s: the bound rises from %v to %v at %d users, epsilon %v", name, method, last, r, q.Users,
							q.Epsilon)
					} else {
						last = min(last, r)
					}
					checked++
				}
				if what == "users" && last > p.StartRisk {
					t.Errorf("%s, %s: the bound is still %v", name, method, last)
				}
			}
		}
	}
	t.Logf("%d plans", checked)
}

// TestRoundsAreTheBest: the number of rounds is the best of all, or, where every round costs every user a
// report, the smallest within a hundredth.
func TestRoundsAreTheBest(t *testing.T) {
	for name, p := range steady() {
		p.Users = 4000
		for _, method := range schedule.Names() {
			if p.Applies(method) != nil || traitsOf(method).Restarts {
				continue
			}
			from, err := p.accountedFor()
			if err != nil {
				t.Fatal(err)
			}
			d, err := newDraft(p, method, from)
			if err != nil {
				t.Fatal(err)
			}
			s := search{p: p, t: d.t, objective: d.objective, source: from, users: p.Users, distance: d.objective.radius,
				prior: d.trivial}
			best, at := math.Inf(1), uint64(0)
			low, high := s.limits()
			for steps := low; steps <= high; steps++ {
				if r := s.modelled(steps, 1); r < best {
					best, at = r, steps
				}
			}
			got := s.start(1)
			risk := s.modelled(got, 1)
			if d.t.Interactive {
				if risk > 1.01*best || got > 1 && s.modelled(got-1, 1) <= 1.01*best {
					t.Errorf("%s, %s: %d rounds with risk %v, the best are %d with %v", name, method, got, risk, at, best)
				}
			} else if risk > 1.005*best { // whole cohorts make teeth of that size
				t.Errorf("%s, %s: %d rounds with risk %v, the best are %d with %v", name, method, got, risk, at, best)
			}
		}
	}
}
