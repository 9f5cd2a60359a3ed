package practical

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	labelWeight = 3   // of a number's label and its square, relative to the features
	numberCut   = 0.6 // clip of a report of moments, as a share of its largest norm
	featureCut  = 0.5 // the same for classes, for the features that are no indicators
)

// MomentsDim returns the number of coordinates that a user of the first cohort reports.
func (p Problem) MomentsDim() int {
	s := p.shape()
	return s.Features + s.numbers + s.labelDim()
}

func (s shape) labelDim() int {
	switch s.traits.Labels {
	case convex.TwoClasses:
		return 1
	case convex.ManyClasses:
		return s.Loss.Classes
	}
	return 2
}

// MomentsNorm returns the norm that a report of moments is clipped to.
func (p Problem) MomentsNorm() float64 {
	s := p.shape()
	square := float64(s.Bound * s.Bound)
	if s.classes == 0 {
		return numberCut * math.Sqrt(square+2*labelWeight*labelWeight)
	}
	numbers := square
	if s.numbers < s.Features {
		numbers = min(square, float64(s.numbers)) // numbers are commonly scaled to [-1, 1]
	}
	return math.Sqrt(square + 1 - float64((1-featureCut*featureCut)*numbers))
}

// Moments overwrites dst, of length MomentsDim, with the moments of a row, before they are clipped: the
// features, the squares of those that are no indicators, and the label: a unit vector for one of several
// classes, -1 or +1 for one of two, 3 y and 3 y^2 for a number in its range as [-1, 1] or for a count as a
// share of the largest.
func (p Problem) Moments(dst []float64, x convex.Example) {
	s := p.shape()
	clear(dst)
	for k, v := range x.Value {
		j := k
		if x.Index != nil {
			j = int(x.Index[k])
		}
		if j < s.Features {
			dst[j] = v
		}
	}
	at := s.Features
	for j, v := range dst[:s.Features] {
		if !s.indicator(j) {
			dst[at] = v * v
			at++
		}
	}
	label := dst[at:]
	switch s.traits.Labels {
	case convex.TwoClasses:
		label[0] = x.Label
	case convex.ManyClasses:
		label[int(x.Label)] = 1
	default:
		y := min(max((x.Label-s.middle)/s.half, -1), 1) // of a count in [0, 1]
		label[0], label[1] = labelWeight*y, labelWeight*y*y
	}
}

// released are the parts of a mean of moments, and the noise of each number in it.
type released struct {
	mean   []float64 // of the features
	square []float64 // of the features; for indicators the mean
	label  []float64
	sd     float64
}

// split returns the parts of a released mean. Means of clipped vectors are no longer than the clip, and noise is rarely
// far beyond its deviation; a longer vector, which only a faulty release has, is shortened.
func (s shape) split(mean []float64, sd float64) (released, error) {
	if err := checkReleased(mean, sd, s.MomentsDim()); err != nil {
		return released{}, err
	}
	sd = min(sd, convex.MaxScale)
	most := s.MomentsNorm() + 10*sd
	out := released{mean: make([]float64, s.Features), square: make([]float64, s.Features), label: make([]float64,
		s.labelDim()), sd: sd}
	cut := func(i int) float64 { return min(max(mean[i], -most), most) }
	at := s.Features
	for j := range s.Features {
		out.mean[j] = cut(j)
		if out.square[j] = out.mean[j]; !s.indicator(j) {
			out.square[j] = cut(at)
			at++
		}
	}
	for i := range out.label {
		out.label[i] = cut(at + i)
	}
	return out, nil
}

func checkReleased(mean []float64, sd float64, dim int) error {
	if len(mean) != dim {
		return fmt.Errorf("practical: %d released numbers, want %d", len(mean), dim)
	}
	if !(sd >= 0) || math.IsInf(sd, 0) {
		return fmt.Errorf("practical: noise %v, want a finite number of at least 0", sd)
	}
	for i, v := range mean {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("practical: released number %d is not finite", i)
		}
	}
	return nil
}
