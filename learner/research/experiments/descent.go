package main

import (
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A reporter writes a silo's answer to a point: an estimate of its mean gradient, or the point minus the point that the
// silo's own steps reached.
type reporter func(dst, at []float64, silo int) error

// A descent is Algorithm 2 of Lowy and Razaviyayn, ICLR 2023, without a constraint set, from the origin:
//
//	w_{r+1} = w_r - step/M * (what M silos answer to w_r),   r = 0 .. rounds-1
//
// where the M are drawn in every round. Its model is the mean of the last iterates, as in the scripts of that
// paper. With the answers of local steps and step 1 it is local SGD, FedAvg.
type descent struct {
	dim, rounds, last int
	step              float64
	reports           int // M
}

func (d descent) run(silos int, draw *rand.Rand, answer reporter) ([]float64, error) {
	at, one, sum, mean := make([]float64, d.dim), make([]float64, d.dim), make([]float64, d.dim), make([]float64, d.dim)
	for r := range d.rounds {
		clear(sum)
		for _, i := range draw.Perm(silos)[:d.reports] {
			if err := answer(one, at, i); err != nil {
				return nil, err
			}
			for j, v := range one {
				sum[j] += v
			}
		}
		for j, v := range sum {
			at[j] -= d.step * v / float64(d.reports)
			if r >= d.rounds-d.last {
				mean[j] += at[j] / float64(d.last)
			}
		}
	}
	return mean, nil
}

// A problem holds what silos report on: the loss of their rows, with the gradient of a row clipped to the
// norm clip.
type problem struct {
	loss     convex.Loss
	features int
	clip     float64
	silos    [][]convex.Example
}

func (p problem) dim() int { return p.loss.Parameters(p.features) }

func (p problem) exact() (*report.Exact, error) {
	return report.NewExact(report.Config{Features: p.features, Loss: p.loss, ClipNorm: p.clip})
}

// means returns a reporter of mean gradients: each report takes a fresh batch of rows without replacement
// (all rows where batch is 0), and Gaussian noise of the given standard deviation is added to each
// coordinate.
func (p problem) means(batch int, noise float64, draw *rand.Rand) (reporter, error) {
	exact, err := p.exact()
	if err != nil {
		return nil, err
	}
	return func(dst, at []float64, silo int) error {
		rows := p.silos[silo]
		if batch > 0 && batch < len(rows) {
			rows = draws(rows, batch, draw)
		}
		if err := exact.At(at, nil); err != nil {
			return err
		}
		copy(dst, exact.Mean(block.Of(rows...)))
		disturb(dst, noise, draw)
		return nil
	}, nil
}

// draws returns k of the rows, without replacement.
func draws(rows []convex.Example, k int, draw *rand.Rand) []convex.Example {
	out := make([]convex.Example, k)
	for i, at := range draw.Perm(len(rows))[:k] {
		out[i] = rows[at]
	}
	return out
}

func disturb(v []float64, noise float64, draw *rand.Rand) {
	if noise == 0 {
		return
	}
	for j := range v {
		v[j] += noise * draw.NormFloat64()
	}
}

// reports returns the system's own reporter: the mean gradient of all of a silo's rows by the randomizer of
// trust local, decoded. The mechanism is the one for the smallest silo; in a larger one a row shifts a report
// by less.
func (p problem) reports(m accounting.Plan, entropy rand.Source) (reporter, error) {
	base := randomizer.Params{Dim: p.dim(), ClipNorm: p.clip, Levels: uint32(m.Levels), Trials: uint32(m.Trials),
		Coin: randomizer.Fair}
	base.Window = uint32(randomizer.WindowOf(m.Trials, 1))
	makers, params := map[int]*report.Maker{}, map[int]randomizer.Params{}
	var packed []byte
	return func(dst, at []float64, silo int) error {
		rows := p.silos[silo]
		of := len(rows)
		if makers[of] == nil {
			own := base
			own.Units = uint64(of)
			made, err := report.New(report.Config{Features: p.features, Loss: p.loss, ClipNorm: p.clip}, own, entropy)
			if err != nil {
				return err
			}
			makers[of], params[of] = made, own
		}
		if err := makers[of].At(at, nil); err != nil {
			return err
		}
		packed = makers[of].Report(packed[:0], block.Of(rows...))
		own := params[of]
		counts, err := own.Unpack(nil, packed)
		if err != nil {
			return err
		}
		totals := make([]uint64, len(counts))
		for j, c := range counts {
			totals[j] = uint64(c)
		}
		e, err := method.EstimateMean(own, totals, 1, own.NoiseTrials(1, 0))
		if err != nil {
			return err
		}
		copy(dst, e.Gradient)
		return nil
	}, nil
}
