package curator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/randomizer"
)

// baselines take a person as one item.
var baselines = []string{"output", "output-phases", "output-sgd"}

// OnePlace returns all methods as those of one place, in the order of the documentation.
func OnePlace() []oneplace.Method {
	out := make([]oneplace.Method, len(methods))
	for i, m := range methods {
		out[i] = oneplace.Method{Name: m.Name, Source: m.Source,
			Least:      func(p oneplace.Problem) int { return m.Least(publicOf(p)) },
			PaperLeast: func(p oneplace.Problem) int { return paperLeast(m.Name, publicOf(p)) },
			LessNoise:  func(p oneplace.Problem) (int, bool) { return lessNoise(m.Name, publicOf(p)) },
			Plan:       func(p oneplace.Problem) (*oneplace.Plan, error) { return m.onePlace(p) }}
		if slices.Contains(baselines, m.Name) {
			out[i].Standing = oneplace.Baseline
		}
	}
	return out
}

func publicOf(p oneplace.Problem) Public {
	return Public{People: p.People, Items: p.Items, Dim: p.Dim, Lipschitz: p.Lipschitz, Smoothness: p.Smoothness,
		Ridge: p.Ridge, Set: p.Set, Budget: p.Budget}
}

func (m Method) onePlace(of oneplace.Problem) (*oneplace.Plan, error) {
	p := publicOf(of)
	plan, err := m.Plan(p)
	if err != nil {
		return nil, err
	}
	out := &oneplace.Plan{Spent: plan.Spent, Phases: plan.Phases, Least: m.Least(p), NoiseStd: plan.NoiseStd,
		Bound: plan.Bound, OnRecords: plan.OnRecords, Notes: slices.Clone(plan.Notes), Better: better(p, plan)}
	if trivial := p.Trivial(); !(plan.Bound < trivial) {
		out.Notes = append(out.Notes,
			fmt.Sprintf("its bound of %.3g says nothing: the start, which needs no data, is within %.3g", plan.Bound, trivial))
	}
	out.Check = func(ctx context.Context, people []Person) error { // by a fit that may not take a step
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := plan.Fit(ctx, of.Loss, people, randomizer.NewEntropy()); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	out.Fit = func(ctx context.Context, people []Person, entropy rand.Source) (oneplace.Release, error) {
		r, err := plan.Fit(ctx, of.Loss, people, entropy)
		return oneplace.Release{Model: r.Model, Phase: r.Phase, Halted: r.Halted}, err
	}
	return out, nil
}

// paperLeast returns the smallest number of people with the paper's constants of any variant; 0: it has none.
func paperLeast(method string, p Public) (least int) {
	for _, s := range Sizes(p.Budget, p.Items, p.Dim, 1e-3) {
		if s.Method == method && s.Paper && (least == 0 || s.Least < least) {
			least = s.Least
		}
	}
	return least
}

// lessNoise looks for the crossover of the method, as calibrated here.
func lessNoise(method string, p Public) (from int, compared bool) {
	for _, c := range contests {
		if c.Method == method && !c.Paper {
			return c.From(p), true
		}
	}
	return 0, false
}

// better names, in a sentence, a baseline that has the smaller bound or less noise; empty if there is none.
func better(p Public, plan *Plan) string {
	compared := []string{"output", "output-phases"}
	if slices.Contains(compared, plan.Method) {
		return ""
	}
	text, best, least := "", "output-phases", plan.Bound
	for _, name := range compared {
		m, _ := Of(name)
		if b, err := m.Plan(p); err == nil && b.Bound < least {
			best, least = name, b.Bound
			text = fmt.Sprintf("%s has a bound of %.3g on its excess risk for the same people and budget, %s %s", name, b.Bound,
				plan.Method, boundOf(plan.Bound))
		}
	}
	for _, c := range contests {
		ratio := c.Ratio(p)
		if c.Method != plan.Method || c.Paper || !(ratio > 1) {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("a person as one item (output-phases) needs %.2g times less noise, ", ratio)
		if from := c.From(p); from > 0 {
			text += fmt.Sprintf("%s no more from %d rows a person on", plan.Method, from)
		} else {
			text += "however many rows a person has"
		}
	}
	if text != "" {
		text += ": " + best + " is expected to do better"
	}
	return text
}

func boundOf(b float64) string {
	if math.IsInf(b, 1) {
		return "none"
	}
	return fmt.Sprintf("%.3g", b)
}
