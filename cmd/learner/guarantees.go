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

// worst is line by line the weaker of two lists for the same trust and planned share.
func worst(a, b []guarantee) []guarantee {
	if a == nil {
		return b
	}
	out := append([]guarantee(nil), a...)
	for i, line := range b { // every release has the same lines
		if have := out[i].Epsilon; have != nil && (line.Epsilon == nil || *line.Epsilon > *have) {
			out[i].Epsilon = line.Epsilon
		}
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
		if fraction.Float() > p.HonestFraction.Float() || len(out) > 0 && out[0].HonestFraction.String() == fraction.String() {
			continue
		}
		r := planned
		r.HonestFraction = fraction
		// Where the share is less than one user nobody's noise is relied upon, and nothing is promised.
		cost := accounting.Guarantee{Learner: math.Inf(1), Intruder: math.Inf(1), HasIntruder: p.Trust != accounting.Shuffle}
		if fraction.Floor(p.Users) > 0 {
			if cost, err = g.accountant.ReleaseEpsilon(r, p.Delta); err != nil {
				return nil, err
			}
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
