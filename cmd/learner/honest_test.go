package main

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

const honestTask = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, honest_fraction: "0.8"}
schedule: {users: 5000, plan: proved}
`

// TestGuaranteesByHonestFraction checks that learner plan prints what is left of the guarantee when fewer users are
// honest than planned: by the accountant that the ledger charges with, for every adversary of the trust, and never
// less for fewer.
func TestGuaranteesByHonestFraction(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		spec, err := task.Parse([]byte(honestTask), []string{"privacy.trust=" + trust.String()})
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		p := job.Forecasts[0].Privacy
		if p.HonestFraction.String() != "0.8" {
			t.Errorf("%v: planned for %v, want 0.8", trust, p.HonestFraction)
		}
		surveyed, err := survey(job)
		report := surveyed.report
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]float64{}
		lines := map[string]int{}
		for _, g := range report.Guarantees {
			if g.Epsilon == nil {
				t.Errorf("%v: no finite epsilon against the %s at %v", trust, g.Adversary, g.HonestFraction)
				continue
			}
			r := p.Release()
			r.HonestFraction = g.HonestFraction
			want, err := r.Epsilon(p.Delta)
			if err != nil {
				t.Fatal(err)
			}
			exact := want.Learner
			if g.Adversary == "intruder" {
				exact = want.Intruder
			}
			if *g.Epsilon != exact || g.Delta != p.Delta {
				t.Errorf("%v, %s, %v: epsilon %v at %v, the accountant says %v at %v", trust, g.Adversary, g.HonestFraction,
					*g.Epsilon, g.Delta, exact, p.Delta)
			}
			lines[g.Adversary]++
			switch {
			case lines[g.Adversary] == 1 && (g.HonestFraction.String() != "0.8" || *g.Epsilon > 1):
				t.Errorf("%v: the first line says epsilon %v at %v, want at most the budget 1 at 0.8", trust, *g.Epsilon,
					g.HonestFraction)
			case lines[g.Adversary] > 1 && *g.Epsilon < last[g.Adversary]:
				t.Errorf("%v, %s: epsilon falls from %v to %v at %v", trust, g.Adversary, last[g.Adversary], *g.Epsilon,
					g.HonestFraction)
			case lines[g.Adversary] > 1 && trust != accounting.Pan && g.Adversary == "learner" &&
				*g.Epsilon <= last[g.Adversary]:
				t.Errorf("%v: epsilon does not grow at %v, though users' noise is missing", trust, g.HonestFraction)
			}
			last[g.Adversary] = *g.Epsilon
		}
		adversaries := []string{"learner", "intruder"}
		if trust == accounting.Shuffle {
			adversaries = adversaries[:1]
		}
		if len(lines) != len(adversaries) {
			t.Errorf("%v: adversaries %v, want %v", trust, lines, adversaries)
		}
		for _, a := range adversaries {
			if lines[a] != 4 { // 0.8, 0.75, 0.5, 0.25
				t.Errorf("%v: %d lines against the %s, want 4", trust, lines[a], a)
			}
		}
		wire, err := job.Wire()
		if err == nil && wire.Plan.HonestFraction != "0.8" {
			t.Errorf("%v: the task announces %q", trust, wire.Plan.HonestFraction)
		}
		if err != nil && trust == accounting.Shuffle {
			t.Error(err)
		}
	}
}

// A phase so small that a share of it is nobody promises nothing at that share, whatever other phases promise there.
func TestGuaranteesOfSmallPhases(t *testing.T) {
	spec, err := task.Parse([]byte(honestTask), []string{"privacy.honest_fraction=1", "privacy.epsilon=4",
		"privacy.max_bits=64",
		"model.ridge=0.1", "schedule.algorithm=pagd-restarts", "schedule.users=80"})
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	if c := job.Plan.Phases[0].Cohort; c >= 4 || len(job.Plan.Phases) < 2 {
		t.Fatalf("%d phases, the first with cohorts of %d: want several and less than 4, or nothing is tested",
			len(job.Plan.Phases), c)
	}
	surveyed, err := survey(job)
	report := surveyed.report
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Guarantees) != 5 {
		t.Fatalf("%d lines, want 5", len(report.Guarantees))
	}
	least := 0.0
	for _, g := range report.Guarantees {
		epsilon := math.Inf(1)
		if g.Epsilon != nil {
			epsilon = *g.Epsilon
		}
		if epsilon < least {
			t.Errorf("epsilon %v at %v, but %v with more honest users", epsilon, g.HonestFraction, least)
		}
		least = epsilon
	}
	if !math.IsInf(least, 1) {
		t.Errorf("epsilon %v at a quarter of %d users", least, job.Plan.Phases[0].Cohort)
	}
}

// The cost of two phases that the same users answer is more than the cost of either phase alone.
func TestGuaranteeOfPhasesTogether(t *testing.T) {
	one, err := accounting.Calibrate(accounting.Request{Users: 1000, Dim: 10, Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One, Rounds: 4})
	if err != nil {
		t.Fatal(err)
	}
	g := guarantor{delta: one.Delta, known: map[string][]guarantee{}}
	p := planning.Proposal{Plan: &wire.Plan{Phases: []*wire.Phase{{}, {}, {Again: true}}},
		Forecasts: make([]planning.Forecast, 3)}
	for i, rounds := range []int{4, 1, 3} {
		p.Forecasts[i].Privacy = one
		p.Forecasts[i].Privacy.RoundsPerUser = rounds
	}
	p.Forecasts[2].Privacy.Dim = 20
	lines, err := g.plan(p)
	if err != nil {
		t.Fatal(err)
	}
	want, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{p.Stints()[1]}, one.Delta)
	if err != nil || len(p.Stints()) != 2 || *lines[0].Epsilon != want.Epsilon || !(want.Epsilon > *one.ProvedEpsilon) {
		t.Errorf("epsilon %v, want that of the last two phases, %v, above the first's %v: %v", *lines[0].Epsilon,
			want.Epsilon, *one.ProvedEpsilon, err)
	}
}

// People who answer all rounds pay for moments too: the epsilon that is printed is the plan's, and others are compared
// at as many rounds.
func TestPlanOfPeopleWhoAnswerAll(t *testing.T) {
	spec, err := task.Parse([]byte(`
version: 1
name: people
events: {format: csv, header: true}
features: {columns: [{column: a, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6, unit: user}
user: {column: who, items: 16}
schedule: {users: 2000, interactive: true}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	surveyed, err := survey(job)
	if err != nil {
		t.Fatal(err)
	}
	g, r := surveyed.report.Guarantees[0], surveyed.report
	if *g.Epsilon < job.Plan.Epsilon*(1-1e-9) || *g.Epsilon > 1+1e-6 || r.RoundsPerUser != 13 ||
		len(job.Plan.Phases) != 2 {
		t.Errorf("epsilon %v printed, %v planned, %d rounds in %d phases", *g.Epsilon, job.Plan.Epsilon, r.RoundsPerUser,
			len(job.Plan.Phases))
	}
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: 1, Delta: 1e-6})
	if want := 2 * math.Sqrt(13) / (1980 * mu) / 4; err != nil || math.Abs(r.Comparison.CentralNoiseStd/want-1) > 1e-9 {
		t.Errorf("a curator's noise %v, want that of 13 rounds, %v: %v", r.Comparison.CentralNoiseStd, want, err)
	}
}
