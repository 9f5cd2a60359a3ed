package curator

import "math"

// The bounds of this file are on the expected excess risk of phased methods on new rows, in units of L times
// the distance of the best model from the start, with Gaussian noise. They are planning figures for any
// number of people and items; a method's Plan bounds the same risk for its own lattice and solver. First
// weights, step sizes and numbers of phases and groups are chosen for the smallest bound.

// mostBoundPhases returns how many of the parts n/2, n/4, ... of n people are not empty.
func mostBoundPhases(n float64) int { return mostHalves(int(n)) }

// leastOver returns the smallest value over a first weight or step size, and numbers of phases.
func leastOver(n float64, bound func(first float64, phases int) float64) float64 {
	best := math.Inf(1)
	for phases := 1; phases <= mostBoundPhases(n); phases++ {
		at := bound(argmin(1e-9, 1e6, func(x float64) float64 { return bound(x, phases) }), phases)
		if math.IsInf(at, 1) {
			break // phases have become too small
		}
		best = min(best, at)
	}
	return best
}

// minimisersBound bounds the risk of phases of a half, a quarter, ... of n people, each of which releases a
// minimiser with noise(people)/weight in each coordinate; weights grow by 4 a phase, and a minimiser over
// rows is worse on new ones by stability/(weight people m).
func minimisersBound(n, m, d, stability float64, noise func(people float64) float64) float64 {
	phases := mostBoundPhases(n)
	perWeight := make([]float64, phases+1)
	for i := range perWeight {
		perWeight[i] = noise(n / math.Exp2(float64(i)))
	}
	return leastOver(n, func(weight float64, phases int) float64 {
		sum, off := 0.0, 1.0
		for i := 1; i <= phases; i++ {
			people := n / math.Exp2(float64(i))
			sum += weight*min(1, off*off)/2 + stability/(weight*people*m)
			off = math.Sqrt(d) * perWeight[i] / weight
			weight *= 4
		}
		return sum + off
	})
}

// stepsBound bounds the risk of one pass of projected gradient steps over phases of a half, a quarter, ... of
// n people: so many steps a phase, and noise(people) over the step size in each coordinate of its release.
// Step sizes fall by the best of some factors a phase.
func stepsBound(n, d float64, steps, noise func(people float64) float64) float64 {
	best := math.Inf(1)
	for _, factor := range []float64{4, 8, 16} {
		best = min(best, leastOver(n, func(size float64, phases int) float64 {
			sum, off := 0.0, 1.0
			for i := 1; i <= phases; i++ {
				people := n / math.Exp2(float64(i))
				if steps(people) < 1 {
					return math.Inf(1)
				}
				sum += min(1, off*off)/(2*size*steps(people)) + size/2
				off = math.Sqrt(d) * noise(people) * size
				size /= factor
			}
			return sum + off
		}))
	}
	return best
}

// PersonBound returns the bound of phased minimisers, a person as one item (B0).
func PersonBound(p Public) float64 {
	shift := perShift(p.Budget)
	return minimisersBound(float64(p.People), float64(p.Items), float64(p.Dim), 4,
		func(n float64) float64 { return minimiserShift(n) * shift })
}

// StepBound returns the bound of phased gradient descent, one step a person (B1).
func StepBound(p Public) float64 {
	shift := perShift(p.Budget)
	return stepsBound(float64(p.People), float64(p.Dim), func(n float64) float64 { return n },
		func(float64) float64 { return 2 * shift })
}

// GroupBound returns the bound of groups that step by themselves (Lowy, Liu and Asi 2024, Algorithm 1),
// calibrated.
func GroupBound(p Public) float64 {
	n, m, best := float64(p.People), float64(p.Items), math.Inf(1)
	for c := leastGroups(p.Budget, p.failure()); c <= p.People; c += 2 * (1 + c/8) {
		calibrated, _ := calibrateGroups(c, 1, p.Budget, p.failure())
		size := func(people float64) float64 { return math.Floor(people/float64(c)) * m }
		best = min(best, stepsBound(n, float64(p.Dim), size, func(people float64) float64 {
			return calibrated.sigma * concentrated(c, mostBoundPhases(n), p.failure()) * p.spread() * math.Sqrt(size(people))
		}))
	}
	return best
}
