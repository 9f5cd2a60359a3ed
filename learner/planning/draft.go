package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/wire"
)

// A draft is an unfinished plan with one method and one source of noise.
type draft struct {
	p         Problem
	method    string
	t         schedule.Method
	source    source
	objective objective
	distance  float64 // upper bound on the distance of the start from the optimum
	trivial   float64
}

func newDraft(p Problem, method string, from source) (draft, error) {
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return draft{}, fmt.Errorf("set: %w", err)
	}
	start := make([]float64, p.Dim)
	set.Start(start)
	distance := set.Radius()
	if p.Start != nil {
		copy(start, p.Start)
		distance = min(2*distance, distance+convex.Norm(start))
	}
	d := draft{p: p, method: method, t: traitsOf(method), source: from, objective: objective{lipschitz: p.gradientNorm(),
		dim: p.Dim, smoothness: p.Smoothness, mean: p.meanSmoothness(), ridge: p.Ridge, radius: set.Radius(),
		continuous: p.Continuous}}
	d.distance, d.trivial = distance, trivialRisk(p, distance, convex.Norm(start))
	return d, nil
}

// trivialRisk bounds the excess risk of the start: by the gradient there times the distance of the optimum, by the loss
// there, which is at least 0 at the optimum, and with a ridge by the square of the gradient over 2 lambda.
func trivialRisk(p Problem, distance, start float64) float64 {
	slope := p.gradientNorm() + p.Ridge*start
	out := slope * distance
	if p.StartRisk > 0 {
		out = min(out, p.StartRisk+p.gradientNorm()*start+p.Ridge*start*start/2)
	}
	if p.Ridge > 0 {
		out = min(out, slope*slope/(2*p.Ridge))
	}
	return out
}

// splits are the ratios, tried for restarts, of the users of a phase to the users of the phase before. The risk at the
// end comes from the later phases; the first ones only have to get near the optimum.
var splits = [...]float64{1, 2, 4}

// plan plans with equal phases, or with growing ones where the model of the noise promises at least a twentieth less
// risk.
func (d draft) plan() (Proposal, error) {
	switch {
	case d.t.Minimizers:
		return d.inProx()
	case !d.t.Restarts:
		return d.along([]uint64{d.p.Users})
	case d.p.Silos.Count > 0 || d.t.OnRecords():
		return d.inStages()
	}
	best, ratio := math.Inf(1), splits[0]
	quick := d
	quick.source = scaled{source: d.source, factor: 1}
	for _, r := range splits {
		if p, err := quick.along(quick.split(r)); err == nil && p.ExcessRisk < 0.95*best {
			best, ratio = p.ExcessRisk, r
		}
	}
	return d.along(d.split(ratio))
}

// split returns the users of each phase, in a geometric series; the last phase gets the remainder.
func (d draft) split(ratio float64) []uint64 {
	out := make([]uint64, restartPhases(d.p.Users))
	var sum float64
	for j := range out {
		sum += math.Pow(ratio, float64(j))
	}
	left := d.p.Users
	for j := range out[:len(out)-1] {
		out[j] = uint64(float64(d.p.Users) * math.Pow(ratio, float64(j)) / sum)
		left -= out[j]
	}
	out[len(out)-1] = left
	return out
}

// along plans the phases one after another, each for what the bound of the one before leaves: a point of expected
// excess risk r is within sqrt(2r/lambda) of the optimum in the mean. Without a ridge the point is only known to lie in
// the set.
func (d draft) along(users []uint64) (Proposal, error) {
	p := d.p
	out, err := p.proposal(d.method)
	if err != nil {
		return Proposal{}, err
	}
	out.TrivialRisk, out.Plan.Clips = d.trivial, p.Lipschitz > p.ClipNorm || p.Radius > 0
	k := uint64(len(users))
	if p.MaxRounds > 0 && p.MaxRounds < k {
		return Proposal{}, fmt.Errorf("%s: at most %d rounds do not go into %d phases", d.method, p.MaxRounds, k)
	}
	prior, reach := d.trivial, d.distance
	for _, n := range users {
		s := search{p: p, t: d.t, objective: d.objective, source: d.source, users: n, maxRounds: p.MaxRounds / k,
			distance: reach, prior: prior}
		if p.Ridge > 0 {
			s.distance = min(reach, restartDistance(prior, p.Ridge))
		}
		if n < 1 || p.Cohort > n || p.Minimum > n {
			return Proposal{}, fmt.Errorf("%s: cohorts of %d, at least %d, in phases of %d users", d.method, p.Cohort, p.Minimum,
				n)
		}
		best, err := s.best()
		if err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		phase, forecast := d.phase(&s, best)
		if math.IsInf(forecast.Risk, 0) || math.IsNaN(forecast.Risk) || math.IsInf(p.encodedNorm(), 0) {
			return Proposal{},
				fmt.Errorf("the risk bound overflows for a set of radius %v, clip norm %v, smoothness %v; rescale the features",
					d.objective.radius, p.ClipNorm, p.Smoothness)
		}
		if err := out.add(phase, forecast, p.encodedDim(), p.encodedNorm(), p.scores()); err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		prior, reach = forecast.Risk, 2*d.objective.radius
	}
	d.conclude(&out, prior)
	return out, nil
}

// conclude sets ExcessRisk and OnRecords of out from the risk at the end of the last phase. Methods OnRecords bound the
// risk on the mean loss of the users at hand; with a ridge a bound on the population's mean loss follows.
func (d draft) conclude(out *Proposal, risk float64) {
	out.ExcessRisk = risk
	switch {
	case d.t.OnRecords() && d.p.Ridge > 0:
		o := d.objective
		out.ExcessRisk = populationBound(risk, o.lipschitz, o.regularLipschitz(), o.ridge, 2*o.lipschitz/float64(d.p.Users))
	case d.t.OnRecords():
		out.OnRecords = true
	}
	out.Vacuous = out.ExcessRisk >= out.TrivialRisk
}

// phase returns the phase and the forecast of a choice.
func (d draft) phase(s *search, c choice) (*wire.Phase, Forecast) {
	set := c.setting
	out := &wire.Phase{Rounds: c.steps, Cohort: c.cohort, Users: c.cohort, Minimum: d.p.Minimum,
		RoundsPerUser: uint32(s.answers(c.steps)), Smoothing: set.smoothing,
		Constants: &wire.Phase_Descent{Descent: &wire.Descent{StepSize: set.stepSize, Mu: set.mu}}}
	if d.t.Accelerated {
		out.Constants = &wire.Phase_Acceleration{Acceleration: &wire.Acceleration{V: set.v, Mu: set.mu,
			Smoothness: set.smoothness}}
	}
	switch o := d.p.Silos; {
	case o.Count > 0 && d.t.Interactive && c.steps > 1: // one round takes its cohort
		out.Users = o.Count
	case o.Count > 0:
		out.Users = out.Rounds * out.Cohort
	case !d.t.Interactive:
		out.Users = out.Rounds * out.Cohort
		// Users left over join the last cohort, unless a limit on rounds leaves out whole cohorts of a fixed size, or the
		// rounds go on.
		if left := s.users - out.Users; d.p.Continuous == "" && (left < c.cohort || d.p.Cohort == 0) {
			out.Users += left
		}
	}
	if out.Minimum == 0 {
		out.Minimum = c.cohort - c.cohort/10
	}
	f := Forecast{Distance: s.distance, OracleVariance: c.situation.variance, Smoothness: set.smoothness, Risk: set.risk,
		Privacy: c.privacy}
	if c.units > 1 {
		f.Units = c.units
	}
	return out, f
}
