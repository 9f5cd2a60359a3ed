package convex

import (
	"fmt"
	"math"
	"slices"
)

// MaxScale bounds the scales of a frame and their inverses.
const MaxScale = 1e12

// A Frame defines the coordinates of a round's gradients. A row x becomes
//
//	u = ((x_j - Center_j) Scale_j for the features, scaled down to norm Bound; Intercept for the constant one),
//
// and the round's point gives u the score that the loss knows: gain and offset of a label are folded into the point.
// The gradient at it is multiplied by Whitener, clipped to norm Clip, and divided by Clip. All of a frame is public: it
// follows from the declaration and from what earlier cohorts released.
type Frame struct {
	Center []float64 `json:"center"` // one number for each feature, the intercept left out
	Scale  []float64 `json:"scale"`  // likewise, in [1/MaxScale, MaxScale]
	// Intercept is the value of the last coordinate of u; 0 if the task has no intercept, and then all centers are 0.
	Intercept float64 `json:"intercept,omitempty"`
	Bound     float64 `json:"bound"` // largest norm of u without its intercept, which is not scaled
	Clip      float64 `json:"clip"`  // C > 0: reports are clipped to norm C, in units of C
	// Smoothing is the c >= 0 by which the loss is smoothed for its slopes, see Smoothed; 0 for the loss itself.
	Smoothing float64 `json:"smoothing,omitempty"`
	// Whitener is the lower triangle, row after row, of the symmetric matrix that a gradient is multiplied by, each
	// score's alone; nil for none.
	Whitener []float64 `json:"whitener,omitempty"`
	// The label in a round of second moments, zero in all others: q = (y - LabelCenter)/LabelScale cut to [-3, 3] is
	// reported with weight LabelWeight.
	LabelCenter float64 `json:"label_center,omitempty"`
	LabelScale  float64 `json:"label_scale,omitempty"`
	LabelWeight float64 `json:"label_weight,omitempty"`
}

// Dim returns the length of u.
func (f *Frame) Dim() int {
	if f.Intercept == 0 {
		return len(f.Scale)
	}
	return len(f.Scale) + 1
}

// Check returns an error that names the first field that is out of range or does not fit a task with this number of
// features, without the intercept.
func (f *Frame) Check(features int, intercept bool) error {
	for _, v := range [...]struct {
		name   string
		values []float64
		length int
	}{{"center", f.Center, features}, {"scale", f.Scale, features}} {
		if len(v.values) != v.length {
			return fmt.Errorf("frame: %s: %d numbers, want %d", v.name, len(v.values), v.length)
		}
	}
	for j, c := range f.Center {
		switch {
		case !within(math.Abs(c)):
			return fmt.Errorf("frame: center %d: %v, want at most %g in magnitude", j, c, MaxScale)
		case c != 0 && !intercept:
			return fmt.Errorf("frame: center %d: %v, want 0 in a task without intercept", j, c)
		}
	}
	for j, s := range f.Scale {
		if !positive(s) {
			return fmt.Errorf("frame: scale %d: %v, want %g to %g", j, s, 1/MaxScale, MaxScale)
		}
	}
	switch {
	case !intercept && f.Intercept != 0:
		return fmt.Errorf("frame: intercept: %v, want 0 in a task without one", f.Intercept)
	case intercept && !positive(f.Intercept):
		return fmt.Errorf("frame: intercept: %v, want %g to %g", f.Intercept, 1/MaxScale, MaxScale)
	case !positive(f.Bound):
		return fmt.Errorf("frame: bound: %v, want %g to %g", f.Bound, 1/MaxScale, MaxScale)
	case !positive(f.Clip):
		return fmt.Errorf("frame: clip: %v, want %g to %g", f.Clip, 1/MaxScale, MaxScale)
	case f.Smoothing != 0 && !positive(f.Smoothing):
		return fmt.Errorf("frame: smoothing: %v, want 0, or %g to %g", f.Smoothing, 1/MaxScale, MaxScale)
	}
	if n := f.Dim(); f.Whitener != nil && len(f.Whitener) != n*(n+1)/2 {
		return fmt.Errorf("frame: whitener: %d numbers, want none or %d", len(f.Whitener), n*(n+1)/2)
	}
	for i, w := range f.Whitener {
		if !within(math.Abs(w)) {
			return fmt.Errorf("frame: whitener %d: %v, want at most %g in magnitude", i, w, MaxScale)
		}
	}
	switch {
	case f.LabelCenter == 0 && f.LabelScale == 0 && f.LabelWeight == 0:
	case !within(math.Abs(f.LabelCenter)):
		return fmt.Errorf("frame: label center: %v, want at most %g in magnitude", f.LabelCenter, MaxScale)
	case !positive(f.LabelScale):
		return fmt.Errorf("frame: label scale: %v, want %g to %g", f.LabelScale, 1/MaxScale, MaxScale)
	case !positive(f.LabelWeight):
		return fmt.Errorf("frame: label weight: %v, want %g to %g", f.LabelWeight, 1/MaxScale, MaxScale)
	}
	return nil
}

func within(x float64) bool { return x <= MaxScale } // NaN is not

func positive(x float64) bool { return x >= 1/MaxScale && x <= MaxScale }

// Apply overwrites dst with u and the label of x, whose last coordinate is the intercept where the frame has one. dst
// becomes dense, reuses its memory, and shares none with x.
func (f *Frame) Apply(dst *Example, x Example) {
	u := slices.Grow(dst.Value[:0], f.Dim())[:f.Dim()]
	clear(u)
	for k, v := range x.Value {
		u[x.at(k)] = v
	}
	for j, c := range f.Center {
		u[j] = (u[j] - c) * f.Scale[j]
	}
	Clip(u[:len(f.Scale)], f.Bound)
	if f.Intercept != 0 {
		u[len(u)-1] = f.Intercept
	}
	*dst = Example{Value: u, Label: x.Label}
}

// Whiten overwrites dst with the whitener times g, or with g if there is none. dst and g must not share memory.
func (f *Frame) Whiten(dst, g []float64) {
	if f.Whitener == nil {
		copy(dst, g)
		return
	}
	clear(dst)
	row := f.Whitener
	for i, v := range g {
		sum := 0.0
		for j, w := range row[:i] {
			sum += float64(w * g[j])
			dst[j] += float64(w * v)
		}
		dst[i] += sum + float64(row[i]*v)
		row = row[i+1:]
	}
}

// Fold returns the model in plain coordinates that gives a row the same score as theta gives its u, for rows within
// Bound. intercept is the plain value of the task's intercept feature. theta may have several blocks, one for each
// class.
func (f *Frame) Fold(theta []float64, intercept float64) []float64 {
	out := slices.Clone(theta)
	for block := range slices.Chunk(out, f.Dim()) {
		moved := 0.0
		for j, c := range f.Center {
			block[j] *= f.Scale[j]
			moved += float64(block[j] * c)
		}
		if f.Intercept != 0 {
			last := len(block) - 1
			block[last] = (float64(block[last]*f.Intercept) - moved) / intercept
		}
	}
	return out
}

// Unfold is the inverse of Fold.
func (f *Frame) Unfold(model []float64, intercept float64) []float64 {
	out := slices.Clone(model)
	for block := range slices.Chunk(out, f.Dim()) {
		moved := 0.0
		for j, c := range f.Center {
			moved += float64(block[j] * c)
			block[j] /= f.Scale[j]
		}
		if f.Intercept != 0 {
			last := len(block) - 1
			block[last] = (float64(block[last]*intercept) + moved) / f.Intercept
		}
	}
	return out
}

// Ridge overwrites dst with the gradient of (lambda/2) ||Fold(theta, intercept)||^2 with respect to theta.
func (f *Frame) Ridge(dst, theta []float64, lambda, intercept float64) {
	copy(dst, f.Fold(theta, intercept))
	for block := range slices.Chunk(dst, f.Dim()) {
		var constant float64 // the plain intercept's weight for each unit of the plain intercept
		if f.Intercept != 0 {
			last := len(block) - 1
			constant = block[last] / intercept
			block[last] = lambda * constant * f.Intercept
		}
		for j, c := range f.Center {
			block[j] = lambda * f.Scale[j] * (block[j] - float64(c*constant))
		}
	}
}
