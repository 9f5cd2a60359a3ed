package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
)

// smallSpread is the standard deviation of a row's gradient in units of the clip norm, between 0 and the truth:
// 0.05 at the truth, 0.094 at 0.
const smallSpread = 0.1

// smallClip is a clip norm that cuts few rows: none at the truth, where residuals are 0.1, and one of a hundred at 0.
const smallClip = 0.5

var runEpsilons = []float64{1, 8}

// A rival learns from people at these places of a population.
type rival struct {
	name   string
	rounds bool // looks at the whole pool in every round, and so has a smaller one
	fit    func(p *population, at crowdCell, seeds int) (excess []float64, note string, err error)
}

// A crowdCell is a number of people, of rows of each, an epsilon and a ridge.
type crowdCell struct {
	people, items  int
	epsilon, ridge float64
}

// sets is the public side of a crowdCell for methods of one process.
func (c crowdCell) public(spread float64) curator.Public {
	p := peopleOf(c.people, c.items, c.epsilon, c.ridge > 0)
	p.Spread = spread
	return p
}

// contenders of the tables of runs: methods as they plan, and those that gain by less different rows for these
// people's; then the pipeline.
func rivals() (out []rival) {
	for _, name := range []string{"output", "output-phases", "output-sgd", "gradscore", "phased-sco",
		"strongly-convex-sco", "group-sgd", "filtered"} {
		m, _ := curator.Of(name)
		out = append(out, planned(m, peopleLipschitz, 0))
		switch name {
		case "output", "output-phases":
			out = append(out, planned(m, smallClip, 0))
		case "output-sgd":
		default:
			out = append(out, planned(m, peopleLipschitz, smallSpread))
		}
	}
	return append(out, throughSilo("person as item", func(int) float64 { return 1 }), throughSilo("radius 1/sqrt(m)",
		func(m int) float64 { return 1 / math.Sqrt(float64(m)) }))
}

var errLong = errors.New("takes too long")

const (
	mostCopied = 1 << 26 // rows of people of which a copy is made
	mostSteps  = 1 << 28 // of one row each
	mostCut    = 1 << 20 // rows in every step of a solver
)

// mostPeople of methods that take minutes with more.
var mostPeople = map[string]int{"filtered": 1_000, "phased-sco": 1_000, "strongly-convex-sco": 1_000}

// planned returns a method of one process, planned for a spread. Methods that step row by row get rows as
// they are, all others an equivalent summary of fewer rows.
func planned(m curator.Method, clip, spread float64) rival {
	name := "`" + m.Name + "`"
	if spread > 0 {
		name += fmt.Sprintf(", spread %v", spread)
	}
	if clip != peopleLipschitz {
		name += fmt.Sprintf(", clip norm %v", clip)
	}
	return rival{name, false, func(p *population, at crowdCell, seeds int) (excess []float64, note string, err error) {
		if most, limited := mostPeople[m.Name]; limited && at.people > most ||
			m.Name == "group-sgd" && at.people*at.items > mostSteps || clip != peopleLipschitz && at.people*at.items > mostCut {
			return nil, "", errLong
		}
		public := at.public(spread)
		public.Lipschitz = clip
		plan, err := m.Plan(public)
		if err != nil {
			return nil, "", err
		}
		risk, halted := p.objective(at.ridge), 0
		for seed := range uint64(seeds) {
			places := p.places(rand.New(sim.Entropy(seed+1, "people: places")), at.people)
			rows, _ := p.peopleFor(m.Name, places, at.items)
			if clip != peopleLipschitz { // the clip applies to a row, and not to a summary of many
				rows = p.raw(places, at.items)
			}
			r, err := plan.Fit(context.Background(), convex.Squared{}, rows, sim.Entropy(seed+1, "people: noise "+plan.Method))
			if err != nil {
				return nil, "", err
			}
			if r.Halted {
				halted++
			}
			excess = append(excess, risk.excess(r.Model))
		}
		if mean := stat.Mean(excess, nil); !plan.OnRecords && mean > plan.Bound {
			return nil, "", fmt.Errorf("%s: excess %v above the bound %v", name, mean, plan.Bound)
		}
		if halted > 0 {
			note = fmt.Sprintf(", %d halted", halted)
		}
		return excess, note, nil
	}}
}

// peopleFor returns people for a method, and whether they have all rows: with their rows if it steps row by
// row, with as many of them as there is memory for. Such a method takes each row several times in a row then.
func (p *population) peopleFor(method string, places []int, m int) (people []curator.Person, all bool) {
	switch {
	case method == "group-sgd" && len(places)*m > mostCopied:
		return p.raw(places, max(stride, mostCopied/len(places)/stride*stride)), false
	case method == "group-sgd" || m <= 2*rowsInSummary:
		return p.raw(places, m), true
	}
	return p.summaries(places, m), true
}

// throughSilo returns the pipeline in one place, with a radius for people of so many rows.
func throughSilo(name string, radius func(m int) float64) rival {
	return rival{"pipeline, " + name, true, func(p *population, at crowdCell, seeds int) (excess []float64, note string,
		err error) {
		job, err := inOnePlace(at.people, at.items, at.epsilon, at.ridge, radius(at.items))
		if err != nil {
			return nil, "", err
		}
		risk := p.objective(at.ridge)
		for seed := range uint64(seeds) {
			model, err := p.pipelined(job, p.places(rand.New(sim.Entropy(seed+1, "people: places")), at.people), at.items,
				seed+1)
			if err != nil {
				return nil, "", err
			}
			excess = append(excess, risk.excess(model))
		}
		return excess, "", nil
	}}
}

// printRuns prints tables of the excess risk of runs on the whole population, in thousandths, one of each
// number of people, without a ridge and with one.
func printRuns(to, progress io.Writer, seeds int, of, only string) error {
	p, small := newPopulation(1, poolRows, slices.Max(peopleItems)), newPopulation(1, roundRows, slices.Max(peopleItems))
	for _, ridge := range []float64{0, 1} {
		for _, n := range peopleCounts {
			if of != "" && of != fmt.Sprint(n) && of != fmt.Sprintf("%d-%v", n, ridge) {
				continue
			}
			fmt.Fprintf(to, "\n| %d people, %s", n, map[bool]string{false: "no ridge", true: "ridge 1"}[ridge > 0])
			for _, epsilon := range runEpsilons {
				for _, m := range peopleItems {
					fmt.Fprintf(to, " | eps %v, m %d", epsilon, m)
				}
			}
			fmt.Fprintf(to, " |\n| --- %s|\n", strings.Repeat("| --- ", len(runEpsilons)*len(peopleItems)))
			start := p.objective(ridge).excess(make([]float64, peopleDim))
			fmt.Fprintf(to, "| no model%s |\n", strings.Repeat(fmt.Sprintf(" | %.3g", 1000*start),
				len(runEpsilons)*len(peopleItems)))
			for _, one := range rivals() {
				if !one.named(only) || one.strong() && ridge == 0 {
					continue
				}
				began := time.Now()
				fmt.Fprintf(to, "| %s", one.name)
				for _, epsilon := range runEpsilons {
					for _, m := range peopleItems {
						text, err := one.text(p, small, crowdCell{n, m, epsilon, ridge}, seeds)
						if err != nil {
							return err
						}
						fmt.Fprintf(to, " | %s", text)
					}
				}
				fmt.Fprintln(to, " |")
				fmt.Fprintf(progress, "%s, %d people, ridge %v: %.1f s\n", one.name, n, ridge, time.Since(began).Seconds())
			}
		}
	}
	return nil
}

// named reports whether the name contains one of the texts, which are separated by commas.
func (c rival) named(texts string) bool {
	return slices.ContainsFunc(strings.Split(texts, ","), func(text string) bool { return strings.Contains(c.name, text) })
}

// strong reports whether the contender needs a ridge.
func (c rival) strong() bool { return strings.Contains(c.name, "strongly") }

// text returns the mean excess risk in a crowdCell, and its standard deviation, in thousandths.
func (c rival) text(p, small *population, at crowdCell, seeds int) (string, error) {
	if c.rounds {
		p = small
	}
	excess, note, err := c.fit(p, at, seeds)
	var few *curator.TooFewError
	switch {
	case errors.As(err, &few):
		return fmt.Sprintf("from %d on", few.Least), nil
	case errors.Is(err, errLong):
		return "-", nil
	case err != nil:
		return "", err
	}
	mean, sd := stat.MeanStdDev(excess, nil)
	return fmt.Sprintf("%.3g (%.2g)%s", 1000*mean, 1000*sd, note), nil
}
