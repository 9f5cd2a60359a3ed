package curator

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestPlansOfExtremeNumbers: what cannot be run is refused before anything is charged: no plan panics, is missing,
// has no phases, or is one whose release the randomizer refuses.
func TestPlansOfExtremeNumbers(t *testing.T) {
	for name, change := range map[string]func(*Public){
		"huge clip norm":     func(p *Public) { p.Lipschitz = 1e200 },
		"tiny clip norm":     func(p *Public) { p.Lipschitz = 1e-200 },
		"clip norm 1e-35":    func(p *Public) { p.Lipschitz = 1e-35 },
		"huge set":           func(p *Public) { p.Set = convex.Ball{R: 1e200} },
		"tiny set":           func(p *Public) { p.Set = convex.Ball{R: 1e-200} },
		"set of 1e-35":       func(p *Public) { p.Set = convex.Ball{R: 1e-35} },
		"huge smoothness":    func(p *Public) { p.Smoothness = 1e200 },
		"huge ridge":         func(p *Public) { p.Ridge = 1e200 },
		"tiny spread":        func(p *Public) { p.Spread = 1e-300 },
		"tiny failure":       func(p *Public) { p.Failure = 1e-300 },
		"box of another dim": func(p *Public) { p.Set = convex.Box{Dim: 1, Min: -1, Max: 1}; p.Dim = 4 },
	} {
		for _, m := range methods {
			p := Public{People: 80, Items: 4, Dim: 1, Lipschitz: 1, Smoothness: 1, Set: convex.Ball{R: 1},
				Budget: accounting.Budget{Epsilon: 8, Delta: 1e-4}}
			if m.Name == "deletion" {
				p.People = 12
			}
			change(&p)
			plan, err := m.Plan(p)
			if err != nil {
				continue
			}
			if plan == nil || plan.Phases < 1 || !(plan.Spent.Delta > 0 && plan.Spent.Delta <= p.Budget.Delta) {
				t.Fatalf("%s: %s: %+v", name, m.Name, plan)
			}
			ball := p.Set.Radius() // the release's is no larger than twice that; filtered's is of the clip norm
			if m.Name == "filtered" {
				ball = p.Lipschitz
			}
			if ball < 1e-31 || !p.fits() || p.Failure > 0 {
				t.Errorf("%s: %s: planned", name, m.Name)
			}
			if math.IsNaN(plan.NoiseStd) {
				t.Errorf("%s: %s: no noise", name, m.Name)
			}
		}
	}
}

// TestRefusalsNameNoNumberOfPeopleThatThereIsNot: where no test of scores is within the budget for any number of
// people, the refusal does not ask for one.
func TestRefusalsNameNoNumberOfPeopleThatThereIsNot(t *testing.T) {
	p := Public{People: 120, Items: 3, Dim: 2, Lipschitz: 1, Smoothness: 1, Set: convex.Ball{R: 1},
		Budget: accounting.Budget{Epsilon: 1e-3, Delta: 1e-6}}
	for _, name := range []string{"group-sgd", "filtered"} {
		m, _ := Of(name)
		_, err := m.Plan(p)
		var few *TooFewError
		if !errors.As(err, &few) || few.Least <= mostPeople || strings.Contains(err.Error(), "want at least") ||
			!strings.Contains(err.Error(), "no number") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
