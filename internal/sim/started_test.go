package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// started returns the problem of the table with a start.
func (m drawnTable) started(start []float64) drawnTable {
	how := *m.problem.Practical
	how.Start, m.problem.Start, m.problem.Practical = start, start, &how
	return m
}

// numbersTable returns correlated columns with a linear label, whose residual is half as large as what they explain.
func numbersTable(users int, epsilon float64) randomTable {
	r := rand.New(rand.NewPCG(5, 6))
	m := randomTable{r: r, columns: 4, users: users, epsilon: epsilon, mix: 0.6, wide: 1, spread: 20,
		indicator: make([]bool, 4), heavy: make([]bool, 4), cut: make([]float64, 4), offset: []float64{0.3},
		truth: [][]float64{randomDirection(r, 4, 1)}}
	for range m.columns {
		m.loadings = append(m.loadings, []float64{0.5 + r.Float64()})
	}
	return m
}

// TestNumbersFromAStart: numbers that begin with a public model end with at most a tenth more error than it has,
// however few users and small an epsilon, where the same plan from nothing may end with twice; without noise and with
// many users they end below it. A start that is in other units, hundreds of labels from any row, is left for what the
// matrix says, where that is above its noise.
func TestNumbersFromAStart(t *testing.T) {
	public := numbersTable(1000, 1).draw(t)
	start, err := sim.Converge(t.Context(), sim.ConvergeConfig{Loss: public.loss, Set: convex.Ball{R: 50},
		Dim: public.problem.Dim, Examples: public.rows[:300]})
	if err != nil {
		t.Fatal(err)
	}
	rmse := func(m drawnTable, start []float64, exact bool) (root float64) {
		for seed := range uint64(5) {
			root += math.Sqrt(2*m.started(start).end(t, exact, false, seed)) / 5
		}
		return root
	}
	own := math.Sqrt(2 * sim.MeanLoss(public.loss, start, public.held))
	far := make([]float64, len(start))
	for i, x := range start {
		far[i] = 300 * x
	}
	for _, c := range []struct {
		users   int
		epsilon float64
	}{{300, 0.3}, {600, 0.3}, {600, 1}, {4000, 0.2}, {4000, 1}, {20_000, 1}} {
		m := numbersTable(c.users, c.epsilon).draw(t)
		private, exact, none, wrong := rmse(m, start, false), rmse(m, start, true), rmse(m, nil, false), rmse(m, far, false)
		t.Logf(
			"%d users, epsilon %v: error of the start %.4f, at the end %.4f, without noise %.4f; from nothing %.4f, from far %.4f",
			c.users, c.epsilon, own, private, exact, none, wrong)
		if private > 1.1*own || exact > 1.05*own {
			t.Errorf("%d users, epsilon %v: the error grows from %v to %v, without noise to %v", c.users, c.epsilon, own,
				private,
				exact)
		}
		if many := float64(c.users)*c.epsilon >= 4000; many && (private > 1.01*own || wrong > 1.1*own) {
			t.Errorf("%d users: %v of %v, from far away %v", c.users, private, own, wrong)
		}
	}
}
