package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Contest is one release of a method against one of the baseline that takes a person as one item (B0), of as many
// people, for the same curvature of the objective and the same budget. Rows of people are draws of one
// distribution, and as different as the clip norm and Spread allow. Noise is Gaussian here: planning figures, which
// the lattice of a plan meets within a few percent (docs/proofs/curator.md, From how many people on).
type Contest struct {
	Method string // of the table of methods
	Paper  bool   // with the constants that the paper prints
	ratio  func(p Public) func(m float64) float64
}

// contests are in the order of the methods.
var contests = [...]Contest{
	{"gradscore", false, gradientScoreRatio},
	{"deletion", true, paperDeletionRatio},
	{"deletion", false, deletionRatio},
	{"group-sgd", false, groupRatio},
	{"filtered", false, filterRatio},
}

// Contests returns all of them.
func Contests() []Contest { return append([]Contest(nil), contests[:]...) }

// noiseRatio returns the noise of one coordinate of the method's release over that of the baseline; +Inf: too few
// people.
func (c Contest) noiseRatio(p Public) float64 { return c.ratio(p)(float64(p.Items)) }

// Root returns the number of items from which on the method would have less noise if noise fell like its root
// from 16 on, however far gradients may be there.
func (c Contest) Root(p Public) float64 {
	p.Items = 16
	ratio := c.noiseRatio(p)
	if c.Method == "gradscore" {
		ratio = uncapped(p) / minimiserNoise(p)
	}
	return 16 * ratio * ratio
}

// uncapped returns the noise of a score of gradients with gamma as Ghazi et al. have it, whatever it is, in
// units of L over the curvature.
func uncapped(p Public) float64 {
	return gradientScoreNoise(p, swaps(p.spread(), float64(p.Items), math.Log(float64(p.People)), p.failure()),
		math.Inf(1))
}

// mostItems bounds the search for a crossover.
const mostItems = 1 << 50

// From returns the smallest number of items of a person with which the method has no more noise than the
// baseline, up to a thousandth of it; 0: none has.
func (c Contest) From(p Public) int {
	ratio := c.ratio(p)
	if ratio(mostItems) > 1 {
		return 0
	}
	one := ratio(1)
	low := min(one*one, mostItems) // noise falls at most like the root: it is not earlier
	high := min(math.Ceil(low*1.0005), mostItems)
	for ratio(high) > 1 {
		low, high = high, min(4*high, mostItems)
	}
	for high-low > 1+high/1000 {
		if middle := math.Floor((low + high) / 2); ratio(middle) > 1 {
			low = middle
		} else {
			high = middle
		}
	}
	return max(1, int(high))
}

// perShift returns the noise of the Gaussian mechanism within a budget over the shift that it hides.
func perShift(b accounting.Budget) float64 {
	mu, err := accounting.GaussianMu(b)
	if err != nil {
		return math.Inf(1)
	}
	return 1 / mu
}

// minimiserShift returns how far one of the given number of people moves a minimiser, in units of L over the
// curvature.
func minimiserShift(people float64) float64 { return 2 / people }

// minimiserNoise returns the noise of the baseline, in units of L over the curvature.
func minimiserNoise(p Public) float64 { return minimiserShift(float64(p.People)) * perShift(p.Budget) }

// swaps bounds the length of a sum of m centred vectors of norm L, in units of L m, for one person in each of
// exp(logSets) sets of people, except with probability failure (Ghazi et al. 2023, Lemma 3.8).
func swaps(spread, m, logSets, failure float64) float64 {
	return 5 * spread * math.Sqrt((logSets+math.Log(1/failure))/m)
}

// deletionSensitivity returns the one sensitivity that is planned for where 4k people may go (Ghazi et al.
// 2023, Corollary 3.7), in units of L over the curvature.
func deletionSensitivity(p Public, m float64, k int) float64 {
	n := float64(p.People)
	left := n - 4*float64(k) - 1
	if left < 1 {
		return math.Inf(1)
	}
	return swaps(p.spread(), m, (4*float64(k)+1)*math.Log(n), p.failure()) / left
}

func deletionRatio(p Public) func(m float64) float64 {
	l, noise := calibratedLaw(p.Budget)
	return func(m float64) float64 { return noise * deletionSensitivity(p, m, l.Kappa()) / minimiserNoise(p) }
}

// paperDeletionRatio returns the ratio with the paper's noise, for a loss whose regulariser counts as its
// own: 2L.
func paperDeletionRatio(p Public) func(m float64) float64 {
	kappa, noise := paperDeletions(p.Budget)
	return func(m float64) float64 { return noise * 2 * deletionSensitivity(p, m, kappa) / minimiserNoise(p) }
}

// gradientScoreRatio returns the ratio of GradScoreOutputPert, of losses as smooth as the objective is curved
// where p has no ridge.
func gradientScoreRatio(p Public) func(m float64) float64 {
	return func(m float64) float64 {
		return gradientScoreNoise(p, concentration(p, m, float64(p.People)), farthest) / minimiserNoise(p)
	}
}

// gradientScoreNoise returns the least noise of GradScoreOutputPert, in units of L over the curvature, where
// nobody's gradient is further than most from the mean one.
func gradientScoreNoise(p Public, gamma, most float64) float64 {
	n, condition := float64(p.People), 1.0
	if p.Ridge > 0 {
		condition = p.Smoothness / p.Ridge
	}
	rho := (4*condition + 2) / n
	apart := scoredApart(p.People, func(k int) float64 { return min(gamma+float64(k)*rho*(1+n/(n-float64(k))), most) })
	_, noise := bestLaw(p.Budget, func(law) func(s, t int) float64 { return apart })
	return noise
}

// filterRatio returns the ratio of a filtered mean of everybody's gradients at one point, that any two are
// within a radius of each other.
func filterRatio(p Public) func(m float64) float64 {
	return filtered(p, spreadRadius(p.People&^1, 1, 1, p.failure()))
}

// groupRatio returns the ratio of everybody's own iterate after one pass of m steps, filtered, against phased
// SGD with one step a person (B1), whose steps all together go as far.
func groupRatio(p Public) func(m float64) float64 {
	return filtered(p, concentrated(p.People&^1, 1, p.failure()))
}

// filtered returns the ratio of a filtered mean of one vector a person, any two of which are within radius
// Spread/sqrt(m) of each other, against a mean of vectors of norm 1.
func filtered(p Public, radius float64) func(m float64) float64 {
	c, err := calibrateGroups(p.People&^1, 1, p.Budget, p.failure())
	if err != nil { // too few people
		return func(float64) float64 { return math.Inf(1) }
	}
	one := c.sigma * p.spread() * radius / (2 / float64(p.People) * perShift(p.Budget))
	return func(m float64) float64 { return one / math.Sqrt(m) }
}

// concentrated bounds the distance between any two iterates of groups, in all phases, except with probability
// failure, in units of eta L sqrt(steps).
func concentrated(groups, phases int, failure float64) float64 {
	c := float64(groups)
	return 2 / math.Sqrt(3) * (1 + math.Sqrt(math.Log(c*c*float64(phases)/(2*failure))))
}

// FilteredGradientNoise returns the noise of a coordinate of one filtered mean of everybody's gradients, in
// units of the clip norm, where so many rounds share the budget and one test (Lowy, Liu and Asi 2024,
// Algorithm 2, with everybody in every round); +Inf: too few people.
func FilteredGradientNoise(p Public, rounds int) float64 {
	people := p.People &^ 1
	t, err := calibrateThreshold(people, rounds, p.Budget, p.failure())
	if err != nil {
		return math.Inf(1)
	}
	return t.sigma * p.spread() * spreadRadius(people, p.Items, rounds, p.failure())
}
