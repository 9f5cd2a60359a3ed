package planning_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestScoresCostOthersNothing: scores are of this system's own reports: others who are compared with it do not
// pay for them.
func TestScoresCostOthersNothing(t *testing.T) {
	plain := planning.Problem{Users: 3000, Dim: 3, Algorithm: "psgd", ClipNorm: 1, Set: convex.SetDeclaration{Radius: 1},
		Epsilon: 12, Delta: 1e-6,
		HonestFraction: accounting.One, Rounds: planning.Rounds{Cohort: 500}}.
		ForLoss(convex.Logistic{}, 1, 1)
	with := plain
	with.Validation = &convex.Scorecard{Norm: 1, High: 1, Correctness: true}
	for _, name := range []string{planning.BaselineLocal, planning.BaselineCentral} {
		var std [2]float64
		for i, p := range []planning.Problem{plain, with} {
			b, err := p.BaselinePlan(name, "psgd")
			if err != nil {
				t.Fatal(err)
			}
			if b.Plan.Scorecard != nil || manifest.Gradients(b.Plan).Mechanism.Scores != 0 {
				t.Errorf("%s reports scores", name)
			}
			std[i] = b.NoiseStd(0, 500)
		}
		if std[0] != std[1] {
			t.Errorf("%s: noise %v, and %v with scores", name, std[0], std[1])
		}
	}
	plan, err := planning.MakePlan(with)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Forecasts[0].Privacy.Dim != 5 {
		t.Errorf("charged for %d coordinates, want 3 and 2 scores", plan.Forecasts[0].Privacy.Dim)
	}
}

// TestCuratorsPayForWholeStints: a curator's noise pays for all rounds that somebody answers: looks too, where
// everybody answers these beside the gradients.
func TestCuratorsPayForWholeStints(t *testing.T) {
	p := inPractice("logistic", 2000)
	p.Interactive, p.ByUser, p.Radius = true, true, 0.25
	b, err := p.BaselinePlan(planning.BaselineMultiPass, "")
	if err != nil {
		t.Fatal(err)
	}
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta})
	if err != nil {
		t.Fatal(err)
	}
	rounds := float64(manifest.Planned(b.Plan))
	for i, f := range b.Plan.Phases {
		if want := f.Mechanism.ClipNorm * 2 / (2000 * mu) * math.Sqrt(rounds); len(b.Plan.Phases) < 2 ||
			math.Abs(b.NoiseStd(i, 2000)/want-1) > 1e-9 {
			t.Errorf("phase %d of %d, %v rounds: noise %v, want %v", i+1, len(b.Plan.Phases), rounds, b.NoiseStd(i, 2000), want)
		}
	}
}

// TestLocalIsOneMessage checks that a user who trusts nobody sends one message, however many rounds the task
// asks of its users: the baseline has the noise of one message.
func TestLocalIsOneMessage(t *testing.T) {
	p := inPractice("logistic", 20000)
	p.Interactive = true
	for _, byUser := range []bool{false, true} {
		p.ByUser = byUser
		b, err := p.BaselinePlan(planning.BaselineLocal, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range b.Plan.Phases {
			if f.RoundsPerUser != 1 || f.Again {
				t.Errorf("phase %d: %d rounds a user, again %v", i+1, f.RoundsPerUser, f.Again)
			}
		}
	}
}
