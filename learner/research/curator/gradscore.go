package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A gradscore releases a minimiser over the people whose gradients there are not outliers, if there are at most a
// secret number of outliers (docs/proofs/curator.md, GradScore). The score k of people is the smallest for which no
// more than k of them have a gradient further than thresholds[k] from the mean one.
type gradscore struct {
	*solver
	scored
	lambda     float64
	people     int
	gamma, rho float64
	thresholds []float64 // of k = 0, ..., Rmax
}

// newGradscore returns a gradscore of a planned law; its lattice is to be calibrated.
func newGradscore(p Public, lambda float64, people int, l law) (*gradscore, error) {
	s, err := newSolver(p, lambda+p.Ridge, people)
	if err != nil {
		return nil, err
	}
	if least := leastDeletions(l); people < least {
		return nil, &TooFewError{People: people, Least: least}
	}
	g := &gradscore{solver: s, lambda: lambda, people: people}
	g.scored = scored{deletions: l, radius: s.ball(), ratio: func(s, t int) float64 {
		return g.apart(s, t) / (2 * g.radius) * (1 + 0x1p-40)
	}}
	n := float64(people)
	g.gamma = concentration(p, float64(p.Items), n) * p.lipschitz()
	g.rho = (4*p.smoothness()/s.weight + 2) * p.lipschitz() / n * (1 + 0x1p-40)
	step := (g.rho+2*g.unsure())*(1+0x1p-30) + g.gamma*0x1p-48 // the last for the thresholds' own rounding
	g.thresholds = make([]float64, 2*l.Kappa()+1)
	for k := range g.thresholds {
		g.thresholds[k] = g.gamma + float64(float64(k)*step)
	}
	return g, nil
}

// concentration returns gamma in units of L, for people of m rows: no gradient is further from the mean one,
// except with the probability Failure, if rows are exchangeable. It is at most farthest, which always holds.
func concentration(p Public, m, people float64) float64 {
	return min(swaps(p.spread(), m, math.Log(people), p.failure()), farthest)
}

// farthest bounds the distance of a person's gradient from the mean gradient of a set of people with that
// person in it, in units of L: no two gradients are further apart.
const farthest = 2.0

// unsure bounds how far a computed distance of a person's gradient from the mean one is from that at the exact
// minimiser.
func (s *solver) unsure() float64 {
	return (2*s.public.smoothness()*s.xi + 2*s.wrong + (float64(s.public.Dim)+16)*0x1p-51*s.public.lipschitz()) * (1 +
		0x1p-40)
}

// inlier bounds the distance between the gradient of a person who is no outlier at score k and the mean gradient, both
// at the minimiser without outliers.
func (g *gradscore) inlier(k int) float64 {
	n := float64(g.people)
	return min(g.thresholds[k]+g.unsure()+float64(k)*g.rho*n/(n-float64(k)), farthest*g.public.lipschitz()) * (1 + 0x1p-40)
}

// scoredApart bounds the distance between the minimisers without outliers of two neighbours with scores s and t, for
// strong convexity 1 (docs/proofs/curator.md, GradScore).
func scoredApart(people int, inlier func(k int) float64) func(s, t int) float64 {
	return func(s, t int) float64 {
		left := people - s - t - 1
		if left < 1 {
			return math.Inf(1)
		}
		return (float64(t+1)*inlier(s) + float64(s+1)*inlier(t)) / float64(left)
	}
}

// apart bounds the distance between the released answers of two neighbours with scores s and t.
func (g *gradscore) apart(s, t int) float64 {
	return (scoredApart(g.people, g.inlier)(s, t)/g.weight + 2*g.xi) * (1 + 0x1p-30)
}

// release does the work of both solves, and draws deletions and noise, whatever the score is.
func (g *gradscore) release(ctx context.Context, t *table, c []float64, people []int, entropy rand.Source) ([]float64,
	bool, error) {
	deletions := g.deletions.Sample(entropy)
	middle := g.public.middle(g.lambda, c)
	x, err := g.minimiser(ctx, t, middle, people, nil)
	if err != nil {
		return nil, false, err
	}
	k, keep := g.score(g.far(t, x, people))
	if x, err = g.minimiser(ctx, t, middle, people, keep); err != nil {
		return nil, false, err
	}
	return x, k <= deletions, g.publish(x, middle, g.lattice, entropy)
}

// far returns the distance of each person's gradient at x from the people's mean gradient.
func (s *solver) far(t *table, x []float64, people []int) []float64 {
	mean, g := make([]float64, len(x)), make([]float64, len(x))
	t.mean(mean, x, g, people, nil)
	far := make([]float64, len(people))
	for k, i := range people {
		t.gradient(g, x, i)
		for j, v := range mean {
			g[j] -= v
		}
		far[k] = convex.Norm(g)
	}
	return far
}

// score returns the outlier score of people at these distances from the mean gradient, and reports for each
// whether they are kept. Above Rmax the score is Rmax + 1, and everybody is kept.
func (g *gradscore) score(far []float64) (score int, keep []bool) {
	score, threshold := len(g.thresholds), math.Inf(1)
	for k, most := range g.thresholds {
		outliers := 0
		for _, v := range far {
			if v > most {
				outliers++
			}
		}
		if outliers <= k && k < score {
			score, threshold = k, most
		}
	}
	keep = make([]bool, len(far))
	for i, v := range far {
		keep[i] = v <= threshold
	}
	return score, keep
}

// plannedNoise estimates the noise of a gradscore with distances s+t+2 by the noise for the distance at the middle of
// the law.
func plannedNoise(p Public, lambda float64, people int, l law, perDistance float64) float64 {
	g, err := newGradscore(p, lambda, people, l)
	if err != nil {
		return math.Inf(1)
	}
	k := l.Kappa()
	return perDistance * g.apart(k, k) / perDeletion(k, k)
}

// bestGradscore returns a calibrated gradscore, with the law of the least planned noise for its distances.
func bestGradscore(p Public, b accounting.Budget, lambda float64, people int) (*gradscore,
	error) {
	l, noise := bestLaw(b, func(l law) func(s, t int) float64 {
		g, err := newGradscore(p, lambda, people, l)
		if err != nil {
			return func(_, _ int) float64 { return math.Inf(1) }
		}
		return g.apart
	})
	if math.IsInf(noise, 1) {
		l, _ = calibratedLaw(b)
	}
	g, err := newGradscore(p, lambda, people, l)
	if err != nil {
		return nil, err
	}
	return g, g.calibrate(p.Dim, b)
}

// notes returns the constants as they are printed.
func (g *gradscore) notes() []string {
	std, _ := g.cost()
	notes := []string{
		fmt.Sprintf("lambda %.4g, %d steps to within %.3g of the minimiser, twice", g.lambda, g.steps, g.xi),
		fmt.Sprintf("gamma %.4g, rho %.4g, kappa %d at rate %.4g", g.gamma, g.rho, g.deletions.Kappa(), g.deletions.Rate()),
		fmt.Sprintf("noise %.4g: %d trials on %d levels; a person as one item would have %.4g", std, g.lattice.trials,
			g.lattice.levels, g.asItem()),
	}
	if g.gamma >= farthest*g.public.lipschitz() {
		notes = append(notes,
			fmt.Sprintf(
				"the score is vacuous: no gradient of so few rows (%d) counts as one that stands out: output has less noise",
				g.public.Items))
	}
	return notes
}

// asItem returns the noise of the baseline for the same weight and budget, about.
func (g *gradscore) asItem() float64 { return noisePerMove(g.public.Budget) * g.moves(g.people) }

// gradscoreRisk returns outputRisk plus the risk of a halt, which leaves the start.
func gradscoreRisk(p Public, lambda float64, people int, std, xi float64) float64 {
	return outputRisk(p, lambda, p.Set.Radius(), people, std, xi) + p.failure()*p.steepest()*p.Set.Radius()
}

// leastGradscore returns the fewest people for which the deletions of the calibrated law exist.
func leastGradscore(p Public) int {
	l, _ := calibratedLaw(p.Budget)
	return leastDeletions(l)
}

// planGradscore returns a plan of one release, with the weight of the smallest planned bound.
func planGradscore(p Public) (*Plan, error) {
	if least := leastGradscore(p); p.People < least {
		return nil, &TooFewError{"gradscore", p.People, least}
	}
	l, noise := calibratedLaw(p.Budget)
	lambda := argmin(p.lightest(), p.heaviest(), func(lambda float64) float64 {
		return gradscoreRisk(p, lambda, p.People, plannedNoise(p, lambda, p.People, l, noise), 0)
	})
	g, err := bestGradscore(p, p.Budget, lambda, p.People)
	if err != nil {
		return nil, err
	}
	std, _ := g.cost()
	return inTurns("gradscore", p, halves(p.People, 1), []turn{g}, gradscoreRisk(p, lambda, p.People, std, g.xi),
		g.notes()...), nil
}
