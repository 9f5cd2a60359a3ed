package curator

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestBetter: the baseline that is recommended is the one whose bound is named.
func TestBetter(t *testing.T) {
	p := Public{Items: 1, Dim: 5, Lipschitz: 1, Smoothness: 25.75, Set: convex.Ball{R: 5},
		Budget: accounting.Budget{Epsilon: 1, Delta: 1e-6}}
	named := map[string]bool{}
	m, _ := Of("output-sgd")
	for _, n := range []int{2, 12} {
		for _, p.Ridge = range []float64{0.1, 1} {
			p.People = n
			plan, err := m.Plan(p)
			if err != nil {
				t.Fatal(err)
			}
			text := better(oneplace.Problem{Loss: convex.Squared{}, Features: 5, Norm: math.Sqrt(25.75), Dim: 5, Lipschitz: 1,
				Smoothness: 25.75, Ridge: p.Ridge, Set: p.Set, People: n, Items: 1, Budget: p.Budget}, plan)
			if text == "" {
				continue
			}
			name, _, found := strings.Cut(text, " has a bound of")
			if !found || !strings.HasSuffix(text, ": "+name+" is expected to do better") {
				t.Errorf("%q", text)
			}
			named[name] = true
		}
	}
	if !named["output"] {
		t.Errorf("named %v, and never output, whose bound is the smallest of few people", named)
	}
}

// corner returns a problem of so many people with a loss.
func corner(loss convex.Loss, n, items int) oneplace.Problem {
	return oneplace.Problem{Loss: loss, Features: 3, Norm: 1, Dim: 3, Lipschitz: loss.Lipschitz(1),
		Smoothness: loss.Smoothness(1), Set: convex.Ball{R: 1}, People: n, Items: items,
		Budget: accounting.Budget{Epsilon: 8, Delta: 1e-6}}
}

// TestEveryMethodTakesLossesWithCorners: output perturbation, phases, scores and groups plan for a loss that is not
// smooth, and learn; the bound is on the loss itself, so that it has what smoothing changes.
func TestEveryMethodTakesLossesWithCorners(t *testing.T) {
	hinge, err := convex.NewWeighted(convex.Hinge{}, []float64{0.5, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range OnePlace() {
		if slices.Contains([]string{"phased-erm", "phased-sco", "group-sgd", "filtered"}, m.Name) && !longtest.On() {
			continue // like the others, and slower
		}
		p := corner(hinge, 400, 1)
		if m.Name == "deletion" {
			p.People = 13
		}
		if strings.HasPrefix(m.Name, "strongly") {
			p.Ridge = 0.1
		}
		plan, err := m.Plan(p)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		notes := strings.Join(plan.Notes, "\n")
		if !strings.Contains(notes, "smoothed over") || !(plan.Bound > 0) {
			t.Errorf("%s: bound %v, %s", m.Name, plan.Bound, notes)
		}
		if strings.Contains(plan.Better, "Inf") || strings.Contains(notes, "Inf") {
			t.Errorf("%s: %s\n%s", m.Name, plan.Better, notes)
		}
		people := make([]Person, p.People)
		for i := range people {
			y := float64(i%2*2 - 1)
			people[i] = Person{{Value: []float64{y * 0.9, 0.1, 0}, Label: y}}
		}
		if err := plan.Check(t.Context(), people); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		r, err := plan.Fit(t.Context(), people, rand.NewPCG(1, 2))
		if err != nil || m.Name == "output-sgd" && !(r.Model[0] > 0.5) {
			t.Errorf("%s: %+v, %v", m.Name, r, err)
		}
	}
}

// TestSmoothingIsCharged: the gap of the smoothed loss is in the bound. Absolute loss smoothed over a width w is w/2
// below at a residual beyond w, whatever the plan.
func TestSmoothingIsCharged(t *testing.T) {
	p := corner(convex.Absolute{}, 1000, 1)
	m, _ := Of("output")
	plan, loss, err := m.forLoss(p)
	if err != nil {
		t.Fatal(err)
	}
	far := convex.Example{Value: []float64{1, 0, 0}, Label: 0}
	at := []float64{1e3, 0, 0}
	gap := convex.Absolute{}.Value(at, far) - loss.Value(at, far)
	of := plan.Public
	without, err := planOutput(of)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Bound - without.Bound; !(gap > 0) || math.Abs(got/gap-1) > 1e-6 {
		t.Errorf("the bound has %v for smoothing, the loss is %v below", got, gap)
	}
	if of.Smoothness != loss.Smoothness(1) {
		t.Errorf("planned for a smoothness of %v, the loss has %v", of.Smoothness, loss.Smoothness(1))
	}
}

// TestAdviceApplies: no method advises another that refuses the loss, and none says a figure that is none.
func TestAdviceApplies(t *testing.T) {
	several := corner(convex.Softmax{Classes: 3}, 400, 1)
	several.Dim, several.Lipschitz, several.Smoothness = 9, math.Sqrt2, 0.5
	few := corner(convex.Logistic{}, 13, 1)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, p := range []oneplace.Problem{several, few, corner(convex.Logistic{}, 400, 1)} {
		for _, m := range OnePlace() {
			if slices.Contains([]string{"phased-erm", "phased-sco", "filtered"}, m.Name) {
				continue // like the others, and slower
			}
			plan, err := m.Plan(p)
			if err != nil {
				continue
			}
			if strings.Contains(plan.Better, "Inf") || strings.Contains(plan.Better, "NaN") {
				t.Errorf("%s: %s", m.Name, plan.Better)
			}
			if name, _, found := strings.Cut(plan.Better, " "); found {
				b, known := Of(name)
				if !known {
					t.Fatalf("%s: %s", m.Name, plan.Better)
				}
				other, loss, err := b.forLoss(p)
				if err == nil {
					_, err = other.Fit(ended, loss, make([]Person, p.People), rand.NewPCG(1, 2))
				}
				if !errors.Is(err, context.Canceled) || !(other.Bound < plan.Bound) {
					t.Errorf("%s advises %s, which has %v, %v", m.Name, name, other, err)
				}
			}
		}
	}
}
