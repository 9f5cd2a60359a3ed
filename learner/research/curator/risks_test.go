package curator

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestOnePhaseIsOneRelease: where there are too few people for two phases, phases have the bound of one release.
func TestOnePhaseIsOneRelease(t *testing.T) {
	p := problem(3, 1<<16, 2, 8)
	p.Ridge = 0.1
	one, err := planOutput(p)
	if err != nil {
		t.Fatal(err)
	}
	phased, err := planOutputPhases(p)
	if err != nil || phased.Phases != 1 || math.Abs(phased.Bound/one.Bound-1) > 1e-3 {
		t.Errorf("%d phases: bound %v, of one release %v; %v", phased.Phases, phased.Bound, one.Bound, err)
	}
}

// TestGroupsTakeShortSteps: a step moves two points of a smooth, strongly convex objective no further apart if it is at most
// 2/(beta + mu) long, which the radii of groups are for; here that is what bounds it.
func TestGroupsTakeShortSteps(t *testing.T) {
	p := problem(400, 16, 2, 8)
	p.Smoothness, p.Ridge = 3000, 1
	g, err := searchGroups(p)
	if err != nil {
		t.Fatal(err)
	}
	if eta := g.phases[0].eta; math.Abs(eta*3001/2-1) > 1e-9 {
		t.Errorf("a first step of %v, want 2/3001", eta)
	}
}

// TestRisksByHand compares the terms of bounds with numbers that were worked out by hand from docs/proofs/curator.md, for L =
// 2, R = 3, a ridge of 1/2, so that slopes are at most 3.5 and the diameter is 6, in 4 dimensions, of 5 rows a person.
func TestRisksByHand(t *testing.T) {
	p := Public{People: 10, Items: 5, Dim: 4, Lipschitz: 2, Smoothness: 1.5, Ridge: 0.5, Set: convex.Ball{R: 3},
		Budget: budget(1)}
	phases := func(first float64) float64 {
		return phasesRisk(p, 2, func(i int) float64 { return []float64{0.1, 0.2}[i] },
			func(i int) float64 { return []float64{0.05, 0.03}[i] }, func(i int) float64 { return []float64{first, 0.2}[i] })
	}
	fit, drift := p.passRisk(0.1, 10)
	ph := filteredPhase{people: 10, lambda: 0.5, stages: 1, steps: 4, sigma: 0.1, distance: 2}
	two := ph
	two.stages = 2
	f := &filteredPlan{public: p}
	halting := &filteredPlan{public: p, phases: []filteredPhase{two}}
	halting.public.Failure = 0.01
	lost := ph
	lost.sigma = 100
	g := &groupPlan{public: p, phases: []groupPhase{{eta: 0.1, steps: 8, sigma: 0.2}}}
	terms := g.terms(6)
	for what, v := range map[string][2]float64{
		"phases, of which the first says nothing": {phases(10), 0.1 + 0.05*9 + 0.2 + 0.03*36 + 3.5*2*0.2},
		"phases":                  {phases(0.5), 0.1 + 0.05*9 + 0.2 + 0.03*1 + 3.5*2*0.2},
		"new rows":                {generalisation(p, 0.7, 10), 16. / 35},
		"output":                  {outputRisk(p, 0.3, 2, 10, 0.1, 0.01), 0.6 + 0.4 + 0.735},
		"a pass":                  {fit, 0.6125},
		"a pass, by the distance": {drift, 0.5},
		"a stage":                 {f.gap(ph), 3.1265},
		"two stages":              {f.gap(two), 1.62725},
		"a phase's release":       {f.off(two), 1.80402328},
		"a release of noise, which is in the set": {f.off(lost), 6},
		"a run":               {f.runBound([]filteredPhase{two}), 1 + 0.32 + 3.5*1.80402328},
		"what halts cost":     {halting.bound() - halting.runBound(halting.phases), 4 * 0.01 * 3.5 * 3}, // 4 b G R
		"groups, their way":   {terms[0], 5.625},
		"groups, their steps": {terms[1], 0.6125},
		"groups, their noise": {terms[2], 1.4},
		"groups, their ball":  {g.ball(g.phases[0]), 1.4},
		"people's means":      {spreadRadius(10, 4, 3, 0.1), 3.41140377},
		"groups' points":      {concentrated(10, 3, 0.1), 4.27735373},
	} {
		if math.Abs(v[0]/v[1]-1) > 2e-6 {
			t.Errorf("%s: %.9g, want %.9g", what, v[0], v[1])
		}
	}
}
