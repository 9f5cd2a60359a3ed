package curator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/randomizer"
)

// baselines take a person as one item.
var baselines = []string{"output", "output-phases", "output-sgd"}

// scorers take losses of several scores, too: they ask for gradients alone, and for no slope.
var scorers = []string{"group-sgd", "filtered"}

// refuses returns why the method is not proved for a loss; nil: it is.
func (m Method) refuses(p Public, loss convex.Loss) error {
	if slices.Contains(scorers, m.Name) {
		return nil
	}
	_, err := newTable(p, loss, nil)
	return err
}

// OnePlace returns all methods of this package as oneplace methods, in the order of the documentation.
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
	plan, loss, err := m.forLoss(of)
	if err != nil {
		return nil, err
	}
	p := plan.Public
	out := &oneplace.Plan{Spent: plan.Spent, Phases: plan.Phases, Least: m.Least(p), NoiseStd: plan.NoiseStd,
		Bound: plan.Bound, OnRecords: plan.OnRecords, Notes: slices.Clone(plan.Notes), Better: better(of, plan)}
	if trivial := p.trivial(); !(plan.Bound < trivial) {
		out.Notes = append(out.Notes,
			fmt.Sprintf("its bound of %.3g says nothing: the start, which needs no data, is within %.3g", plan.Bound, trivial))
	}
	out.Check = func(ctx context.Context, people []Person) error { // by a fit that may not take a step
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := plan.Fit(ctx, loss, people, randomizer.NewEntropy()); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	out.Fit = func(ctx context.Context, people []Person, entropy rand.Source) (oneplace.Release, error) {
		r, err := plan.Fit(ctx, loss, people, entropy)
		return oneplace.Release{Model: r.Model, Phase: r.Phase, Halted: r.Halted}, err
	}
	return out, nil
}

// forLoss plans the method for the problem's loss. A loss of one score that is not smooth is smoothed in its score, as
// much as makes the bound on the loss itself smallest: every method then takes it, with nothing changed in what is
// proved (docs/proofs/curator.md, Smoothing). It returns the loss whose gradients are asked for.
func (m Method) forLoss(of oneplace.Problem) (*Plan, convex.Loss, error) {
	p := publicOf(of)
	if _, err := convex.Smoothed(of.Loss, 1); err != nil || !math.IsInf(p.Smoothness, 1) {
		plan, err := m.Plan(p)
		if err == nil {
			err = m.refuses(p, of.Loss)
		}
		return plan, of.Loss, err
	}
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	const factor, most = 4, 12 // the first gap is all that there is to lose
	first := p.trivial() / convex.SmoothingGap(of.Loss, 1)
	var best *Plan
	var smooth convex.Loss
	var failed error
	for width, worse := first, 0; worse < 2 && width > first*math.Pow(factor, -most); width /= factor {
		loss, err := convex.Smoothed(of.Loss, width)
		if err != nil {
			return nil, nil, err
		}
		p.Smoothness = loss.Smoothness(of.Norm)
		plan, err := m.Plan(p)
		if err == nil {
			err = m.refuses(p, loss)
		}
		if err != nil {
			failed, worse = cmp.Or(failed, err), worse+1
			continue
		}
		gap := convex.SmoothingGap(of.Loss, width)
		plan.Bound += gap
		plan.Notes = append(plan.Notes,
			fmt.Sprintf("smoothed over %.4g of the score: smoothness %.4g, at most %.3g below the loss", width, p.Smoothness, gap))
		worse++
		if best == nil || plan.Bound < 0.99*best.Bound { // the wider of two that are as good has fewer steps
			best, smooth, worse = plan, loss, 0
		}
	}
	if best == nil {
		return nil, nil, failed
	}
	return best, smooth, nil
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

// better names, in a sentence, the baseline of the smallest bound, where that is smaller than the plan's, and what
// noise it would have; empty if there is none. It names none that refuses the problem.
func better(of oneplace.Problem, plan *Plan) string {
	compared := []string{"output", "output-phases"}
	if slices.Contains(compared, plan.Method) {
		return ""
	}
	text, best, least := "", "", plan.Bound
	for _, name := range compared {
		m, _ := Of(name)
		if b, _, err := m.forLoss(of); err == nil && b.Bound < least {
			best, least = name, b.Bound
			text = fmt.Sprintf("%s has a bound of %.3g on its excess risk for the same people and budget, %s %s", name, b.Bound,
				plan.Method, boundOf(plan.Bound))
		}
	}
	if best == "" {
		return ""
	}
	for _, c := range contests {
		ratio := c.noiseRatio(plan.Public)
		if plan.unfiltered || c.Method != plan.Method || c.Paper || !(ratio > 1) || math.IsInf(ratio, 1) {
			continue
		}
		text += fmt.Sprintf("; a person as one item needs %.2g times less noise, ", ratio)
		if from := c.From(plan.Public); from > 0 {
			text += fmt.Sprintf("%s no more from %d rows a person on", plan.Method, from)
		} else {
			text += "however many rows a person has"
		}
	}
	return text + ": " + best + " is expected to do better"
}

func boundOf(b float64) string {
	if math.IsInf(b, 1) {
		return "none"
	}
	return fmt.Sprintf("%.3g", b)
}
