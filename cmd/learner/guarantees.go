package main

import (
	"math"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A guarantee is what one adversary learns at most about one user's event.
type guarantee struct {
	Adversary      string              `json:"adversary"`
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	Epsilon        *float64            `json:"epsilon"` // null: no finite one
	Delta          float64             `json:"delta"`
}

// A guarantor asks the accountant once for each release.
type guarantor struct {
	accountant *accounting.Accountant
	known      map[releaseKey][]guarantee
}

type releaseKey struct {
	accounting.Release
	delta float64
}

// plan lists what holds for the users of every phase: a user takes part in one, and the worst one counts.
func (g guarantor) plan(p learner.Plan) ([]guarantee, error) {
	var out []guarantee
	for _, ph := range p.Phases {
		lines, err := g.release(ph.Privacy)
		if err != nil {
			return nil, err
		}
		out = worst(out, lines)
	}
	return out, nil
}

func worst(a, b []guarantee) []guarantee {
	if a == nil {
		return b
	}
	out := append([]guarantee(nil), a...)
next:
	for _, line := range b {
		for i, have := range out {
			if have.Adversary != line.Adversary || have.HonestFraction != line.HonestFraction {
				continue
			}
			if have.Epsilon != nil && (line.Epsilon == nil || *line.Epsilon > *have.Epsilon) {
				out[i].Epsilon = line.Epsilon
			}
			continue next
		}
		out = append(out, line)
	}
	return out
}

// release lists the adversaries, and what is left of the guarantee when fewer users add noise than was planned for.
func (g guarantor) release(p accounting.Plan) ([]guarantee, error) {
	planned := p.Release()
	key := releaseKey{planned, p.Delta}
	if lines, ok := g.known[key]; ok {
		return lines, nil
	}
	var out []guarantee
	for _, honest := range []string{p.HonestFraction.String(), "0.9", "0.75", "0.5", "0.25"} {
		fraction, err := accounting.ParseFraction(honest)
		if err != nil {
			return nil, err
		}
		if fraction.Float() > p.HonestFraction.Float() || len(out) > 0 && out[0].HonestFraction.String() == fraction.String() || fraction.Floor(p.Users) == 0 {
			continue
		}
		r := planned
		r.HonestFraction = fraction
		cost, err := g.accountant.ReleaseEpsilon(r, p.Delta)
		if err != nil {
			return nil, err
		}
		add := func(adversary string, epsilon float64) {
			line := guarantee{Adversary: adversary, HonestFraction: fraction, Delta: p.Delta}
			if !math.IsInf(epsilon, 0) {
				line.Epsilon = &epsilon
			}
			out = append(out, line)
		}
		add("learner", cost.Learner)
		if cost.HasIntruder {
			add("intruder", cost.Intruder)
		}
	}
	g.known[key] = out
	return out, nil
}
