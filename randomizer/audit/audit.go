package audit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// Defaults of Config. DefaultTrials distinguishes half of the noise from all of it at epsilon = 1.
const (
	DefaultTrials     = 25000
	DefaultConfidence = 0.999
	defaultDelta      = 0.01
)

// maxEpsilon ends the search for the claimed epsilon.
const maxEpsilon = 64

// Config describes the pipeline to run and the claim about it.
type Config struct {
	// View names the adversary; the zero value is Learner.
	View View
	// Params and Users are the round's that was planned.
	Params randomizer.Params
	Users  uint64
	// Minimum of them report, the stage tops up the rest; 0 means all. The fewest show most: the pairs that run in
	// full run once more with none but those who change and the dishonest, where nearly all of the noise is the
	// stage's.
	Minimum uint64
	// Dishonest of the users add no noise, and report before anybody is missing. The intruder's view holds whatever
	// the others do: in it none of them adds noise, and nobody is missing.
	Dishonest uint64
	// Together is the number of users that change at once, from one input to the opposite one; 0 means 1.
	Together uint64
	// Within is the number of units that change in the report of each of them, out of its Params.Units; 0 means 1. The
	// pairs' encoders change them.
	Within uint64
	// Claim returns the delta that is claimed for epsilon >= 0 for one round and as many users and units as change in
	// it.
	Claim func(epsilon float64) (delta float64, err error)
	// Pairs holds the inputs of users; nil means opposite vectors that the bare randomizer encodes. All have a
	// device's Encoder for Params.
	Pairs []Pair
	// Trials is the number of rounds on each input of a pair, divided by its Part; 0 means DefaultTrials, at least
	// 1000. An audit takes the time of 4 Trials Users coordinates, and of 5 Trials Together reports: about 5 seconds
	// of one core for 1000 users by default.
	Trials int
	// Confidence is the probability with which a true claim passes, at least; 0 means DefaultConfidence.
	Confidence float64
	// Delta is the delta at which claimed and empirical epsilon are compared; 0 means defaultDelta, or half of the
	// claimed delta(0) if that is smaller.
	Delta float64
	// Epsilons are the points of the curve to test; nil means 0 and those where the claim is 1/2, 1/5 and 1/20 of
	// that at 0.
	Epsilons []float64
	// Entropy makes generators; nil means randomizer.NewEntropy.
	Entropy func() rand.Source

	subject func(shuffle.Config) (subject, error) // nil: a real mixer; tests put broken ones here
}

// A Point compares one point of the claimed curve with the strongest evidence against it.
type point struct {
	Epsilon float64
	Claimed float64 // delta(Epsilon), claimed
	Lower   float64 // delta(Epsilon) is at least this
	Pair    string  // which pair of inputs and which scalar of the view
}

// A Report is the result. All lower bounds hold together with probability Confidence.
type Report struct {
	Points                []point
	Delta                 float64 // the audit delta
	ClaimedEpsilon        float64 // at Delta
	EmpiricalEpsilonLower float64 // at Delta
	Confidence            float64
	Trials                int
	// RefutableShare is the share of the planned noise at which an audit like this one refutes the claim about as
	// often as not, and more often at smaller shares: it measures what a pass is worth. By the normal approximation; 0
	// means an audit that sees nothing.
	RefutableShare float64
	Pass           bool
}

func (c Config) complete() (Config, error) {
	if err := c.Params.Validate(); err != nil {
		return c, err
	}
	if c.Trials == 0 {
		c.Trials = DefaultTrials
	}
	if c.Confidence == 0 {
		c.Confidence = DefaultConfidence
	}
	c.Together, c.Within = max(c.Together, 1), max(c.Within, 1)
	if c.Minimum == 0 {
		c.Minimum = c.Users
	}
	if c.Pairs == nil {
		c.Pairs = bare(c.Params, c.Within)
	}
	if c.subject == nil {
		c.subject = newSubject
	}
	switch {
	case c.View < Learner || c.View > Operator:
		return c, fmt.Errorf("audit: View = %d is neither Learner, Intruder, OneReport nor Operator", c.View)
	case c.View == OneReport && c.Users != 1:
		return c, fmt.Errorf("audit: Users = %d, want 1 where a report is seen by itself", c.Users)
	case c.Claim == nil:
		return c, fmt.Errorf("audit: Claim is nil")
	case c.Users < 1:
		return c, fmt.Errorf("audit: Users = %d is below 1", c.Users)
	case c.Minimum > c.Users:
		return c, fmt.Errorf("audit: Minimum = %d is above Users = %d", c.Minimum, c.Users)
	case c.Together > c.Minimum:
		return c, fmt.Errorf("audit: Together = %d users are more than all %d who report", c.Together, c.Minimum)
	case c.Within > max(c.Params.Units, 1):
		return c, fmt.Errorf("audit: Within = %d units are more than the %d of a report", c.Within, max(c.Params.Units, 1))
	case c.Dishonest > c.Users-c.Together:
		return c, fmt.Errorf("audit: Dishonest = %d leaves no honest ones of %d users, of whom %d change", c.Dishonest,
			c.Users, c.Together)
	case c.Trials < 1000:
		return c, fmt.Errorf("audit: Trials = %d is below 1000, which cannot refute anything", c.Trials)
	case !(c.Confidence > 0 && c.Confidence < 1):
		return c, fmt.Errorf("audit: Confidence = %v is outside (0, 1)", c.Confidence)
	case !(c.Delta >= 0 && c.Delta < 1):
		return c, fmt.Errorf("audit: Delta = %v is outside [0, 1)", c.Delta)
	}
	for _, pair := range c.Pairs {
		if len(pair.Along) != c.Params.Dim || !slices.ContainsFunc(pair.Along, func(a float64) bool { return a != 0 }) ||
			!(pair.Distance > 0 && pair.Distance <= 1) {
			return c, fmt.Errorf("audit: pair %q: %d coordinates, distance %v: want %d, not all 0, and a distance in (0, 1]",
				pair.Name, len(pair.Along), pair.Distance, c.Params.Dim)
		}
	}
	for _, eps := range c.Epsilons {
		if !(eps >= 0 && eps <= maxEpsilon) {
			return c, fmt.Errorf("audit: an entry %v of Epsilons is outside [0, %d]", eps, maxEpsilon)
		}
	}
	top, err := c.claim(0)
	if err != nil {
		return c, err
	}
	if c.Delta == 0 {
		c.Delta = min(defaultDelta, top/2)
	}
	if c.Epsilons == nil {
		c.Epsilons = []float64{0}
		for _, part := range []float64{2, 5, 20} {
			eps, err := c.epsilon(top / part)
			if err != nil {
				return c, err
			}
			c.Epsilons = append(c.Epsilons, eps)
		}
	}
	return c, nil
}

func (c Config) claim(eps float64) (float64, error) {
	d, err := c.Claim(eps)
	if err != nil {
		return 0, fmt.Errorf("audit: claim at epsilon = %v: %w", eps, err)
	}
	if !(d >= 0) {
		return 0, fmt.Errorf("audit: claim at epsilon = %v is %v, not a probability", eps, d)
	}
	return d, nil
}

// epsilon returns the smallest epsilon in [0, maxEpsilon] at which delta is claimed, from above.
func (c Config) epsilon(delta float64) (float64, error) {
	low, high := 0.0, float64(maxEpsilon)
	for _, eps := range []float64{0, high} {
		d, err := c.claim(eps)
		if err != nil {
			return 0, err
		}
		if eps == 0 && d <= delta {
			return 0, nil
		}
		if eps > 0 && d > delta {
			return 0, fmt.Errorf("audit: no epsilon up to %d is claimed at delta = %v", maxEpsilon, delta)
		}
	}
	for range 60 {
		mid := (low + high) / 2
		d, err := c.claim(mid)
		if err != nil {
			return 0, err
		}
		if d <= delta {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}

// Run audits. It returns an error if something could not be run, and a report that does not Pass if the claim is
// refuted.
func Run(ctx context.Context, cfg Config) (Report, error) {
	c, err := cfg.complete()
	if err != nil {
		return Report{}, err
	}
	rep := Report{Delta: c.Delta, Confidence: c.Confidence, Trials: c.Trials, Pass: true}
	if rep.ClaimedEpsilon, err = c.epsilon(c.Delta); err != nil {
		return Report{}, err
	}
	for _, eps := range c.Epsilons {
		d, err := c.claim(eps)
		if err != nil {
			return Report{}, err
		}
		rep.Points = append(rep.Points, point{Epsilon: eps, Claimed: d})
	}
	all := c.settings()
	// Two bounds for each event; an event for each epsilon, pair and order.
	alpha := (1 - c.Confidence) / float64(4*len(all)*len(c.Epsilons))
	rep.RefutableShare = c.refutable(all[0], rep.Points, alpha)
	for _, s := range all {
		p, err := c.run(ctx, s, Plus)
		if err != nil {
			return Report{}, err
		}
		q, err := c.run(ctx, s, Minus)
		if err != nil {
			return Report{}, err
		}
		rep.add(s.Name, p, q, alpha)
		rep.add(s.Name, negated(q), negated(p), alpha)
	}
	for _, pt := range rep.Points {
		rep.Pass = rep.Pass && pt.Lower <= pt.Claimed
	}
	rep.Pass = rep.Pass && rep.EmpiricalEpsilonLower <= rep.ClaimedEpsilon
	return rep, nil
}

// add tests all points on runs whose scalars tend to be larger under p. Every event bounds every point.
func (r *Report) add(name string, p, q []float64, alpha float64) {
	for _, chosen := range r.Points {
		e := observe(p, q, chosen.Epsilon, alpha)
		r.EmpiricalEpsilonLower = max(r.EmpiricalEpsilonLower, e.epsilon(r.Delta))
		for i := range r.Points {
			if d := e.delta(r.Points[i].Epsilon); d > r.Points[i].Lower || r.Points[i].Pair == "" {
				r.Points[i].Lower, r.Points[i].Pair = math.Max(d, r.Points[i].Lower), name
			}
		}
	}
}

func negated(s []float64) []float64 {
	out := make([]float64, len(s))
	for i, v := range s {
		out[i] = -v
	}
	return out
}
