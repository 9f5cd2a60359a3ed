package planning_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// inPractice returns a problem of n users with 5 features and an intercept.
func inPractice(loss string, n uint64) planning.Problem {
	return planning.Problem{Users: n, Dim: 6, Algorithm: schedule.Auto, ClipNorm: 1,
		Set: convex.SetDeclaration{Radius: convex.MaxScale}, Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One, LossFacts: planning.LossFacts{Smoothness: 1, Lipschitz: math.Inf(1)},
		Practical: &practical.Problem{Loss: convex.Declaration{Name: loss}, Features: 5, Bound: 2, Intercept: 1, LabelLow: -1,
			LabelHigh: 1, Users: n}}
}

// TestPracticalPlanSpendsEveryUserButItsSpare: no user is in two rounds, all but those to spare are in one,
// cohorts of gradients grow, and each phase is charged within the budget.
func TestPracticalPlanSpendsEveryUserButItsSpare(t *testing.T) {
	card := &convex.Scorecard{Norm: 0.25, High: 2, Correctness: true}
	for name, p := range map[string]planning.Problem{"classes": inPractice("logistic", 20_000),
		"numbers": inPractice("squared", 20_000), "few": inPractice("squared", 100)} {
		p.Validation = card
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, spare := manifest.Users(plan.Plan), manifest.Spare(plan.Plan); got+spare != p.Users ||
			spare != (p.Users+99)/100 {
			t.Errorf("%s: %d users take part and %d are to spare, want all %d, a hundredth of them to spare", name, got, spare,
				p.Users)
		}
		var before uint64
		for i, f := range plan.Plan.Phases {
			if of := plan.Forecasts[i].Privacy; of.ProvedEpsilon == nil || *of.ProvedEpsilon > p.Epsilon ||
				of.Users != f.Cohort || of.Dim != int(f.Mechanism.Dim) {
				t.Errorf("%s: phase %d of %d users, %d coordinates is charged as %+v", name, i+1, f.Cohort, f.Mechanism.Dim, of)
			}
			norm := card.Joined(1)
			switch f.Statistic {
			case wire.Statistic_STATISTIC_MOMENTS:
				norm = p.Practical.MomentsNorm()
			case wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX:
				norm = 1
			}
			if f.Mechanism.ClipNorm != norm || f.Minimum != f.Cohort-f.Cohort/10 {
				t.Errorf("%s: phase %d has clip norm %v, and %d users at least of %d: want %v, and all but a tenth", name, i+1,
					f.Mechanism.ClipNorm, f.Minimum, f.Cohort, norm)
			}
			if gradients := f.Statistic == wire.Statistic_STATISTIC_GRADIENT; gradients != (f.Mechanism.Scores == 2) ||
				gradients && f.Cohort < before {
				t.Errorf("%s: phase %d: %d scores, %d users after %d", name, i+1, f.Mechanism.Scores, f.Cohort, before)
			} else if gradients {
				before = f.Cohort
			}
		}
		if matrix := plan.Plan.Phases[1].Statistic == wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX; matrix != (name == "numbers") {
			t.Errorf("%s: a matrix: %v", name, matrix)
		}
		if !math.IsInf(plan.ExcessRisk, 1) || plan.Runnable() != nil {
			t.Errorf("%s: a risk of %v, runnable: %v", name, plan.ExcessRisk, plan.Runnable())
		}
	}
}

// TestPracticalPlanKeepsWhatIsSet: a plan keeps what a task sets: cohort, limit on rounds, minimum; and users
// who answer all rounds are the same in each.
func TestPracticalPlanKeepsWhatIsSet(t *testing.T) {
	rounds := func(change func(*planning.Problem)) (uint64, *wire.Plan) {
		t.Helper()
		p := inPractice("logistic", 20_000)
		change(&p)
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return manifest.Planned(plan.Plan) - 1, plan.Plan
	}
	if n, _ := rounds(func(p *planning.Problem) { p.MaxRounds = 3 }); n != 3 {
		t.Errorf("%d rounds, want the limit of 3", n)
	}
	if n, plan := rounds(func(p *planning.Problem) { p.Cohort = 6000 }); n != 3 ||
		manifest.Gradients(plan).Cohort != 6000 {
		t.Errorf("%d rounds of %d, want 3 of 6000", n, manifest.Gradients(plan).Cohort)
	}
	if n, plan := rounds(func(p *planning.Problem) { p.Minimum = 1900 }); manifest.Gradients(plan).Minimum != 1900 ||
		manifest.Gradients(plan).Cohort < 1900 || n < 2 {
		t.Errorf("%d rounds, the first of %d, at least %d", n, manifest.Gradients(plan).Cohort,
			manifest.Gradients(plan).Minimum)
	}
	interactive := inPractice("logistic", 20_000)
	interactive.Interactive, interactive.Practical.Interactive = true, true
	if plan, err := planning.MakePlan(interactive); err != nil ||
		plan.Forecasts[1].Privacy.RoundsPerUser != int(plan.Plan.Phases[1].RoundsPerUser) {
		t.Errorf("users of %d rounds are charged for %d: %v", plan.Plan.Phases[1].RoundsPerUser,
			plan.Forecasts[1].Privacy.RoundsPerUser, err)
	}
	if n, plan := rounds(func(p *planning.Problem) { p.Interactive, p.Practical.Interactive = true, true }); n < 2 ||
		uint64(manifest.Gradients(plan).RoundsPerUser) != n ||
		manifest.Gradients(plan).Cohort != 17_800 {
		t.Errorf("%d rounds, %d a user, of %d", n, manifest.Gradients(plan).RoundsPerUser, manifest.Gradients(plan).Cohort)
	}
	if _, plan := rounds(func(p *planning.Problem) {
		p.Continuous, p.Practical.Continuous = schedule.Adaptive,
			true
	}); !manifest.Endless(plan) {
		t.Error("a task without an end is planned with one")
	} else if f := manifest.Gradients(plan); f.Minimum != 250 || f.Top < 1000 || f.Top > 2500 || f.Cohort != 4000 {
		t.Errorf("cohorts of %d to %d, with noise planned for %d: want 250 to an eighth of the users, and noise for 4000",
			f.Minimum, f.Top, f.Cohort)
	}
	for _, least := range []uint64{100, 3000, 9000} {
		// the planned cohorts would be 250 to 2,500, after a look of some hundreds
		_, plan := rounds(func(p *planning.Problem) {
			p.Continuous, p.Practical.Continuous, p.Minimum = schedule.Adaptive, true, least
		})
		for i, f := range plan.Phases {
			if f.Minimum != least || f.Top > 0 && (f.Top < least || f.Cohort < f.Top) {
				t.Errorf("phase %d is released of %d to %d users, with noise for %d: want at least the minimum that is set, %d",
					i+1, f.Minimum, f.Top, f.Cohort, least)
			}
		}
		if err := manifest.CheckTask(&wire.Task{Plan: plan}); err != nil {
			t.Error(err)
		}
	}
	if _, plan := rounds(func(p *planning.Problem) {
		p.Cohort, p.Continuous, p.Practical.Continuous = 1000, schedule.Adaptive, true
	}); manifest.Gradients(plan).Minimum != 900 || manifest.Gradients(plan).Top != 1000 {
		t.Errorf("rounds of %d to %d, want one that lacks a tenth of its 1000 users to close",
			manifest.Gradients(plan).Minimum, manifest.Gradients(plan).Top)
	}
	few := inPractice("logistic", 300)
	few.Continuous, few.Practical.Continuous = schedule.Adaptive, true
	if _, err := planning.MakePlan(few); err == nil || !strings.Contains(err.Error(), "at least 350") {
		t.Errorf("300 users of a task without end: %v", err)
	}
	p := inPractice("logistic", 3)
	p.Minimum = 2
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("3 users in cohorts of at least 2: %v", err)
	}
}

// TestPracticalBaselines: the baselines of a practical plan are the same plan with the noise of others, in
// every phase by its own dimension. They are planned for the users that the problem has, as data may, and not for those
// that the task declares.
func TestPracticalBaselines(t *testing.T) {
	p, declared := inPractice("squared", 20_000), inPractice("squared", 20_000)
	declared.Practical.Users = 15_000
	own, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{planning.BaselineCentral, planning.BaselineLocal, planning.BaselineMultiPass} {
		b, err := p.BaselinePlan(name, schedule.Practical)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		other, err := declared.BaselinePlan(name, schedule.Practical)
		if err != nil || !proto.Equal(other.Plan, b.Plan) {
			t.Errorf("%s of a task that declares fewer users: %v, %v; want %v", name, other.Plan, err, b.Plan)
		}
		for i, f := range b.Plan.Phases {
			ratio := b.NoiseStd(i, f.Cohort) / f.Mechanism.ClipNorm / own.Forecasts[min(i,
				len(own.Forecasts)-1)].Privacy.TotalStd()
			if more := ratio > 2; more != (name == planning.BaselineLocal) {
				t.Errorf("%s: phase %d has %v times our noise", name, i+1, ratio)
			}
		}
	}
}

// TestRoundsFromAStart: classes that begin with a declared start have one, two or three rounds, by users for each
// coordinate and unit of epsilon; a limit that the task sets comes first.
func TestRoundsFromAStart(t *testing.T) {
	for _, c := range []struct{ users, most, want uint64 }{
		{100, 0, 1}, {600, 0, 2}, {1000, 0, 2}, {1500, 0, 3}, {100_000, 0, 3}, {100_000, 2, 2}, {100_000, 7, 7},
	} {
		p := inPractice("logistic", c.users)
		p.MaxRounds, p.Start, p.Practical.Start = c.most, []float64{1, 0, 0, 0, 0, 0}, []float64{1, 0, 0, 0, 0, 0}
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := manifest.Planned(plan.Plan) - 1; got != c.want {
			t.Errorf("%d users, at most %d rounds: %d, want %d", c.users, c.most, got, c.want)
		}
	}
}
