package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/panlearn/panlearn/internal/picture"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/research/resque"
)

// A deviations problem is one of least absolute deviations with L = R = 1: rows of norm 1, and labels linear in
// them with noise of heavy tails.
type deviations struct {
	rows []convex.Example
	dim  int
}

func newDeviations(n, dim int) deviations {
	draw := rand.New(sim.Entropy(1, "experiments: least absolute deviations"))
	model := make([]float64, dim)
	direction(model, draw)
	out := deviations{dim: dim}
	for range n {
		e := convex.Example{Value: make([]float64, dim)}
		direction(e.Value, draw)
		e.Label = .9*e.Dot(model) + .05*draw.NormFloat64()/(.1+draw.Float64())
		out.rows = append(out.rows, e)
	}
	return out
}

// direction overwrites x with a uniform draw of norm 1.
func direction(x []float64, draw *rand.Rand) {
	for i := range x {
		x[i] = draw.NormFloat64()
	}
	norm := convex.Norm(x)
	for i := range x {
		x[i] /= norm
	}
}

func (p deviations) value(x []float64) float64 {
	var sum float64
	for _, e := range p.rows {
		sum += convex.Absolute{}.Value(x, e)
	}
	return sum / float64(len(p.rows))
}

// envelope runs accelerated gradient descent on Moreau envelopes, as pagd-envelope without noise:
// ceil(sqrt(8)/gap) rounds reach the gap, half of which is the envelope's.
func (p deviations) envelope(gap float64) (x []float64, rounds int, err error) {
	b := 1 / gap
	smooth, err := convex.NewEnvelope(convex.Absolute{}, b)
	if err != nil {
		return nil, 0, err
	}
	rounds = int(math.Ceil(math.Sqrt(8) / gap))
	m, err := method.NewPAGD(method.PAGDConfig{Dim: p.dim, Set: convex.Ball{R: 1}, Steps: uint64(rounds), V: 2 * b})
	if err != nil {
		return nil, 0, err
	}
	one, g := make([]float64, p.dim), make([]float64, p.dim)
	for !m.Done() {
		at := m.Query().Point
		clear(g)
		for _, e := range p.rows {
			smooth.Gradient(one, at, e)
			for i, v := range one {
				g[i] += v / float64(len(p.rows))
			}
		}
		if err := m.Step(method.Estimate{Gradient: g, Users: 1}); err != nil {
			return nil, 0, err
		}
	}
	return m.Model(), rounds, nil
}

// descent runs projected subgradient descent with a drawn row a step, whose mean point has an expected gap of
// at most 1/sqrt(T).
func (p deviations) descent(gap float64) (mean []float64, rounds int) {
	draw := rand.New(sim.Entropy(2, "experiments: subgradient descent"))
	rounds = int(math.Ceil(1 / gap / gap))
	x, g := make([]float64, p.dim), make([]float64, p.dim)
	mean = make([]float64, p.dim)
	for range rounds {
		for i, v := range x {
			mean[i] += v / float64(rounds)
		}
		convex.Absolute{}.Gradient(g, x, p.rows[draw.IntN(len(p.rows))])
		for i, v := range g {
			x[i] -= v / math.Sqrt(float64(rounds))
		}
		convex.Clip(x, 1)
	}
	return mean, rounds
}

// depths runs four methods at every kappa = 1/gap, prints a line of each, and returns the rounds that they took by
// name. BallAccel has slack: as it is proved nobody waits for it.
func (p deviations) depths(kappas []float64, slack float64, to io.Writer) (names []string,
	rounds map[string][]picture.Point, err error) {
	oracle, err := resque.NewRows(convex.Absolute{}, p.rows, p.dim, 1)
	if err != nil {
		return nil, nil, err
	}
	finest, _, err := p.envelope(1 / kappas[len(kappas)-1] / 10)
	if err != nil {
		return nil, nil, err
	}
	best := p.value(finest)
	rounds = map[string][]picture.Point{}
	fmt.Fprintf(to,
		"| kappa | method | rounds | queries | most at a time | gap x kappa |\n| --: | --- | --: | --: | --: | --: |\n")
	for _, kappa := range kappas {
		line := func(name string, depth, queries, largest int64, x []float64) {
			if rounds[name] == nil {
				names = append(names, name)
			}
			rounds[name] = append(rounds[name], picture.Point{X: kappa, Y: float64(depth)})
			fmt.Fprintf(to, "| %v | %s | %d | %d | %d | %.3f |\n", kappa, name, depth, queries, largest, (p.value(x)-best)*kappa)
		}
		x, n := p.descent(1 / kappa)
		line("subgradient descent", int64(n), int64(n), 1, x)
		if x, n, err = p.envelope(1 / kappa); err != nil {
			return nil, nil, err
		}
		line("pagd-envelope, without noise", int64(n), int64(n*len(p.rows)), int64(len(p.rows)), x)
		for _, m := range []struct {
			name  string
			slack float64
		}{{resque.FixedLambda, 1}, {resque.BallAccel, slack}} {
			got, err := resque.Minimize(context.Background(), resque.Problem{Oracle: oracle, Dim: p.dim, L: 1, R: 1},
				resque.Config{Algorithm: m.name, Gap: 1 / kappa, Slack: m.slack, Workers: runtime.GOMAXPROCS(0)})
			if err != nil {
				return nil, nil, err
			}
			name := m.name
			if m.slack != 1 {
				name = fmt.Sprintf("%s, slack %v", name, m.slack)
			}
			line(name, got.Depth, got.Queries, got.Largest, got.Model)
		}
	}
	return names, rounds, nil
}

// parallel runs the study of docs/proofs/resque.md.
func parallel(file string, kappas []float64, to io.Writer) error {
	p := newDeviations(500, 20)
	names, rounds, err := p.depths(kappas, 2000, to)
	if err != nil || file == "" {
		return err
	}
	return drawDepths(fmt.Sprintf("least absolute deviations, d = %d", p.dim), kappas, names, rounds, file)
}

// drawDepths draws rounds over kappa, both on logarithmic scales.
func drawDepths(title string, kappas []float64, names []string, rounds map[string][]picture.Point, file string) error {
	p := picture.Panel{Title: title, X: "kappa = L R/gap", Y: "rounds", LogX: true, LogY: true, Ticks: kappas,
		Legend: picture.TopLeft}
	for i, name := range names {
		p.Lines = append(p.Lines, picture.Line{Name: name, Points: rounds[name], Color: i, Dots: true, Shape: i})
	}
	return picture.Write(file, p)
}
