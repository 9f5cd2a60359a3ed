package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
)

// perPoint returns how many fits of this many people estimate the noise of a plan, at each of five numbers of
// rows around a crossover: the time is about the same for every number of people.
func perPoint(people int) int { return 300_000 / people }

// printCrossed prints a setting in which methods for people lose less than the baselines, and a crossover found by
// drawing noise: the number of rows from which repeated releases of gradscore for the same people spread less than
// those of output.
func printCrossed(to, progress io.Writer, seeds int, only string) error {
	at := crowdCell{300, 4_096, 8, 0}
	fmt.Fprintf(to, "\n| %d people of %d rows, epsilon %v | excess risk, 0.001 |\n| --- | --- |\n", at.people, at.items,
		at.epsilon)
	p, small := newPopulation(1, poolRows, at.items), newPopulation(1, roundRows, at.items)
	for _, one := range rivals() {
		if !one.named(only) || one.strong() {
			continue
		}
		text, err := one.text(p, small, at, seeds)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "| %s | %s |\n", one.name, text)
		fmt.Fprintf(progress, "%s\n", one.name)
	}
	at = crowdCell{1_000, 0, 8, 1}
	want := curator.Contests()[0].From(at.public(0))
	got, err := p.crossover(at, want)
	if err != nil {
		return err
	}
	fmt.Fprint(to,
		"\n| `gradscore` against `output`, ridge 1 | planned: less noise from | drawn: less noise from | drawn/planned |\n| --- | --- | --- | --- |\n")
	fmt.Fprintf(to, "| %d people, epsilon %v | %.3g rows | %.3g rows | %.2f |\n", at.people, at.epsilon, float64(want),
		got, got/float64(want))
	return nil
}

// crossover returns the number of rows from which on the models of gradscore, drawn again and again of the
// same people, spread less than those of output, by a line through the logarithms of ratios around a guess.
func (p *population) crossover(at crowdCell, guess int) (float64, error) {
	var x, y []float64
	for _, by := range []float64{0.5, math.Sqrt(0.5), 1, math.Sqrt(2), 2} {
		at.items = stride * max(1, int(math.Round(by*float64(guess)/stride)))
		one, err := p.spread("gradscore", at)
		if err != nil {
			return 0, err
		}
		other, err := p.spread("output", at)
		if err != nil {
			return 0, err
		}
		x, y = append(x, math.Log(float64(at.items))), append(y, math.Log(one/other))
	}
	level, slope := stat.LinearRegression(x, y, nil, false)
	return math.Exp(-level / slope), nil
}

// spread returns the standard deviation of a coordinate of models of the same people.
func (p *population) spread(name string, at crowdCell) (float64, error) {
	m, _ := curator.Of(name)
	plan, err := m.Plan(at.public(0))
	if err != nil {
		return 0, err
	}
	people := p.summaries(p.places(rand.New(sim.Entropy(1, "people: places")), at.people), at.items)
	of := make([][]float64, peopleDim)
	for seed := range uint64(perPoint(at.people)) {
		r, err := plan.Fit(context.Background(), convex.Squared{}, people, sim.Entropy(seed+1, "people: noise "+name,
			uint64(at.items)))
		if err != nil {
			return 0, err
		}
		for j, v := range r.Model {
			of[j] = append(of[j], v)
		}
	}
	sum := 0.0
	for _, values := range of {
		sum += stat.Variance(values, nil) / peopleDim
	}
	return math.Sqrt(sum), nil
}
