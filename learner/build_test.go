package learner_test

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
)

func TestPlansThatBuildNothing(t *testing.T) {
	one := learner.Phase{Rounds: 3, Cohort: 5, LastCohort: 5, RoundsPerUser: 1, StepSize: 1, V: 4, Smoothness: 2}
	all := one
	all.RoundsPerUser = 3
	plan := func(algorithm, continuous string, phases ...learner.Phase) learner.Plan {
		return learner.Plan{Algorithm: algorithm, Continuous: continuous, Dim: 2, Set: convex.SetDeclaration{Radius: 1}, Phases: phases}
	}
	for _, p := range []learner.Plan{
		plan("psgd", "", one), plan("pgd", "", all), plan("pagd-restarts", "", one, one), plan("pagd-restarts", "epochs", one, one),
		plan("psgd", "constant", one), plan("psgd", "decaying", one), plan("pagd", "epochs", one),
	} {
		if _, err := learner.New(p); err != nil {
			t.Errorf("%s %s: %v", p.Algorithm, p.Continuous, err)
		}
	}
	smooth := one
	smooth.Smoothing = 2
	flat := one
	flat.V = 1
	still := one
	still.StepSize = 0
	long := one
	long.Rounds, long.StepSize = 1<<30, math.MaxFloat64/2
	for _, c := range []struct {
		want string
		plan learner.Plan
	}{
		{"algorithm", plan("adam", "", one)}, {"algorithm", plan("psgd-envelope", "", smooth)}, {"algorithm", plan("pagd-restarts-envelope", "", smooth)},
		{"algorithm", plan("pagd-", "", one)}, {"algorithm", plan("auto", "", one)}, {"algorithm", plan("", "", one)},
		{"phases", plan("pagd", "")}, {"phases", plan("pagd", "", one, one)}, {"phases", plan("pgd", "", all, all)},
		{"smoothing", plan("pagd", "", smooth)}, {"smoothing", plan("pagd-envelope-restarts", "", smooth, one)},
		{"answers 3", plan("pgd", "", one)}, {"answers 1", plan("psgd", "", all)},
		{"continuous", plan("pgd", "constant", all)}, {"continuous", plan("pagd", "constant", one)}, {"continuous", plan("psgd", "epochs", one)},
		{"continuous", plan("psgd", "for ever", one)},
		{"step size", plan("psgd", "", still)}, {"step size", plan("psgd", "decaying", still)}, {"step size", plan("psgd", "decaying", long)},
		{"v and smoothness", plan("pagd", "epochs", flat)}, {"v: 0", plan("pagd-restarts", "", one, learner.Phase{Rounds: 1, RoundsPerUser: 1})},
		{"steps", plan("pagd", "", learner.Phase{V: 1, RoundsPerUser: 1})},
		{"horizon", plan("psgd", "constant", learner.Phase{StepSize: 1, RoundsPerUser: 1})},
		{"horizon", plan("pagd", "epochs", learner.Phase{V: 4, Smoothness: 1, RoundsPerUser: 1})},
		{"set", learner.Plan{Algorithm: "psgd", Dim: 2, Phases: []learner.Phase{one}, Set: convex.SetDeclaration{Kind: "torus", Radius: 1}}},
	} {
		if _, err := learner.New(c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want one about %q", c.plan.Algorithm, c.plan.Continuous, err, c.want)
		}
	}
}

func TestRestartsRefuse(t *testing.T) {
	ball := convex.Ball{R: 1}
	stage := method.PSGDConfig{Dim: 2, Set: ball, Steps: 1 << 39, StepSize: 1}
	forever := method.StreamConfig{Dim: 2, Set: ball, Horizon: 3, StepSize: 1}
	other := method.PSGDConfig{Dim: 3, Set: ball, Steps: 2, StepSize: 1}
	for want, stages := range map[string][]method.Stage{
		"no stages": {}, "never ends": {forever, stage}, "more than": {stage, stage, stage}, "dim": {stage, other},
	} {
		if _, err := method.NewRestarts(method.RestartsConfig{Dim: 2, Set: ball, Stages: stages}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

// PhaseOf and CohortOf walk the phases; a continuous plan's last phase goes on for ever with its cohort.
func TestPhasesOfSteps(t *testing.T) {
	p := learner.Plan{Phases: []learner.Phase{{Rounds: 2, Cohort: 10, LastCohort: 13}, {Rounds: 3, Cohort: 20, LastCohort: 27}}}
	endless := p
	endless.Continuous = schedule.Epochs
	for _, c := range []struct {
		step          uint64
		phase         int
		within        uint64
		cohort, after uint64
	}{{1, 0, 1, 10, 10}, {2, 0, 2, 13, 13}, {3, 1, 1, 20, 20}, {5, 1, 3, 27, 20}, {6, 1, 4, 0, 20}, {1 << 40, 1, 1<<40 - 2, 0, 20}} {
		for _, q := range []learner.Plan{p, endless} {
			want := c.cohort
			if q.Continuous != "" {
				want = c.after
			} else if c.step > p.Rounds() {
				continue
			}
			if phase, within := q.PhaseOf(c.step); phase != c.phase || within != c.within || q.CohortOf(c.step) != want {
				t.Errorf("%q, step %d: phase %d, %d within, cohort %d; want %+v", q.Continuous, c.step, phase, within, q.CohortOf(c.step), c)
			}
		}
	}
}
