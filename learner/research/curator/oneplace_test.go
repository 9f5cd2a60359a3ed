package curator

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
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
			text := better(p, plan)
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
