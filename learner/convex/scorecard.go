package convex

import (
	"fmt"
	"math"
)

// A Scorecard declares how a device writes a point's scores on its own event into coordinates of their own: the loss
// and, for labels that are classes, whether the class was predicted. These coordinates are reported after the gradient
// at the same point. Averages of them are progressive validation (Blum, Kalai, Langford, Beating the Hold-Out, COLT
// 1999): every event tests the point before the point is updated with it.
//
// The block of one event has norm at most Norm, whatever the event, so a report of a gradient of norm at most L
// has norm at most Joined(L). All fields are public.
type Scorecard struct {
	Norm        float64 `json:"norm"` // w of the whole block, in units of the gradient
	Low         float64 `json:"low"`  // losses are moved into [Low, High]
	High        float64 `json:"high"`
	Correctness bool    `json:"correctness,omitempty"` // a second coordinate shows whether the class was predicted
	// LabelNoise is the known probability, below 1/2, that the compared label is flipped.
	LabelNoise float64 `json:"label_noise,omitempty"`
}

// Validate names the first field that is out of range.
func (s Scorecard) Validate() error {
	switch {
	case !(s.Norm > 0) || math.IsInf(s.Norm, 0):
		return fmt.Errorf("scorecard: norm: %v, want a finite number above 0", s.Norm)
	case math.IsNaN(s.Low) || math.IsInf(s.Low, 0):
		return fmt.Errorf("scorecard: low: %v, want a finite number", s.Low)
	case !(s.High > s.Low) || math.IsInf(s.High-s.Low, 0):
		return fmt.Errorf("scorecard: high: %v, want a finite number above low, %v", s.High, s.Low)
	case !(s.LabelNoise >= 0 && s.LabelNoise < 0.5):
		return fmt.Errorf("scorecard: label noise: %v, want a number of at least 0 and below 0.5", s.LabelNoise)
	}
	return nil
}

// Dim returns the number of coordinates: 1, or 2 with Correctness.
func (s Scorecard) Dim() int {
	if s.Correctness {
		return 2
	}
	return 1
}

// Joined returns the norm sqrt(L^2 + w^2) that a vector of norm at most L has together with a block. Every
// machine computes the same bits.
func (s Scorecard) Joined(l float64) float64 { return Norm([]float64{l, s.Norm}) }

// Unit returns the largest magnitude of one coordinate.
func (s Scorecard) Unit() float64 { return s.Norm / math.Sqrt(float64(s.Dim())) }

// Write overwrites dst, of length Dim, with an event's block: the loss in [Low, High] goes to [-Unit, Unit], and a
// prediction that was correct is Unit, one that was not -Unit. Where the loss is not a number there is no score: the
// block is zero.
func (s Scorecard) Write(dst []float64, loss float64, correct bool) {
	unit := s.Unit()
	at := (min(max(loss, s.Low), s.High) - s.Low) / (s.High - s.Low)
	dst[0] = float64(unit*at) - float64(unit*(1-at))
	if s.Correctness {
		dst[1] = -unit
		if correct {
			dst[1] = unit
		}
	}
	Clip(dst, s.Norm) // rounding may have left it an ulp above, or the loss is NaN
}

// Loss returns the mean loss that a mean of first coordinates encodes; with noise it may lie outside [Low, High].
func (s Scorecard) Loss(mean float64) float64 {
	return s.Low + (s.High-s.Low)*(1+mean/s.Unit())/2
}

// Accuracy returns the share of correct predictions that a mean of second coordinates encodes, corrected for
// LabelNoise; with noise it may lie outside [0, 1].
func (s Scorecard) Accuracy(mean float64) float64 {
	return ((1+mean/s.Unit())/2 - s.LabelNoise) / (1 - 2*s.LabelNoise)
}
