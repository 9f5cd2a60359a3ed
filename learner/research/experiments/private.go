package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/private"
)

// resquePrivate runs noisy SGD and private ReSQue, at a fixed lambda and as in Theorem 3, on 100,000 made-up rows:
// least absolute deviations in 10 dimensions, features of norm 1, epsilon 1 and delta 1e-6 for one row more or
// less. It prints the proved bounds and the excess of the mean loss over the best that was found, without limit on
// rounds and with.
func resquePrivate(w io.Writer, seeds int) error {
	const n, d = 100000, 10
	data, truth := unitRows(n, d)
	best := leastLoss(data, truth)
	fmt.Fprintf(w,
		"n %d, d %d, L = R = 1, epsilon 1, delta 1e-6 (one row more or less), %d runs; the origin's excess is %.4f\n", n, d,
		seeds, mean(data, make([]float64, d))-best)
	fmt.Fprintln(w,
		"method rounds<= | rounds gradients proved-bound excess-mean excess-max seconds epsilon(add/remove) epsilon(replace)")
	for _, rounds := range []int{0, 10000, 1000, 100} {
		for _, method := range []string{private.NoisySGD, private.ReSQue, private.ReSQueBall} {
			p := private.Public{Method: method, N: n, Dim: d, Lipschitz: 1, Radius: 1, Epsilon: 1, Delta: 1e-6, Convex: true,
				Rounds: rounds}
			plan, err := private.NewPlan(p)
			if err != nil {
				fmt.Fprintf(w, "%-9s %6d | %v\n", method, rounds, err)
				continue
			}
			var sum, most float64
			began := time.Now()
			for seed := range seeds {
				r, err := plan.Fit(context.Background(), data, sim.Entropy(uint64(seed), "experiments: resque-private"))
				if err != nil {
					return err
				}
				gap := mean(data, r.Theta) - best
				sum, most = sum+gap, max(most, gap)
			}
			fmt.Fprintf(w, "%-9s %6d | %6d %8.3g %8.5f %9.6f %9.6f %6.1f %.4f %.4f\n", method, rounds, plan.Rounds, plan.Queries,
				plan.Bound, sum/float64(seeds), most,
				time.Since(began).Seconds()/float64(seeds), plan.Cost.Epsilon, plan.Cost.ReplaceEpsilon)
		}
	}
	return nil
}

// unitRows returns rows of norm 1, labelled by a point of norm 0.7 and noise of standard deviation 0.05.
func unitRows(n, d int) (private.Data, []float64) {
	rng := rand.New(sim.Entropy(1, "experiments: resque-private rows"))
	truth := make([]float64, d)
	for j := range truth {
		truth[j] = 0.7 / math.Sqrt(float64(d))
	}
	rows := make([]convex.Example, n)
	for i := range rows {
		e := convex.Example{Value: make([]float64, d)}
		direction(e.Value, rng)
		e.Label = e.Dot(truth) + 0.05*rng.NormFloat64()
		rows[i] = e
	}
	return private.Data{Loss: convex.Absolute{}, Features: d, Rows: rows}, truth
}

func mean(d private.Data, theta []float64) float64 {
	var s float64
	for _, e := range d.Rows {
		s += d.Loss.Value(theta, e)
	}
	return s / float64(len(d.Rows))
}

// leastLoss returns the least mean loss of 200 steps of subgradient descent.
func leastLoss(d private.Data, from []float64) float64 {
	x, g, one := append([]float64(nil), from...), make([]float64, len(from)), make([]float64, len(from))
	best := mean(d, x)
	for t := range 200 {
		clear(g)
		for _, e := range d.Rows {
			d.Loss.Gradient(one, x, e)
			for j, v := range one {
				g[j] += v / float64(len(d.Rows))
			}
		}
		for j := range x {
			x[j] -= 0.1 / float64(t+1) * g[j]
		}
		best = min(best, mean(d, x))
	}
	return best
}
