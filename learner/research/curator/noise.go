package curator

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A lattice holds the parameters of releasing a vector of a ball: each coordinate is snapped, rounded to
// 0..levels, and Bin(trials, 1/2) is added to it.
type lattice struct {
	dim, levels int
	trials      uint64
}

// mechanism describes this many releases for neighbours whose vectors, as they are in memory, are at most
// ratio of the ball's diameter apart.
func (l lattice) mechanism(ratio float64, rounds int) accounting.Mechanism {
	return accounting.Mechanism{Trials: l.trials, P: 0.5, Levels: l.levels, Dim: l.dim, Rounds: rounds,
		Shift: randomizer.Shift(l.levels, ratio, l.dim)}
}

func (l lattice) params(ball float64) randomizer.Params {
	return randomizer.Params{Dim: l.dim, ClipNorm: ball, Levels: uint32(l.levels), Trials: uint32(l.trials), Units: 1,
		Minimizer: true, Coin: randomizer.Fair}
}

// curve returns the privacy curve of this many releases. If they form no mechanism it is the zero curve,
// which promises nothing.
func (l lattice) curve(ratio float64, rounds int) accounting.Curve {
	c, _ := accounting.Compose(l.mechanism(ratio, rounds))
	return c
}

// std bounds the standard deviation of one coordinate of the release of a vector in a ball of this radius, rounding
// included.
func (l lattice) std(ball float64) float64 {
	v := l.params(ball).Variance(1, l.trials)
	return math.Sqrt(v.Privacy + v.RoundingMax)
}

// release overwrites x, a vector from the centre of the ball, with its release: clipped to the ball, and with noise.
func (l lattice) release(x []float64, ball float64, entropy rand.Source) error {
	r, err := l.open(ball, entropy)
	if err != nil {
		return err
	}
	return r.release(x)
}

// A releaser releases vectors of one ball, one after the other.
type releaser struct {
	sum    *randomizer.VectorSum
	trials uint64
}

func (l lattice) open(ball float64, entropy rand.Source) (*releaser, error) {
	v, err := randomizer.NewVectorSum(l.params(ball), entropy)
	if err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	return &releaser{v, l.trials}, nil
}

// release replaces x by its noisy value on the lattice.
func (r *releaser) release(x []float64) error {
	counts, err := r.sum.Encode(nil, x)
	if err != nil {
		return fmt.Errorf("noise: %w", err)
	}
	totals := make([]uint64, len(counts))
	for j, c := range counts {
		totals[j] = uint64(c)
	}
	_, err = r.sum.Params().Decode(x, totals, 1, r.trials)
	return err
}

// smallest returns a lattice of few trials whose delta was evaluated to be at most most, and that delta, for a
// shift of ratio of the ball's diameter: about 32 levels a shift, where rounding and small laws add little. That
// more trials are enough where fewer are is used for speed alone. A ball that nothing can be released of is refused
// here, before anything is charged.
func smallest(dim int, ball, ratio, most float64, delta func(lattice) float64) (l lattice, spent float64, err error) {
	if err := (lattice{dim, 32, 2}).params(ball).Validate(); err != nil {
		return l, 1, fmt.Errorf("noise: %w", err)
	}
	if !(ratio > 0) {
		return l, 1, fmt.Errorf("noise: a shift of %v of the ball: want a number above 0", ratio)
	}
	levels := int(math.Ceil(min(max(32/ratio, 32), randomizer.MaxLevels/2)))
	enough := func(half uint64) bool {
		at := lattice{dim, levels, 2 * half}
		d := delta(at)
		if d <= most {
			l, spent = at, d
		}
		return d <= most
	}
	const limit = accounting.MaxTrials/2 - 1
	lo, hi := uint64(0), uint64(1)
	for !enough(hi) {
		if hi == limit {
			return l, 1, fmt.Errorf("noise: %d trials on %d levels are not enough", 2*limit, levels)
		}
		lo, hi = hi, min(2*hi, limit)
	}
	for hi-lo > 1+hi/4096 {
		if mid := lo + (hi-lo)/2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return l, spent, nil
}

// cheapest calls smallest for one release within a budget.
func cheapest(dim int, ball, ratio float64, b accounting.Budget) (lattice, float64, error) {
	return smallest(dim, ball, ratio, b.Delta, func(l lattice) float64 { return l.curve(ratio, 1).Delta(b.Epsilon) })
}
