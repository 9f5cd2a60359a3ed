package curated

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/task"
)

const place = `
version: 1
name: place
events: {format: jsonl}
features:
  columns:
    - {column: x, kind: numeric, min: -1, max: 1}
    - {column: z, kind: numeric, min: -1, max: 1}
label: {column: "y", positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 2}
privacy: {epsilon: 1, delta: 1e-6}
`

func declared(t *testing.T, units int, sets ...string) *task.Spec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "task.yaml")
	if err := os.WriteFile(path, []byte(place), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := task.LoadTogether(path, sets, units)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Spec
}

func persons(n int) []oneplace.Person {
	out := make([]oneplace.Person, n)
	for i := range out {
		y := float64(i%2*2 - 1)
		out[i] = oneplace.Person{{Value: []float64{y / 2, 0.25, 1}, Label: y}}
	}
	return out
}

// TestNames: tasks accept the names of the methods that there are, and no others.
func TestNames(t *testing.T) {
	var names []string
	for _, m := range Methods() {
		names = append(names, m.Name)
		if m.Source == "" || m.Least == nil || m.Plan == nil {
			t.Errorf("%s: no source, no smallest number, or no plan", m.Name)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(schedule.CuratedNames())); !slices.Equal(names, want) {
		t.Errorf("methods %q, accepted names %q", names, want)
	}
}

// TestPlans: the method has the numbers of the task, charges no more than its budget, and releases a point of the set.
func TestPlans(t *testing.T) {
	const n = 500
	for _, name := range []string{"output", "output-sgd", "output-phases", "noisy-sgd"} {
		spec := declared(t, n, "schedule.algorithm="+name, "model.clip_norm=100")
		p, err := ProblemOf(spec, n)
		if err != nil {
			t.Fatal(err)
		}
		if most := p.Loss.Lipschitz(1.7320508075688774); p.Lipschitz > most || p.Clips || p.Dim != 3 ||
			p.People != n || p.Set.Radius() != 2 {
			t.Errorf("%s: %+v: a row's gradient is at most %v long", name, p, most)
		}
		plan, err := NewPlan(t.Context(), spec, persons(n))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w := plan.Wire; w.Epsilon > 1 || !(w.Epsilon > 0.9) || w.Delta != 1e-6 || w.Algorithm != name ||
			w.Phases[0].Mechanism.Units != n {
			t.Errorf("%s: planned %v", name, w)
		}
		r, err := plan.Fit(t.Context())
		if err != nil || len(r.Model) != 3 || convex.Norm(r.Model) > 2*(1+1e-9) || r.Phase < 1 || r.Method != name {
			t.Errorf("%s: released %+v: %v", name, r, err)
		}
	}
}

// TestAdviceNamesThePipeline: a method that another does better than says that there is a plan without a method, too.
func TestAdviceNamesThePipeline(t *testing.T) {
	for method, want := range map[string]bool{"gradscore": true, "output-phases": false} {
		plan, err := NewPlan(t.Context(), declared(t, 500, "schedule.algorithm="+method), persons(500))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(plan.Start.Baseline, "the practical plan, which runs without --algorithm"); got != want {
			t.Errorf("%s: %q", method, plan.Start.Baseline)
		}
	}
}

// TestCorners: a loss that is not smooth is planned and released as others are.
func TestCorners(t *testing.T) {
	spec := declared(t, 500, "schedule.algorithm=output-phases", "model.loss=hinge")
	plan, err := NewPlan(t.Context(), spec, persons(500))
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Fit(t.Context())
	if err != nil || r.Phase < 1 || !strings.Contains(strings.Join(r.Notes, "\n"), "smoothed over") || r.Bound == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNotesNameTheUnit: where each row is protected by itself, no note speaks of people.
func TestNotesNameTheUnit(t *testing.T) {
	for want, sets := range map[string][]string{"disjoint rows, one step a row": nil,
		"disjoint people, one step a person": {"privacy.unit=user", "user.column=u", "user.items=1"}} {
		spec := declared(t, 200, append([]string{"schedule.algorithm=output-sgd"}, sets...)...)
		plan, err := NewPlan(t.Context(), spec, persons(200))
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(plan.Start.Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("want %q: %s", want, notes)
		}
	}
}

// TestRefusals come before anything is drawn, and name what is wanted.
func TestRefusals(t *testing.T) {
	const n = 500
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"schedule.algorithm=output", "model.loss=softmax", "label={column: \"y\", classes: [\"1\", \"-1\", \"0\"]}"},
			"one linear score"},
		{[]string{"schedule.algorithm=output", "model.set=l1"}, "want a ball"},
		{[]string{"schedule.algorithm=noisy-sgd", "model.set=l1"}, "in a ball"},
		{[]string{"schedule.algorithm=noisy-sgd", "model.ridge=0.1"}, "model.ridge 0.1"},
		{[]string{"schedule.algorithm=noisy-sgd", "privacy.unit=user", "user={column: who, items: 4}"},
			"output-phases is for people"},
		{[]string{"schedule.algorithm=noisy-sgd", "privacy.epsilon=0.03"}, "want at least"},
		{[]string{"schedule.algorithm=strongly-convex-erm"}, "strongly-convex-erm: model.ridge 0"},
		{[]string{"schedule.algorithm=filtered", "privacy.epsilon=0.1"}, "each row is a person here"},
		{[]string{"schedule.algorithm=fixed-lambda"}, "with --public"},
		{[]string{"schedule.algorithm=pgd"}, "no method of one process"},
	} {
		if _, err := NewPlan(t.Context(), declared(t, n, c.sets...), persons(n)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.sets, err, c.want)
		}
	}
	for _, m := range curator.OnePlace() {
		spec := declared(t, n, "schedule.algorithm="+m.Name, "model.ridge=0.1")
		p, err := ProblemOf(spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		least := m.Least(p)
		if least <= 1 || least > 1e5 {
			continue
		}
		var few *curator.TooFewError
		if _, err := NewPlan(t.Context(), spec, persons(least-1)); !errors.As(err, &few) || few.Least != least {
			t.Errorf("%s with %d people: %v, want at least %d", m.Name, least-1, err, least)
		}
	}
}

// TestMinimize: rows that do not fit are left out, and the model is the same whatever the number of workers.
func TestMinimize(t *testing.T) {
	var rows []convex.Example
	for _, p := range persons(50) {
		rows = append(rows, p...)
	}
	rows = append(rows, convex.Example{Value: []float64{1}, Label: 7})
	spec := declared(t, 50, "schedule.algorithm=fixed-lambda")
	one, err := Minimize(t.Context(), spec, rows, oneplace.Effort{Workers: 1, Gap: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	four, err := Minimize(t.Context(), spec, rows, oneplace.Effort{Workers: 4, Gap: 0.3})
	if err != nil || !slices.Equal(one.Model, four.Model) || one.Depth == 0 || one.Queries < one.Depth ||
		convex.Norm(one.Model) > 2.5 {
		t.Errorf("%+v, with four workers %+v: %v", one, four, err)
	}
	if _, err := Minimize(t.Context(), spec, rows, oneplace.Effort{Gap: -1}); err == nil {
		t.Error("a negative gap is accepted")
	}
	noisy := declared(t, 50, "schedule.algorithm=noisy-sgd")
	if _, err := Minimize(t.Context(), noisy, rows, oneplace.Effort{}); err == nil {
		t.Error("a method that adds noise is run without")
	}
}
