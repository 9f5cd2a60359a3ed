package learner

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Planner makes plans, and keeps what the accountant was asked on the way: plans of similar problems ask much the same. It is
// not safe for concurrent use.
type Planner struct {
	accountant *accounting.Accountant
	known      map[accounting.Request]accounting.Plan
}

// NewPlanner returns a planner that knows nothing yet.
func NewPlanner() *Planner {
	return &Planner{accountant: accounting.NewAccountant(), known: make(map[accounting.Request]accounting.Plan)}
}

// MakePlan plans with a planner of its own, see Planner.Plan.
func MakePlan(p Problem) (Plan, error) { return NewPlanner().Plan(p) }

// An Alternative is what one method would do about a problem.
type Alternative struct {
	Method string
	Plan   Plan  // if Err is nil
	Err    error // why there is no plan
}

// Plan chooses phases, rounds, cohorts, randomizers and the method's constants by minimising the method's risk bound over
// the number of rounds, with the accountant's real noise for the final choice. It takes up to a few seconds. The error names
// the field, or says why the method does not apply or that no cohort meets the privacy target.
func (pl *Planner) Plan(p Problem) (Plan, error) {
	if err := p.check(); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	method := p.Algorithm
	if method == "" {
		method = p.DefaultMethod()
	}
	if method != MethodAuto {
		out, err := pl.single(p, method)
		if err != nil {
			return Plan{}, fmt.Errorf("plan: %w", err)
		}
		return out, nil
	}
	all, err := pl.Alternatives(p)
	if err != nil {
		return Plan{}, err
	}
	out, err := Smallest(all)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	return out, nil
}

// Alternatives plans every method, in the order of Methods.
func (pl *Planner) Alternatives(p Problem) ([]Alternative, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	out := make([]Alternative, 0, len(methodTraits))
	for _, m := range Methods() {
		one := Alternative{Method: m}
		one.Plan, one.Err = pl.single(p, m)
		out = append(out, one)
	}
	return out, nil
}

// Smallest returns the plan with the smallest predicted excess risk, and says so in its Why. The error is that of every method
// where none has a plan.
func Smallest(all []Alternative) (Plan, error) {
	var (
		best    Plan
		others  []string
		without []error
	)
	for _, a := range all {
		if a.Err != nil {
			without = append(without, a.Err)
		} else if best.Phases == nil || a.Plan.PredictedExcessRisk < best.PredictedExcessRisk {
			best = a.Plan
		}
	}
	if best.Phases == nil {
		return Plan{}, fmt.Errorf("no method has a plan: %w", errors.Join(without...))
	}
	for _, a := range all {
		if a.Err == nil && a.Method != best.Algorithm {
			others = append(others, fmt.Sprintf("%s %.4g", a.Method, a.Plan.PredictedExcessRisk))
		}
	}
	best.Why = fmt.Sprintf("auto took %s: its bound %.4g is the smallest of %d", best.Algorithm, best.PredictedExcessRisk, len(others)+1)
	if len(others) == 0 {
		best.Why = fmt.Sprintf("auto took %s, the only method that applies; its bound is %.4g", best.Algorithm, best.PredictedExcessRisk)
	} else {
		best.Why += "; " + strings.Join(others, ", ")
	}
	return best, nil
}

// check refuses a problem that no method can be planned for.
func (p Problem) check() error {
	if err := p.Validate(); err != nil {
		return err
	}
	return p.request(p.Users, 1).Validate()
}

// single plans one method.
func (pl *Planner) single(p Problem, method string) (Plan, error) {
	if err := p.Applies(method); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", method, err)
	}
	from, err := pl.accountedFor(p)
	if err != nil {
		return Plan{}, err
	}
	d, err := newDraft(p, method, from)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", method, err)
	}
	return d.plan()
}

func (pl *Planner) accountedFor(p Problem) (accounted, error) {
	mu, err := accounting.GaussianMu(p.Epsilon, p.Delta)
	return accounted{planner: pl, problem: p, mu: mu}, err
}

// calibrate asks the accountant once.
func (pl *Planner) calibrate(r accounting.Request) (accounting.Plan, error) {
	if plan, ok := pl.known[r]; ok {
		return plan, nil
	}
	plan, err := pl.accountant.Calibrate(r)
	if err == nil {
		pl.known[r] = plan
	}
	return plan, err
}

// Accountant returns the accountant behind the planner, with all that it has computed.
func (pl *Planner) Accountant() *accounting.Accountant { return pl.accountant }

// A draft is a plan in the making: one method, and one source of noise.
type draft struct {
	p         Problem
	method    string
	t         traits
	source    source
	objective objective
	trivial   float64
}

func newDraft(p Problem, method string, from source) (draft, error) {
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return draft{}, fmt.Errorf("set: %w", err)
	}
	start := make([]float64, p.Dim)
	set.Start(start)
	d := draft{p: p, method: method, t: methodTraits[method], source: from, objective: objective{lipschitz: p.gradientNorm(),
		smoothness: p.Smoothness, ridge: p.Ridge, radius: set.Radius(), damping: p.damping(), continuous: p.Continuous}}
	d.trivial = trivialRisk(p, set.Radius(), convex.Norm(start))
	return d, nil
}

// trivialRisk bounds the excess risk of the start: by the gradient there times the distance of the optimum, by the loss there,
// which is at least 0 at the optimum, and with a ridge by the square of the gradient over 2 lambda.
func trivialRisk(p Problem, radius, start float64) float64 {
	slope := p.gradientNorm() + p.Ridge*start
	out := slope * radius
	if p.StartRisk > 0 {
		out = min(out, p.StartRisk+p.gradientNorm()*start+p.Ridge*start*start/2)
	}
	if p.Ridge > 0 {
		out = min(out, slope*slope/(2*p.Ridge))
	}
	return out
}

// phases returns how many phases the method has.
func (d draft) phases() uint64 {
	if d.t.restarts {
		return uint64(RestartPhases(d.p.Users))
	}
	return 1
}

// plan plans the phases one after another, each for what the bound of the one before leaves: a point of expected excess risk r is
// within sqrt(2r/lambda) of the optimum in the mean. Without a ridge all that is known is that it lies in the set.
func (d draft) plan() (Plan, error) {
	p := d.p
	out := Plan{Algorithm: d.method, Users: p.Users, Dim: p.Dim, ExtraDim: p.ExtraDim, ClipNorm: p.ClipNorm, EncodeNorm: p.encodedNorm(),
		Set: p.Set, Ridge: p.Ridge, Continuous: p.Continuous, TrivialRisk: d.trivial, Clips: p.Lipschitz > p.ClipNorm}
	k := d.phases()
	if p.Users < k || (p.MaxRounds > 0 && p.MaxRounds < k) {
		return Plan{}, fmt.Errorf("%s: %d users and at most %d rounds do not go into %d phases", d.method, p.Users, p.MaxRounds, k)
	}
	prior, reach := d.trivial, d.objective.radius
	for j := range k {
		s := search{p: p, t: d.t, objective: d.objective, source: d.source, users: p.Users / k, maxRounds: p.MaxRounds / k,
			distance: reach, prior: prior}
		if j == k-1 {
			s.users += p.Users % k
		}
		if p.Ridge > 0 {
			s.distance = min(reach, RestartDistance(prior, p.Ridge))
		}
		s.objective.damping = 1
		if p.Cohort > s.users || (p.Minimum > s.users) {
			return Plan{}, fmt.Errorf("%s: cohorts of %d, at least %d, in phases of %d users", d.method, p.Cohort, p.Minimum, s.users)
		}
		best, err := s.best()
		if err != nil {
			return Plan{}, fmt.Errorf("%s: %w", d.method, err)
		}
		phase := d.phase(&s, best)
		if math.IsInf(phase.Risk, 0) || math.IsNaN(phase.Risk) || math.IsInf(out.EncodeNorm, 0) {
			return Plan{}, fmt.Errorf("the risk bound overflows for a set of radius %v, clip norm %v, smoothness %v; rescale the features",
				d.objective.radius, p.ClipNorm, p.Smoothness)
		}
		out.Phases = append(out.Phases, phase)
		prior, reach = phase.Risk, 2*d.objective.radius
	}
	out.PredictedExcessRisk = prior
	out.Vacuous = out.PredictedExcessRisk >= out.TrivialRisk
	return out, nil
}

// phase writes a choice down, with the constants that the damping leaves.
func (d draft) phase(s *search, c choice) Phase {
	set := d.objective.tune(d.t, c.situation)
	out := Phase{Rounds: c.steps, Cohort: c.cohort, LastCohort: c.cohort, Minimum: d.p.Minimum, RoundsPerUser: s.answers(c.steps),
		Distance: s.distance, OracleVariance: c.situation.variance, StepSize: set.stepSize, V: set.v, Mu: set.mu, Smoothness: set.smoothness,
		Smoothing: set.smoothing, Risk: set.risk, Privacy: c.privacy}
	out.Users = out.Cohort
	if !d.t.interactive {
		// Users left over join the last cohort, unless a limit on rounds leaves out whole cohorts of a fixed size, or the rounds go on.
		if left := s.users - c.cohort*c.steps; d.p.Continuous == "" && (left < c.cohort || d.p.Cohort == 0) {
			out.LastCohort += left
		}
		out.Users = (out.Rounds-1)*out.Cohort + out.LastCohort
	}
	if out.Minimum == 0 {
		out.Minimum = c.cohort - c.cohort/10
	}
	return out
}
