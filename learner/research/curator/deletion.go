package curator

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// mostDeletable is the largest number of people whose subsets are all looked at: the method is exponential in it.
const mostDeletable = 14

// A stability holds all that Algorithm 1 of Ghazi et al. 2023 (DelOutputPert) needs to know about a function of people:
// how its value changes without each set of people. Bits encode sets. It is the exact reference for any deterministic
// function of few people: it looks at every set.
type stability struct {
	people int
	// edges[S] is how far leaving out one more moves the value without S at most, and above[S] the largest edge of
	// S and its supersets of up to level people.
	above []float64
}

// newStability looks at the values of all sets of up to level+1 people. Level is Lv of the paper: so many are left out
// at most before the last one.
func newStability(people, level int, value func(without uint) []float64) *stability {
	sets := uint(1) << people
	values := make([][]float64, sets)
	for s := range sets {
		if bits.OnesCount(s) <= level+1 {
			values[s] = value(s)
		}
	}
	above := make([]float64, sets)
	for s := range sets {
		if bits.OnesCount(s) <= level {
			for i := range people {
				if s&(1<<i) == 0 {
					above[s] = max(above[s], apart(values[s], values[s|1<<i]))
				}
			}
		}
	}
	for i := range people {
		for s := range sets {
			if s&(1<<i) == 0 {
				above[s] = max(above[s], above[s|1<<i])
			}
		}
	}
	return &stability{people: people, above: above}
}

// apart returns the distance of two points; NaN, which is far, is +Inf.
func apart(x, y []float64) float64 {
	var sum float64
	for j := range x {
		d := x[j] - y[j]
		sum += float64(d * d)
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return math.Sqrt(sum)
}

// score returns s*, the size of the smallest set of at most so many people without whom no further deletion,
// up to the level, moves the value by more than sensitivity, and that set; of several the first in
// lexicographic order. Where there is none it returns most + 1 and the empty set. The sets that it looks at
// do not depend on the values.
func (s *stability) score(most int, sensitivity float64) (score int, without uint) {
	score = most + 1
	for set := range uint(1) << s.people {
		size := bits.OnesCount(set)
		first := size < score || size == score && (set^without)&-(set^without)&set != 0
		if size <= most && first && s.above[set] <= sensitivity {
			score, without = size, set
		}
	}
	return score, without
}

// A deletion releases a minimiser by DelOutputPert: the reference for what gradscore is a polynomial form of (Ghazi
// et al. 2023, Algorithm 2, SCOutputPert).
type deletion struct {
	*solver
	scored
	lambda      float64
	sensitivity float64 // Delta: public, any number is private
}

// newDeletion returns a deletion that is calibrated within the budget.
func newDeletion(p Public, b accounting.Budget, lambda float64, people int, l law) (*deletion,
	error) {
	if least := leastDeletions(l); people < least {
		return nil, &TooFewError{People: people, Least: least}
	}
	if people > mostDeletable {
		return nil, fmt.Errorf("%d people, of whom all subsets are looked at: want at most %d", people, mostDeletable)
	}
	s, err := newSolver(p, lambda+p.Ridge, people)
	if err != nil {
		return nil, err
	}
	d := &deletion{solver: s, lambda: lambda}
	q := p
	q.People = people
	d.sensitivity = deletionSensitivity(q, float64(p.Items), l.Kappa()) * p.Lipschitz / s.weight
	d.scored = scored{deletions: l, radius: s.ball(), ratio: d.ratio}
	return d, d.calibrate(p.Dim, b)
}

// ratio returns the ratio for values (s + t + 2) Delta apart, which were computed once, so that only the
// rounding of their differences counts.
func (d *deletion) ratio(s, t int) float64 {
	return (perDeletion(s, t)*d.sensitivity + float64(d.public.Dim+24)*d.public.Set.Radius()*0x1p-50) / (2 * d.radius) * (1 + 0x1p-20)
}

func (d *deletion) release(ctx context.Context, t *table, c []float64, people []int, entropy rand.Source) ([]float64,
	bool, error) {
	deletions := d.deletions.Sample(entropy)
	middle, most := d.public.middle(d.lambda, c), 2*d.deletions.Kappa()
	var err error
	without := func(set uint) []float64 {
		keep := make([]bool, len(people))
		for i := range keep {
			keep[i] = set&(1<<i) == 0
		}
		x, e := d.minimiser(ctx, t, middle, people, keep)
		if e != nil {
			err = e
			return middle
		}
		return x
	}
	score, set := newStability(len(people), 2*most, without).score(most, d.sensitivity)
	x := without(set)
	if err != nil {
		return nil, false, err
	}
	return x, score <= deletions, d.publish(x, middle, d.lattice, entropy)
}

// deletionLaw returns the law with the fewest deletions that the budget has room for, and leastDeletion where
// they exist.
func deletionLaw(b accounting.Budget) law {
	best, _ := calibratedLaw(b)
	for i := 4; i < 20; i++ {
		if l := smallestLaw(b.Epsilon*float64(i)/20, b.Delta); leastDeletions(l) < leastDeletions(best) {
			best = l
		}
	}
	return best
}

func leastDeletion(p Public) int { return leastDeletions(deletionLaw(p.Budget)) }

// planDeletion returns a plan of one release by exhaustive search, of few people.
func planDeletion(p Public) (*Plan, error) {
	l := deletionLaw(p.Budget)
	if least := leastDeletions(l); p.People < least {
		few := &TooFewError{"deletion", p.People, least}
		if least > mostDeletable {
			return nil,
				fmt.Errorf(
					"%w, and it looks at all subsets of at most %d: no number will do for this epsilon and delta; gradscore is its polynomial form", few, mostDeletable)
		}
		return nil, few
	}
	if p.People > mostDeletable {
		return nil,
			fmt.Errorf(
				"deletion: %d people, of whom all subsets are looked at: want at most %d; gradscore is its polynomial form",
				p.People, mostDeletable)
	}
	at, below := l.Survival()
	noise, err := accounting.DeletionNoise(p.Budget, at, below, perDeletion)
	if err != nil {
		return nil, err
	}
	lambda := argmin(p.lightest(), p.heaviest(), func(lambda float64) float64 {
		std := noise * deletionSensitivity(p, float64(p.Items), l.Kappa()) * p.Lipschitz / (lambda + p.Ridge)
		return gradscoreRisk(p, lambda, p.People, std, 0)
	})
	d, err := newDeletion(p, p.Budget, lambda, p.People, l)
	if err != nil {
		return nil, err
	}
	std, _ := d.cost()
	kappa, paper := paperDeletions(p.Budget)
	return inTurns("deletion", p, halves(p.People, 1), []turn{d}, gradscoreRisk(p, lambda, p.People, std, d.xi),
		fmt.Sprintf("lambda %.4g, sensitivity %.4g, kappa %d at rate %.4g, level %d", lambda, d.sensitivity, l.Kappa(),
			l.Rate(), 4*l.Kappa()),
		fmt.Sprintf("noise %.4g; the paper's constants: kappa %d, sigma %.6g times the sensitivity", std, kappa, paper)), nil
}
