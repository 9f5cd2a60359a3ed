package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/curator"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// The simulated people of the tables of docs/curator.md.
const (
	peopleDim   = 10
	peopleDelta = 1e-6
	peopleSet   = 5.0 // how far from 0 a model may be
)

var (
	peopleEpsilons = []float64{1, 4, 8}
	peopleCounts   = []int{1_000, 10_000, 100_000}
	peopleItems    = []int{16, 256, 4_096}
)

// peopleOf are the public numbers of a logistic loss on features of norm 1 at most, without a ridge, or with one of the loss's own smoothness.
func peopleOf(n, m int, epsilon float64, ridge bool) curator.Public {
	p := curator.Public{People: n, Items: m, Dim: peopleDim, Lipschitz: 1, Smoothness: 0.25, Set: convex.Ball{R: peopleSet},
		Budget: accounting.Budget{Epsilon: epsilon, Delta: peopleDelta}}
	if ridge {
		p.Ridge = p.Smoothness
	}
	return p
}

// people prints the tables: sizes, crossovers of noise, noise of one gradient, planning bounds, and plans' bounds beside what runs on at most so many rows lose.
func people(to, progress io.Writer, seeds, rows int) error {
	printSizes(to)
	if err := printCrossovers(to); err != nil {
		return err
	}
	if err := printRadius(to); err != nil {
		return err
	}
	printBounds(to)
	return printRuns(to, progress, seeds, rows)
}

// printSizes is the table of the smallest numbers of people.
func printSizes(to io.Writer) {
	fmt.Fprintf(to, "\n| from how many people on, delta %g, 16 items, d %d | epsilon 1 | 4 | 8 |\n| --- | --- | --- | --- |\n", peopleDelta, peopleDim)
	var of [3][]curator.Size
	for i, epsilon := range peopleEpsilons {
		of[i] = curator.Sizes(accounting.Budget{Epsilon: epsilon, Delta: peopleDelta}, 16, peopleDim, 1e-3)
	}
	for k, s := range of[0] {
		fmt.Fprintf(to, "| %s%s", s.Algorithm, map[bool]string{true: ", paper's constants"}[s.Paper])
		for i := range of {
			fmt.Fprintf(to, " | %d", of[i][k].Least)
		}
		fmt.Fprintln(to, " |")
	}
}

// printCrossovers is the table of the items of a person from which on a method has less noise than a person as one item.
func printCrossovers(to io.Writer) error {
	fmt.Fprint(to, "\n| less noise than a person as one item, from how many items of each on | people")
	for _, epsilon := range peopleEpsilons {
		fmt.Fprintf(to, " | epsilon %v", epsilon)
	}
	fmt.Fprintln(to, " |\n| --- | --- | --- | --- | --- |")
	for _, c := range curator.Contests() {
		for _, n := range []int{1_000, 5_000, 10_000, 100_000} {
			fmt.Fprintf(to, "| `%s`%s: %s | %d", c.Method, map[bool]string{true: ", paper's constants"}[c.Paper], c.Of, n)
			for _, epsilon := range peopleEpsilons {
				p := peopleOf(n, 16, epsilon, true)
				fmt.Fprintf(to, " | %s", items(c.From(p)))
			}
			fmt.Fprintln(to, " |")
		}
	}
	fmt.Fprintln(to, "\n| measured on the lattice, plans against `output`, ridge 0.25, 10,000 people | epsilon 1 | 4 | 8 |\n| --- | --- | --- | --- |")
	fmt.Fprint(to, "| `gradscore`")
	for _, epsilon := range peopleEpsilons {
		from, err := measured("gradscore", peopleOf(10_000, 1, epsilon, true))
		if err != nil {
			return err
		}
		fmt.Fprintf(to, " | %s", items(from))
	}
	fmt.Fprintln(to, " |")
	return nil
}

func items(n int) string {
	if n == 0 {
		return "never"
	}
	return fmt.Sprintf("%.3g", float64(n))
}

// measured is the number of items from which on the plan of a method has no more noise than that of one release of a minimiser, to a hundredth; 0: none has.
func measured(method string, p curator.Public) (int, error) {
	m, known := curator.Of(method)
	base, _ := curator.Of("output")
	if !known {
		return 0, nil
	}
	ratio := func(items float64) (float64, error) {
		q := p
		q.Items = int(items)
		a, err := m.Plan(q)
		if err != nil {
			return 0, err
		}
		b, err := base.Plan(q)
		if err != nil {
			return 0, err
		}
		return a.NoiseStd / b.NoiseStd, nil
	}
	low, high := 1.0, float64(1<<30)
	at, err := ratio(high)
	if err != nil || at > 1 {
		return 0, err
	}
	for high > 1.01*low {
		middle := math.Sqrt(low * high)
		if at, err = ratio(middle); err != nil {
			return 0, err
		}
		if at > 1 {
			low = middle
		} else {
			high = middle
		}
	}
	return int(high), nil
}

// printRadius is the table of the noise of one mean gradient of everybody's, with people's means cut to a radius as the pipeline plans it in many passes, and
// filtered, in units of the clip norm.
func printRadius(to io.Writer) error {
	fmt.Fprintln(to, "\n| noise of a mean gradient of everybody, epsilon 1 | items | `user.radius` 1, a person as one item | `user.radius` 1/sqrt(items) | rounds | filtered, as many rounds |\n| --- | --- | --- | --- | --- | --- |")
	for _, n := range peopleCounts {
		for _, m := range peopleItems {
			whole, rounds, err := pipelineNoise(n, m, 1)
			if err != nil {
				return err
			}
			cut, _, err := pipelineNoise(n, m, 1/math.Sqrt(float64(m)))
			if err != nil {
				return err
			}
			p := peopleOf(n, m, 1, false)
			fmt.Fprintf(to, "| %d people | %d | %.3g | %.3g | %d | %s |\n", n, m, whole, cut, rounds, number(curator.FilteredGradientNoise(p, int(rounds))))
		}
	}
	return nil
}

func number(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.3g", x)
}

// pipelineNoise is of the practical plan of a table of people, in many passes, whose mean gradients are cut to a radius.
func pipelineNoise(n, m int, radius float64) (noise float64, rounds uint64, err error) {
	columns := make([]string, peopleDim-1) // and the intercept
	for i := range columns {
		columns[i] = fmt.Sprintf("{column: x%d, kind: numeric, min: -1, max: 1}", i)
	}
	spec, err := task.Parse(fmt.Appendf(nil, "version: 1\nname: people\nevents: {format: csv, header: true}\nfeatures: {columns: [%s]}\n"+
		"label: {column: y, positive: [\"1\"], negative: [\"0\"]}\nmodel: {loss: logistic}\nprivacy: {epsilon: 1, delta: %g, trust: local, unit: user}\n"+
		"user: {column: id, items: %d, radius: %g}\nsilo: {count: 1, units: %d}\nschedule: {interactive: true}\n", strings.Join(columns, ", "), peopleDelta, m, radius, n), nil)
	if err != nil {
		return 0, 0, err
	}
	job, err := run.NewJob(spec)
	if err != nil {
		return 0, 0, err
	}
	return job.Inflation() * job.First().Privacy.TotalStd(), manifest.Planned(job.Plan), nil
}

// crowd draws people: features of norm 1 at most, labels of one logistic model, the same of everybody.
func crowd(draw *rand.Rand, n, m int) []curator.Person {
	out := make([]curator.Person, n)
	for i := range out {
		out[i] = make(curator.Person, m)
		for k := range out[i] {
			x, score := make([]float64, peopleDim), 0.0
			for j := range x {
				x[j] = draw.NormFloat64()
			}
			convex.Clip(x, 1)
			for _, v := range x {
				score += 4 * v / math.Sqrt(peopleDim)
			}
			y := -1.0
			if draw.Float64() < 1/(1+math.Exp(-score)) {
				y = 1
			}
			out[i][k] = convex.Example{Value: x, Label: y}
		}
	}
	return out
}

// risk is the objective on rows, and its gradient where that is wanted.
func risk(p curator.Public, theta []float64, rows []curator.Person, gradient []float64) (sum float64) {
	loss := convex.Logistic{}
	clear(gradient)
	scratch := make([]float64, len(theta))
	n := float64(len(rows) * len(rows[0]))
	for _, one := range rows {
		for _, e := range one {
			sum += loss.Value(theta, e) / n
			if gradient != nil {
				convex.ClippedGradient(loss, scratch, theta, e, p.Lipschitz)
				for j, g := range scratch {
					gradient[j] += g / n
				}
			}
		}
	}
	for j, v := range theta {
		sum += p.Ridge / 2 * v * v
		if gradient != nil {
			gradient[j] += p.Ridge * v
		}
	}
	return sum
}

// best is the smallest objective over the set, by projected gradient steps.
func best(p curator.Public, rows []curator.Person) float64 {
	theta, gradient := make([]float64, p.Dim), make([]float64, p.Dim)
	for range 200 {
		risk(p, theta, rows, gradient)
		for j, g := range gradient {
			theta[j] -= g / (p.Smoothness/3 + p.Ridge) // features of norm 1 in all directions curve the mean by a tenth of their own
		}
		p.Set.Project(theta, theta)
	}
	return risk(p, theta, rows, nil)
}

// printBounds is the table of planning bounds, in units of the clip norm times the distance of the best model.
func printBounds(to io.Writer) {
	fmt.Fprintln(to, "\n| planning bound, epsilon 1 (4, 8) | items | a person as one item (B0) | one step a person (B1) | groups |\n| --- | --- | --- | --- | --- |")
	for _, n := range peopleCounts {
		for _, m := range peopleItems {
			fmt.Fprintf(to, "| %d people | %d", n, m)
			for _, bound := range []func(curator.Public) float64{curator.PersonBound, curator.StepBound, curator.GroupBound} {
				var of [3]string
				for i, epsilon := range peopleEpsilons {
					of[i] = number(bound(peopleOf(n, m, epsilon, false)))
				}
				fmt.Fprintf(to, " | %s (%s, %s)", of[0], of[1], of[2])
			}
			fmt.Fprintln(to, " |")
		}
	}
}

// printRuns is the table of bounds and of what runs lose on new rows, of every method beside the baselines.
func printRuns(to, progress io.Writer, seeds, most int) error {
	fresh := crowd(rand.New(sim.Entropy(1, "people: new rows")), 4_000, 10)
	for _, ridge := range []bool{false, true} {
		least := best(peopleOf(1, 1, 1, ridge), fresh)
		fmt.Fprintf(to, "\n| excess risk, epsilon 1, %s | items | from | noise | bound | a run's, mean of %d (standard deviation) |\n| --- | --- | --- | --- | --- | --- |\n",
			map[bool]string{false: "no ridge", true: "ridge 0.25"}[ridge], seeds)
		for _, n := range peopleCounts {
			for _, m := range peopleItems {
				p := peopleOf(n, m, 1, ridge)
				for _, method := range curator.Methods() {
					if n*m > most && m != peopleItems[0] && m != peopleItems[len(peopleItems)-1] {
						continue
					}
					from, began := method.Least(p), time.Now()
					plan, err := method.Plan(p)
					var few *curator.TooFewError
					switch {
					case errors.As(err, &few):
						fmt.Fprintf(to, "| `%s`, %d people | %d | %d | | too few | |\n", method.Name, n, m, from)
						continue
					case err != nil:
						fmt.Fprintf(progress, "%s, %d people of %d items: %v\n", method.Name, n, m, err)
						continue
					}
					text := ""
					if n*m <= most {
						if text, err = lost(plan, fresh, least, seeds); err != nil {
							return err
						}
					}
					fmt.Fprintf(to, "| `%s`, %d people | %d | %d | %.3g | %s | %s |\n", method.Name, n, m, from, plan.NoiseStd, number(plan.Bound), text)
					fmt.Fprintf(progress, "%s, %d people of %d items: %.1f s\n", method.Name, n, m, time.Since(began).Seconds())
				}
			}
		}
	}
	return nil
}

// lost is by how much runs of a plan are worse on new rows than the best model.
func lost(plan *curator.Plan, fresh []curator.Person, least float64, seeds int) (string, error) {
	var excess []float64
	halted := 0
	for seed := range uint64(seeds) {
		rows := crowd(rand.New(sim.Entropy(seed+1, "people: rows")), plan.Public.People, plan.Public.Items)
		r, err := plan.Fit(context.Background(), convex.Logistic{}, rows, sim.Entropy(seed+1, "people: noise "+plan.Method))
		if err != nil {
			return "", fmt.Errorf("%s: %w", plan.Method, err)
		}
		if r.Halted {
			halted++
		}
		excess = append(excess, risk(plan.Public, r.Model, fresh, nil)-least)
	}
	mean, sd := stat.MeanStdDev(excess, nil)
	text := fmt.Sprintf("%.3g (%.2g)", mean, sd)
	if halted > 0 {
		text += fmt.Sprintf(", %d halted", halted)
	}
	return text, nil
}
