package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
)

func surveyed(t *testing.T, sets ...string) planSurvey {
	t.Helper()
	spec, err := task.Parse([]byte(honestTask), append([]string{"privacy.honest_fraction=1"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := survey(job)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlanOfProx checks that a plan of prox states what silos answer, at which price, and the unit of its noise; and,
// for silos that differ in any way, that the bound is for such silos.
func TestPlanOfProx(t *testing.T) {
	for _, set := range []string{"silo={count: 20, units: 250}", "silo={count: 20, units: 250, spread: 0.1}"} {
		r := surveyed(t, "privacy={epsilon: 1, delta: 1e-6, trust: local}", set,
			"schedule={algorithm: prox, interactive: true}").report
		x := r.Prox
		if x == nil || x.Passes != 12*x.Steps || x.Steps != planning.ProxSteps(x.Weight, *r.Binding.Smoothness) ||
			math.Abs(x.Norm*x.Weight-*r.Binding.ClipNorm) > 1e-12 ||
			x.AnyDifference != strings.HasSuffix(set, "250}") {
			t.Fatalf("%+v of %+v", x, r.Binding)
		}
		var text strings.Builder
		if err := r.print(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf("lambda = %.4g, c the announced point", x.Weight),
			fmt.Sprintf("by %d steps of gradient descent, each a pass over its rows: %d passes", x.Steps, x.Passes),
			" of L/lambda, standard deviation", "\n* prox ", "\npaper            prox"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in:\n%s", want, text.String())
			}
		}
		if strings.Contains(text.String(), "for silos that differ in any way") != x.AnyDifference {
			t.Errorf("%s:\n%s", set, text.String())
		}
	}
}

// TestPlanSaysWhatAllPhasesCost checks that the epsilon a plan states under privacy is the price of all phases for
// one participant, not of the first phase.
func TestPlanSaysWhatAllPhasesCost(t *testing.T) {
	for _, sets := range [][]string{{"silo={count: 20, units: 1628}", "model.ridge=0.1",
		"schedule={algorithm: apgd-restarts, interactive: true}"},
		{"silo={count: 20, units: 1628}", "schedule={plan: practical, interactive: true}"}} {
		r := surveyed(t, sets...).report
		p, whole := r.Privacy, *r.Guarantees[0].Epsilon
		if len(r.Phases) < 2 || p.Epsilon != whole || *p.ProvedEpsilon != whole || p.RoundsPerUser != int(r.RoundsPerUser) {
			t.Errorf("%d phases: epsilon %v of %d rounds, want %v of %d", len(r.Phases), p.Epsilon, p.RoundsPerUser, whole,
				r.RoundsPerUser)
		}
		for _, a := range r.Alternatives {
			if a.Applies && a.RoundsPerUser > 1 && a.Privacy.Epsilon != *a.Guarantees[0].Epsilon {
				t.Errorf("%s: epsilon %v, want %v", a.Algorithm, a.Privacy.Epsilon, *a.Guarantees[0].Epsilon)
			}
		}
	}
}

// TestPlanOfTurns checks that, where silos come by turns, the bound takes them as drawn at random, and the plan
// states this; in many passes they are drawn, and where all come nothing has to be drawn.
func TestPlanOfTurns(t *testing.T) {
	for schedule, silos := range map[string]map[string]bool{
		"schedule={algorithm: pagd}": {"silo={count: 20, units: 250, reports: 12}": true,
			"silo={count: 20, units: 250}": false},
		"schedule={algorithm: apgd, interactive: true}": {"silo={count: 20, units: 250, reports: 12}": false},
		"schedule={}": {"silo={count: 20, units: 250, reports: 12}": false},
	} {
		for silo, want := range silos {
			var text strings.Builder
			if err := surveyed(t, "privacy={epsilon: 1, delta: 1e-6, trust: local}", silo,
				schedule).report.print(&text); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(text.String(),
				"with the 12 silos of a round taken as drawn at random for it; they come by turns"); got != want {
				t.Errorf("%s, %s: %t\n%s", schedule, silo, got, text.String())
			}
		}
	}
}

// TestPlanShowsEveryAlgorithm checks that the table has every algorithm with its cost and guarantees or with a
// reason, and every way to spend the budget, and that the JSON has finite numbers alone.
func TestPlanShowsEveryAlgorithm(t *testing.T) {
	r := surveyed(t, "model.ridge=0.05", "schedule.interactive=true").report
	if len(r.Alternatives) != 13 || !strings.HasPrefix(r.Why, "auto took "+r.Algorithm) {
		t.Errorf("%d alternatives, why: %q", len(r.Alternatives), r.Why)
	}
	for _, a := range r.Alternatives {
		if !a.Applies {
			if a.Algorithm != "prox" || !strings.Contains(a.Reason, "organisation") {
				t.Errorf("%s: %s", a.Algorithm, a.Reason)
			}
			continue
		}
		if len(a.Guarantees) != 5 || *a.Guarantees[0].Epsilon > 1 || a.Guarantees[4].HonestFraction.String() != "0.25" {
			t.Errorf("%s: guarantees %+v", a.Algorithm, a.Guarantees)
		}
		interactive := strings.HasPrefix(a.Algorithm, "pgd") || strings.HasPrefix(a.Algorithm, "apgd")
		if (a.RoundsPerUser > 1) != interactive {
			t.Errorf("%s: a user answers %d rounds", a.Algorithm, a.RoundsPerUser)
		}
		var bits, size uint64
		for _, ph := range a.Phases {
			bits = max(bits, ph.RoundsPerUser*6*(uint64(ph.G)+ph.B)) // d = 3, the intercept, and 2 scores
			if !(ph.NoiseStd > 0) || ph.Users == 0 || ph.Cohort == 0 {
				t.Errorf("%s: phase %+v", a.Algorithm, ph)
			}
		}
		size = a.BytesPerUser
		if bits != a.BitsPerUser || size < 1 ||
			(a.PredictedExcessRisk != a.Phases[len(a.Phases)-1].Risk) != strings.HasPrefix(a.Algorithm, "apgd") {
			// on the records, and with a ridge on the population
			t.Errorf("%s: %d bits, want %d; %d bytes; risk %v", a.Algorithm, a.BitsPerUser, bits, size, a.PredictedExcessRisk)
		}
		if a.Algorithm == r.Algorithm && a.PredictedExcessRisk != *r.PredictedExcessRisk {
			t.Errorf("%s: risk %v in the table, %v in the plan", a.Algorithm, a.PredictedExcessRisk, *r.PredictedExcessRisk)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"task", "algorithm", "users", "rounds", "cohort", "privacy", "predicted_excess_risk",
		"guarantees", "alternatives", "yardsticks", "why"} {
		if _, ok := fields[key]; !ok {
			t.Errorf("no field %q", key)
		}
	}
	var text bytes.Buffer
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\napgd-restarts ", "\n  phase 3 ", "\n* ", "\nlocal ", "\ncentral ", "\nmulti-pass ",
		"\npaper ", "why           auto took"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), " \n") {
		t.Errorf("blanks at the end of a line:\n%s", &text)
	}
}

// The search for the users that would do ends where they are few, and fewer than there are are no advice.
func TestFewerUsersAreNotNeeded(t *testing.T) {
	spec, err := task.Parse([]byte(`
version: 1
name: few
events: {format: csv, header: true}
features: {columns: [{column: a, kind: numeric, min: 0, max: 40}, {column: b, kind: numeric, min: 0, max: 90}]}
label: {column: y, min: 0, max: 500}
model: {loss: poisson, score_bound: 5, radius: 3}
privacy: {epsilon: 1, delta: 1e-6, trust: local}
schedule: {interactive: true, plan: proved, algorithm: prox}
silo: {count: 4, units: 500}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	out, err := survey(job)
	if err != nil {
		t.Fatal(err)
	}
	if r := out.report; !r.Vacuous || r.UsersNeeded != nil && *r.UsersNeeded <= r.Users {
		t.Errorf("vacuous %v, %v are needed of %d", r.Vacuous, *r.UsersNeeded, r.Users)
	}
}

// What does not apply is said why; a bound that promises nothing is said so, with the users that would do.
func TestPlanSaysWhatIsMissing(t *testing.T) {
	r := surveyed(t, "model.radius=50", "schedule.users=2000", "privacy.delta=1e-3").report
	if !r.Vacuous || r.UsersNeeded == nil || *r.UsersNeeded <= r.Users {
		t.Fatalf("vacuous %v, users needed %v", r.Vacuous, r.UsersNeeded)
	}
	var text bytes.Buffer
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"warning       too few users", "\n              delta 0.001 is above 1/users = 0.0005",
		"\nnot pagd-restarts: the objective is not strongly convex", "\nnot pgd: nobody answers more than one round"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
}

// Pictures are images of their format with one curve for each algorithm; other names are refused before anything is
// planned.
func TestPlanDrawsPictures(t *testing.T) {
	s := surveyed(t)
	curves, err := s.curves()
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 6 { // psgd, pagd, pagd-envelope; local, central, multi-pass
		t.Errorf("%d curves, want 6", len(curves))
	}
	for i, a := range s.report.Alternatives[:3] {
		if at := curves[i].at(s.job.Problem.Users, s.job.Problem.Epsilon); math.Abs(at/a.PredictedExcessRisk-1) > 0.05 {
			t.Errorf("%s: the curve goes through %v, the plan predicts %v", curves[i].name, at, a.PredictedExcessRisk)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"risk.svg", "risk.PNG"} {
		file := filepath.Join(dir, name)
		if err := s.draw(file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "svg") {
			err = wellFormed(data)
			if !bytes.Contains(data, []byte("pagd-envelope")) {
				t.Error("the picture does not name pagd-envelope")
			}
			if !bytes.Contains(data, []byte("order of the lower bound, nobody trusted")) {
				t.Error("the picture has no lower bound")
			}
		} else {
			_, err = png.Decode(bytes.NewReader(data))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := validatePicture("risk.jpeg"); err == nil {
		t.Error("a .jpeg is not refused")
	}
	if err := surveyed(t, "schedule.plan=practical").draw(filepath.Join(dir, "none.svg")); err == nil ||
		!strings.Contains(err.Error(), "schedule.plan=proved") {
		t.Errorf("bounds of a practical plan are drawn: %v", err)
	}
}

func wellFormed(data []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// A trusted curator is charged for every round of a user, as the plan is; its noise is the floor of the plan's.
func TestComparisonComposesRounds(t *testing.T) {
	for _, sets := range [][]string{{"schedule.algorithm=psgd"}, {"schedule.algorithm=pgd", "schedule.interactive=true"}} {
		r := surveyed(t, sets...).report
		if central := r.Comparison.CentralNoiseStd; !(central <= r.Privacy.NoiseStd && r.Privacy.NoiseStd < 1.2*central) {
			t.Errorf("%s, %d rounds per user: central %v, noise %v", r.Algorithm, r.Privacy.RoundsPerUser, central,
				r.Privacy.NoiseStd)
		}
	}
}

func TestBindingNamesWhatBinds(t *testing.T) {
	for _, c := range []struct {
		file   string
		method string
		sets   []string
		term   string
		advice string
	}{
		{"a9a", "pagd", nil, "smoothness", "norm_bound"},
		{"a9a", "pagd", []string{"norm_bound=0.1", "intercept=0"}, "noise", "no setting needs a change"},
		{"a9a", "pagd", []string{"schedule.users=3000"}, "smoothness", "few for"},
		{"a9a", "pagd", []string{"schedule.users=300"}, "smoothness", "too few"},
		{"agaricus", "psgd", []string{"privacy.epsilon=4"}, "clip_norm", "clip norm"},
		{"a9a", "auto", nil, "first_cohort", "no setting needs a change"},
		{"a9a", "auto", []string{"privacy.epsilon=50"}, "first_cohort", "promises next to nothing"},
		{"a9a", "auto", []string{"schedule.users=3000"}, "first_cohort", "few for"},
		{"spambase", "auto", nil, "first_cohort", "norm_bound"},
		{"power-plant", "auto", []string{"schedule.users=4000"}, "first_cohort", "noise"},
	} {
		spec, err := task.Load("../../deploy/tasks/"+c.file+".yaml", append([]string{"schedule.algorithm=" + c.method,
			"model.radius=20"}, c.sets...))
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		b := bindingOf(job)
		if b.Term != c.term || !strings.Contains(b.Advice, c.advice) {
			t.Errorf("%s %v: %s, %q; want %s, %q", c.file, c.sets, b.Term, b.Advice, c.term, c.advice)
		}
	}
}

// TestPlanOfATaskWithoutEnd checks that the plan names no number of rounds, which nobody knows, neither for itself
// nor for the phase that goes on; a simulation prints how many it took.
func TestPlanOfATaskWithoutEnd(t *testing.T) {
	r := surveyed(t, "schedule={users: 20000, continuous: adaptive}").report
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Rounds     *uint64 `json:"rounds"`
		Continuous string  `json:"continuous"`
		Users      uint64  `json:"users"`
		Phases     []struct {
			Rounds *uint64 `json:"rounds"`
		} `json:"phases"`
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if fields.Rounds != nil || fields.Continuous != "adaptive" || fields.Users != 20_000 {
		t.Errorf("%v rounds, continuous %q, %d users: want none, adaptive and the horizon", fields.Rounds, fields.Continuous,
			fields.Users)
	}
	if f := fields.Phases; len(f) != 2 || f[0].Rounds == nil || *f[0].Rounds != 1 || f[1].Rounds != nil {
		t.Errorf("phases of %s", data)
	}
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	split := surveyed(t, "schedule={users: 20000, continuous: adaptive}", "privacy.trust=split").report
	if err := split.print(&text); err != nil {
		t.Fatal(err)
	}
	if out := text.String(); !strings.Contains(out, "each of the two operators adds noise") || strings.Contains(out, "the stage's") {
		t.Errorf("two operators of a task without end:\n%s", out)
	}
	text.Reset()
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	if want := "a horizon of 20000 users in rounds without end, of gradients of 250 to "; !strings.Contains(text.String(),
		want) {
		t.Errorf("no %q in:\n%s", want, text.String())
	}
}
