package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A law is the distribution of the largest score that is released, in deletions. The zero value is no law.
type law = randomizer.TruncatedLaplace

// perDeletion returns the distance between neighbours of scores s and t, in units of the shift that one
// deletion causes.
func perDeletion(s, t int) float64 { return float64(s + t + 2) }

// calibratedLaw returns the law with the least Gaussian noise, and that noise, where neighbours are
// perDeletion apart.
func calibratedLaw(b accounting.Budget) (law, float64) {
	return bestLaw(b, func(law) func(s, t int) float64 { return perDeletion })
}

// bestLaw returns the law with the least Gaussian noise, and that noise, where apart returns the distance between
// neighbours of scores s and t. It returns the zero law and +Inf if no law is within the budget.
func bestLaw(b accounting.Budget, apart func(law) func(s, t int) float64) (law, float64) {
	l, noise, err := accounting.CalibrateDeletions(b, apart)
	if err != nil {
		return law{}, math.Inf(1)
	}
	return l, noise
}

// smallestLaw returns the law of a rate with the fewest deletions whose two ends have no more mass than delta each, or
// the zero law if there is none.
func smallestLaw(rate, delta float64) law {
	l, err := randomizer.LaplaceOfRate(rate)
	if err != nil {
		return law{}
	}
	out, err := randomizer.NewTruncatedLaplace(l, accounting.LeastKappa(l, delta))
	if err != nil {
		return law{}
	}
	return out
}

// leastDeletions returns the fewest people from whom 4 kappa + 1 can be deleted so that one stays: two
// neighbours with 2 kappa deletions each, and the person in whom they differ. For no law it is math.MaxInt32:
// no number is enough.
func leastDeletions(l law) int {
	if l == (law{}) {
		return math.MaxInt32
	}
	return leastOfKappa(l.Kappa())
}

func leastOfKappa(kappa int) int { return 4*kappa + 2 }

// paperDeletions returns kappa of Ghazi et al. 2023, Algorithm 1, whose law is on {0, ..., 2 kappa}, and its
// noise over the sensitivity, for a budget that is one.
func paperDeletions(b accounting.Budget) (kappa int, noise float64) {
	kappa, noise, err := accounting.PaperDeletions(b)
	if err != nil {
		return math.MaxInt32, math.Inf(1)
	}
	return kappa, noise
}
