package rehearse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// A concept is a truth of two classes: their log odds are odds and the product with a row.
type concept struct {
	from  int // row with which it begins
	truth []float64
	odds  float64
}

// concepts draws rows of d correlated normal features, cut at 4 deviations, whose labels follow one concept after
// another.
func concepts(r *rand.Rand, d, n int, all ...concept) madeStream {
	out := madeStream{horizon: n / 4, epsilon: 1, indicators: make([]bool, d)}
	mix := make([]float64, d)
	for j := range mix {
		mix[j] = r.Float64()
	}
	for i := range n {
		now := all[0]
		for _, c := range all {
			if i >= c.from {
				now = c
			}
		}
		x, z, common := make([]float64, d+1), now.odds, r.NormFloat64()
		for j := range d {
			v := math.Sqrt(mix[j])*common + math.Sqrt(1-mix[j])*r.NormFloat64()
			z += v * now.truth[j]
			x[j] = min(max(v, -4), 4) / 4
		}
		x[d] = 1
		label := -1.0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			label = 1
		}
		out.rows = append(out.rows, convex.Example{Value: x, Label: label})
	}
	return out
}

// heavy draws rows of d features, some of which are indicators or have heavy tails, and labels that follow one concept.
func heavy(r *rand.Rand, d, n int) madeStream {
	one := concept{truth: randomDirection(r, d, 0.5+2.5*r.Float64()), odds: 4*r.Float64() - 3}
	out := concepts(r, d, n, one)
	for j := range d {
		out.indicators[j] = j%3 == 0
	}
	for i, e := range out.rows {
		z := one.odds
		for j := range d {
			v := 4 * e.Value[j]
			switch j % 3 {
			case 0:
				v = float64(min(max(math.Ceil(v-1), 0), 1))
				e.Value[j] = v
			case 1:
				v = min(math.Exp(v)-1, 8)
				e.Value[j] = v / 8
			}
			z += v * one.truth[j]
		}
		out.rows[i].Label = -1
		if r.Float64() < 1/(1+math.Exp(-z)) {
			out.rows[i].Label = 1
		}
	}
	return out
}

// A told holds what a simulated task without an end released about one round of gradients.
type told struct {
	from, to int // the rows that answered it
	surprise float64
	model    []float64 // before it
}

// follow simulates the task of a stream.
func (m madeStream) follow(t *testing.T, job run.Job, seed uint64, forge func(int32, randomizer.Params,
	[]byte)) (rounds []told, last []float64) {
	t.Helper()
	at := 0
	_, err := sim.Run(t.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Examples: m.rows,
		InOrder: true, Seed: seed, Forge: forge,
		OnRound: func(r sim.Round) {
			if r.Tracking != nil {
				rounds = append(rounds, told{at, at + int(r.Users), r.Tracking.Surprise, last})
			}
			at, last = at+int(r.Users), slices.Clone(r.Model())
		}})
	if err != nil {
		t.Fatal(err)
	}
	return rounds, last
}

// accuracy returns the share of rows that a model predicts.
func accuracy(model []float64, rows []convex.Example) float64 {
	hits := 0
	for _, e := range rows {
		if e.Label*e.Dot(model) > 0 {
			hits++
		}
	}
	return float64(hits) / float64(len(rows))
}
