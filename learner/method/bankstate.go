package method

import (
	"bytes"
	"fmt"
	"math"
)

// bankWords is the number of words of a bank's state before its filters.
const bankWords = 19

// words returns the numbers of the bank, without its filters and the vectors of the last secant.
func (b *Bank) words() []float64 {
	return []float64{b.curvature, b.num, b.den, b.residual, float64(b.cohort),
		b.users, float64(bit(b.calm)), b.surprise, b.gain, b.memory, b.last.variance, b.last.kappa, b.last.noise,
		b.since[0].own, b.since[0].noise, b.since[0].curvature, b.since[1].own, b.since[1].noise, b.since[1].curvature}
}

// MarshalBinary returns the state, see learner.Algorithm. The header is followed by bankWords numbers; then, for
// intercepts and then for weights, the variances, the weights, the likelihoods and the points of the filters; and,
// after the first step, the point and the gradient of the last step.
func (b *Bank) MarshalBinary() ([]byte, error) {
	out := AppendFloats(b.header().append(nil), b.words()...)
	for _, f := range [...]*filters{&b.intercepts, &b.weights} {
		for _, part := range f.parts() {
			out = AppendFloats(out, part...)
		}
	}
	return AppendFloats(AppendFloats(out, b.last.point...), b.last.gradient...), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (b *Bank) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, b.header())
	if err != nil {
		return err
	}
	dim := len(b.start)
	want := bankWords + b.intercepts.size() + b.weights.size()
	if h.count > 0 {
		want += 2 * dim
	}
	if len(rest) != 8*want || h.count > b.steps || h.other > b.steps-h.count {
		return fmt.Errorf("%w: %d bytes after %d steps, want %d", ErrState, len(rest), h.count, 8*want)
	}
	words := Floats(rest)
	for _, x := range words {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: a number of the bank is not finite", ErrState)
		}
	}
	out := *b
	out.taken, out.skipped = h.count, h.other
	w, rest64 := words[:bankWords], words[bankWords:]
	out.curvature, out.num, out.den, out.residual = w[0], w[1], w[2], w[3]
	out.cohort, out.users, out.calm, out.surprise, out.gain, out.memory = uint64(max(w[4], 0)), w[5], w[6] == 1, w[7],
		w[8], w[9]
	out.last = secant{variance: w[10], kappa: w[11], noise: w[12]}
	out.since = [2]past{{w[13], w[14], w[15]}, {w[16], w[17], w[18]}}
	for _, f := range [...]*filters{&out.intercepts, &out.weights} {
		if rest64, err = f.read(rest64); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if h.count > 0 {
		out.last.point, out.last.gradient = rest64[:dim], rest64[dim:]
	}
	same := bytes.Equal(AppendFloats(nil, out.words()...), rest[:8*bankWords])
	if l := b.cfg.Layout; !same || out.cohort < l.Base || out.cohort > l.Top ||
		out.curvature < b.cfg.Stream.Curvature ||
		!(out.residual >= leastResidual && out.residual <= mostResidual) || !(out.gain >= 0 && out.gain <= 1) {
		return fmt.Errorf("%w: cohort %d, curvature %v, residual %v, gain %v", ErrState, out.cohort, out.curvature,
			out.residual, out.gain)
	}
	*b = out
	return nil
}

// parts returns the numbers of the filters that steps change.
func (f *filters) parts() [4][]float64 { return [4][]float64{f.variance, f.weight, f.raw, f.points} }

func (f *filters) size() (n int) {
	for _, part := range f.parts() {
		n += len(part)
	}
	return n
}

// read replaces the numbers that parts returns, and returns the remaining words.
func (f *filters) read(words []float64) ([]float64, error) {
	n := len(f.walk)
	take := func(k int) (part []float64) {
		part, words = words[:k], words[k:]
		return part
	}
	f.variance, f.weight, f.raw, f.points = take(n), take(n), take(n), take(n*f.dim)
	for j := range n {
		if !(f.variance[j] >= 0) || !(f.weight[j] > 0 && f.weight[j] <= 1) || !(f.raw[j] >= 0 && f.raw[j] <= 1) {
			return nil, fmt.Errorf("filter %d: variance %v, weights %v and %v", j, f.variance[j], f.weight[j], f.raw[j])
		}
	}
	return words, nil
}
