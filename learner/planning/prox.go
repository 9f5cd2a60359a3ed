package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// defaultProxRounds is the limit on the rounds of prox, where Problem.MaxRounds sets none: each takes an answer
// hundreds of passes over its rows.
const defaultProxRounds = 12

// Prox holds declared constants of the method prox; the planner chooses those that are 0.
type Prox struct {
	Weight float64 // lambda; 0: planned
	Steps  uint64  // of gradient descent for an answer; 0: planned
}

// walk is the norm of the summed noise of all rounds at the planned weight, as a share of the distance. It was chosen
// on a9a's training rows, see docs/reference/bounds.md.
const walk = 1. / 3

func (p Prox) validate() error {
	if w := p.Weight; !(w >= 0) || math.IsInf(w, 1) {
		return fmt.Errorf("prox: weight: %v, want a finite number above 0, or 0 to have it planned", w)
	}
	if p.Steps > manifest.MaxProxSteps {
		return fmt.Errorf("prox: steps: %d, want at most %d, or 0 to have them planned", p.Steps, manifest.MaxProxSteps)
	}
	return nil
}

// proxBound returns the bound for a number of rounds with the noise of one. If the silos' spread is not declared, it
// allows for any spread, or with alike for the spread of rows dealt to silos at random.
func (d draft) proxBound(rounds, units uint64, n noise, alike bool) proxBound {
	o := d.p.Silos
	b := proxBound{rounds: rounds, average: method.ProxAverage(rounds), reports: o.Reports, units: units,
		distance: d.distance, loss: d.objective.lipschitz, beta: d.p.Smoothness, steps: d.p.Prox.Steps,
		again: d.t.Interactive, spread: d.objective.lipschitz}
	switch {
	case o.Spread > 0:
		b.spread = min(b.spread, o.Spread)
	case alike:
		b.spread /= math.Sqrt(float64(units))
	}
	scale := float64(d.p.Dim) * d.p.unitNorm() * d.p.unitNorm()
	b.noise, b.rounding = scale*n.total(), scale*n.rounding
	return b
}

// weight returns lambda: the declared one, else the one at which the noise of all rounds adds up to a share of the
// distance, with a bound of at most twice the smallest for silos that are alike.
func (d draft) weight(b proxBound) float64 {
	if d.p.Prox.Weight > 0 {
		return d.p.Prox.Weight
	}
	least := 0.0
	if b.steps == 0 {
		least = 3 * b.beta / (manifest.MaxProxSteps - 4)
	}
	best := b.best(least) // the bound is of the form a lambda + b/lambda
	at := math.Sqrt(float64(b.rounds)*b.noise) / (walk * b.distance)
	return max(least, min(max(at, best*(2-math.Sqrt(3))), best*(2+math.Sqrt(3))))
}

// inProx plans prox: the rounds of the smallest bound for silos that are alike, then the weight for the real noise.
func (d draft) inProx() (Proposal, error) {
	d.t.Interactive = d.p.Interactive
	out, err := d.p.proposal(d.method)
	if err != nil {
		return Proposal{}, err
	}
	out.TrivialRisk, out.Plan.Clips = d.trivial, d.p.Lipschitz > d.p.ClipNorm
	s := search{p: d.p, t: d.t, objective: d.objective, source: d.source, users: d.p.Users, distance: d.distance}
	m, _ := s.shape(1)
	limit := d.p.MaxRounds
	if limit == 0 {
		limit = defaultProxRounds
	}
	rounds, best := uint64(1), math.Inf(1)
	for p := uint64(1); p <= limit && (d.t.Interactive || d.p.Silos.Blocks(p) > 0); p++ {
		_, k := s.shape(p)
		b := d.proxBound(p, k, s.from(k).model(m, s.answers(p)), true)
		if risk := b.risk(d.weight(b)); risk < best*(1-1e-9) {
			rounds, best = p, risk
		}
	}
	_, k := s.shape(rounds)
	n, privacy, err := s.from(k).exact(m, s.answers(rounds))
	if err != nil {
		return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
	}
	b := d.proxBound(rounds, k, n, false)
	x := &wire.Prox{Weight: d.weight(d.proxBound(rounds, k, n, true))}
	b.steps = d.p.Prox.Steps
	if b.steps == 0 {
		b.steps = ProxSteps(x.Weight, b.beta)
	}
	if b.steps > manifest.MaxProxSteps {
		return Proposal{},
			fmt.Errorf(
				"%s: %d passes over the rows for an answer, want at most %d: raise schedule.prox.weight, or set schedule.prox.steps", d.method, b.steps,
				manifest.MaxProxSteps)
	}
	x.Steps, x.StepSize = uint32(b.steps), 1/(b.beta+x.Weight)
	risk := b.risk(x.Weight)
	if math.IsInf(risk, 0) || math.IsNaN(risk) {
		return Proposal{}, fmt.Errorf("%s: the risk bound overflows; rescale the features", d.method)
	}
	at := situation{variance: b.noise / x.Weight / x.Weight}
	phase, forecast := d.phase(&s, choice{steps: rounds, cohort: m, units: k, privacy: privacy, situation: at,
		setting: setting{smoothness: b.beta, risk: risk}})
	phase.Constants = &wire.Phase_Prox{Prox: x}
	if err := out.add(phase, forecast, d.p.Dim, d.p.ClipNorm/x.Weight, 0); err != nil {
		return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
	}
	d.conclude(&out, risk)
	return out, nil
}
