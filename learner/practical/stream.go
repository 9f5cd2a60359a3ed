package practical

import (
	"fmt"
	"math"
	"sort"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Stream describes the loss in the coordinates of the steps for method.Bank, which follows a stream that never ends.
type Stream struct {
	Curvature float64 // h0: a low estimate of the mean second derivative of the loss along one coordinate
	Slope     float64 // variance of one coordinate of the gradient of one user, at the optimum
	Spread    float64 // tau: expected distance of the optimum from the start
	// Trust is the growth of the curvature with the squared norm of a gradient beyond its noise: rows that agree lie far
	// out in one direction.
	Trust float64
	// Clip is, for classes, the longest clip, see StreamClip; for numbers, the clip for a residual of deviation 1 in the
	// coordinates of steps.
	Clip float64
	// Squared reports whether the mean square of the residual is twice the mean loss times Residual; Slope, Trust and Clip
	// then follow the loss.
	Squared  bool
	Residual float64
	// Zero is the mean loss of a model of zeros, if it is the same for all labels; else 0.
	Zero float64 `json:",omitempty"`
}

const (
	streamNoise     = 0.05 // target noise of a moment in the first look
	streamMostNoise = 0.5  // largest useful noise of a moment
	leastCohort     = 250
	leastOfFew      = 100    // used if an eighth of the users is less
	mostCohort      = 64_000 // a larger cohort gains little
	streamHalf      = 4      // a cohort is large enough if its noise is half of its sampling error
	trust           = 1.25
)

// StreamLayout divides the users of a task without an end: how many report moments, and the smallest and the largest
// cohort of a round of gradients. unit returns, for a number of users, the standard deviation of one coordinate of
// their released sum at clip norm 1. constant reports whether cohorts stay the same. It refuses a stream whose first
// look would be too noisy to use; the error states how many users would suffice.
func (p Problem) StreamLayout(unit func(users uint64) float64, constant bool) (Layout, error) {
	s := p.shape()
	noise := func(users uint64) float64 { return unit(users) * p.MomentsNorm() / float64(users) }
	few := max(leastCohort, p.Users/5)
	look := func(most uint64, enough float64) uint64 { // the fewest users, up to most, whose noise is low enough
		return leastCohort + uint64(sort.Search(int(most-leastCohort),
			func(i int) bool { return noise(leastCohort+uint64(i)) <= enough }))
	}
	l := Layout{Rounds: 1, MomentUsers: look(few, streamNoise), Base: min(leastCohort, max(leastOfFew, p.Users/8))}
	if got := noise(l.MomentUsers); got > streamMostNoise {
		return Layout{},
			fmt.Errorf(
				"%d users teach a first look too little at this epsilon: each of its moments would have noise of %.2g, want at most %v: "+
					"plan for at least %d users, or declare fewer features", p.Users, got, streamMostNoise,
				5*look(1<<40, streamMostNoise))
	}
	if need := l.MomentUsers + l.Base; need > p.Users {
		return Layout{},
			fmt.Errorf("%d users are too few for a task without an end: a first look of %d and a round of %d want at least %d",
				p.Users, l.MomentUsers, l.Base, need)
	}
	l.Unit, l.Top = unit(l.Base)*s.radius, l.Base
	if !constant {
		curvature := 1.0 // mean second derivative of the loss
		if s.classes > 0 {
			curvature = s.Loss.ClassShape().Stream.Planned
		}
		enough := streamHalf * l.Unit * l.Unit * float64(s.dim+1) / curvature
		l.Top = max(l.Base, min(mostCohort, p.Users/8, uint64(enough)))
	}
	return l, nil
}

const (
	siloRounds      = 64 // rounds over which the rows of the horizon are spread
	leastSiloRounds = 4
)

// SiloLayout divides the units of silos whose stream does not end into Units of a block and Rounds of the horizon. With
// more rounds the model follows faster; blocks are made larger if moments would be too noisy. unit returns, for the
// units of a block, the standard deviation of one coordinate of the sum over all units of a round at clip norm 1, and
// blocks returns the units of a block for a number of rounds. It refuses layouts that are too noisy to use.
func (p Problem) SiloLayout(unit func(units uint64) float64, reports uint64, blocks func(rounds uint64) uint64) (Layout,
	error) {
	for rounds := uint64(siloRounds); rounds >= leastSiloRounds; rounds-- {
		k := blocks(rounds + 1)
		if k == 0 {
			continue
		}
		u := unit(k)
		noise := u * p.MomentsNorm() / float64(reports*k)
		if noise > streamNoise && rounds > leastSiloRounds {
			continue
		}
		if noise > streamMostNoise {
			return Layout{},
				fmt.Errorf(
					"blocks of %d rows of %d silos teach a first look too little at this epsilon: each of its moments would have noise of %.2g, "+
						"want at most %v: give larger silos, or declare fewer features", k, reports, noise, streamMostNoise)
		}
		return Layout{Rounds: rounds, MomentUsers: reports * k, Base: reports, Top: reports, Units: k,
			Unit: u * p.shape().radius}, nil
	}
	return Layout{},
		fmt.Errorf("%d units of all silos are too few for a task without an end: %d silos want a row for each of %d rounds",
			p.Users, reports, leastSiloRounds+1)
}

// startRounds is the assumed number of rounds behind a start's noise: about the memory of a bank.
const startRounds = 8

// StartVariance returns the approximate variance of one coordinate of the optimum around a declared start, in the
// coordinates of steps. It follows from the number of the start's users and from the added noise, and is +Inf if the
// number is unknown.
func (p Problem) StartVariance(of *Learned) float64 {
	if p.Start == nil || p.StartUsers == 0 {
		return math.Inf(1)
	}
	s, n := of.Stream, p.StartUsers
	noise := p.StartNoise * s.Clip * of.Weight / n
	return (s.Slope/n + startRounds*noise*noise) / (s.Curvature * s.Curvature)
}

// stream sets the clip and the steps of a task without an end.
func (c *classLook) stream(out *Learned) {
	out.Weight = 1 / c.meanWeight
	of := c.curve.Stream
	s := Stream{Curvature: of.Curvature, Slope: of.Slope, Spread: of.Spread, Trust: of.Trust}
	slope := 1 / (1 - 2*c.Loss.LabelNoise)
	square := 0.0 // mean square of the weights
	for k, share := range c.shares {
		square += share * c.weights.of(k) * c.weights.of(k)
	}
	s.Slope *= slope * slope * square / c.meanWeight / c.meanWeight
	s.Clip = within(c.rho * slope * c.weights.heaviest())
	if c.traits.Scores.Probable() && c.weights == nil && c.Loss.LabelNoise == 0 {
		s.Zero = math.Log(float64(c.classes))
	}
	out.Stream = &s
	out.Frame.Clip = c.clipAt(s.Clip)
}

// stream sets the clip and the steps of a task without an end.
func (s numberLook) stream(out *Learned, how convex.FitShape) {
	rho := out.Report.Norm
	stream := Stream{Curvature: how.Curvature, Slope: how.Slope * how.Slope, Spread: how.Start,
		Squared: s.traits.HalfSquare, Residual: 2 * out.Weight / out.Gain,
		Clip: within(how.Clip * rho * min(1, max(0.4, 3.5/rho)) * how.Unit)}
	stream.Trust = 0.8 * trust * stream.Curvature / stream.Slope
	out.Stream = &stream
	out.Frame.Clip = s.clipAt(stream.Clip)
}

// StreamClip returns the clip of a round of users users. For classes it keeps the round's noise at most sqrt(8) times
// its sampling error, but is at least half of the longest clip. residual is the mean square of the residual for
// numbers, 1 if unknown.
func (p Problem) StreamClip(l Layout, of *Learned, users uint64, residual float64) float64 {
	s, longest := p.shape(), of.Stream.Clip
	if s.classes == 0 {
		return s.clipAt(longest * math.Sqrt(residual))
	}
	enough := longest / of.Report.Norm * math.Sqrt(8*float64(users)*of.Stream.Curvature) / l.Unit
	return s.clipAt(min(max(enough, longest/2), longest))
}
