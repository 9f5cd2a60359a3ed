package task

import (
	"math"
	"slices"
)

// dimension returns the length of a feature vector, intercept included.
func (s *Spec) dimension() int {
	if s.Intercept != 0 {
		return s.Features.width() + 1
	}
	return s.Features.width()
}

// declaredBound returns the largest norm of the features that the declaration allows, intercept left out. It is
// attained, except with Fourier features, whose cosines are never all 1 in magnitude, with public outputs, which may
// exclude each other, with crosses, whose columns may exclude each other, and with products of a number whose own term
// is largest where it is missing.
func (f *Features) declaredBound() float64 { return math.Sqrt(f.squaredBound()) }

// bound returns the norm that features are scaled down to: Spec.NormBound if it is set, else the largest norm they can
// have.
func (f *Features) bound(norm float64) float64 {
	if norm > 0 {
		return norm
	}
	return f.declaredBound()
}

// validateBound refuses a norm bound that no vector can reach: it would make the smoothness constant needlessly large.
func (f *Features) validateBound(norm float64) error {
	if norm < 0 {
		return refuse("norm_bound", norm, "a number > 0, or 0 to have it computed")
	}
	if f.unread() { // the number of coordinates is not known, so scales cannot be counted
		return nil
	}
	most := f.declaredBound()
	if !(most <= maxNorm) {
		return refuse("features", most, "bounds and scales by which the norm of an event is at most %g", maxNorm)
	}
	if norm > most {
		return refuse("norm_bound", norm, "at most %v, the largest norm that the declared bounds allow", most)
	}
	return nil
}

// squaredBound returns the largest squared norm of the scaled coordinates.
func (f *Features) squaredBound() float64 {
	sum := f.largest(func(j int, b float64) float64 { b *= f.scale(j); return b * b })
	room := 1.0
	for i := range f.Columns {
		switch c := &f.Columns[i]; {
		case c.Hidden:
		case c.Kind == Hats:
			room += hatRoom
		case c.Kind == Text:
			room += hatRoom * float64(min(c.Buckets, c.Words))
		}
	}
	return sum * room
}

// largest adds up the largest terms, growing functions of the magnitude, of groups of coordinates: a number alone, one
// indicator of each group, and the products, Fourier features and public outputs each by their own bound. Every term is
// largest where all scaled values are largest in magnitude, so for numbers and products the sum of the largest terms is
// the largest sum.
func (f *Features) largest(term func(j int, b float64) float64) float64 {
	sum, at := 0.0, 0
	one := func(b float64) float64 { b = term(at, b); at++; return b }
	among := func(n int, b float64) float64 { // at most one of them is 1, or together they have norm 1
		var most float64
		for range n {
			most = max(most, one(b))
		}
		return most
	}
	if v := f.Vector; v != nil && !v.Hidden {
		b := v.affine().bound()
		squares := make([]float64, v.Dimension)
		for i := range squares {
			squares[i] = one(b)
		}
		slices.Sort(squares)
		for _, x := range squares[v.Dimension-v.MaxNonzeros:] {
			sum += x
		}
	}
	for i := range f.Columns {
		switch c := &f.Columns[i]; {
		case c.Hidden:
		case c.Kind.Number():
			sum += c.largestNumber(term, at)
			at += c.width()
		default:
			sum += among(c.width(), 1)
		}
	}
	for _, c := range f.Crosses {
		b := 1.0
		if c.Number != "" {
			b = affineOf(f.column(c.Number, true)).bound()
		}
		sum += among(c.width(f), b)
	}
	if p := f.Polynomial; p != nil {
		for _, product := range products(len(p.Columns), p.Degree) {
			b := 1.0
			for _, i := range product {
				b *= affineOf(f.column(p.Columns[i], true)).bound()
			}
			sum += one(b)
		}
	}
	if r := f.Fourier; r != nil {
		for range r.Dimension {
			sum += one(math.Sqrt(2 / float64(r.Dimension)))
		}
	}
	if p := f.Public; p != nil && p.model != nil {
		for range p.model.width() {
			sum += one(1)
		}
	}
	return sum
}

// largestNumber returns the largest term of a numeric column whose first coordinate is at, whether its number is
// present or missing.
func (c *Column) largestNumber(term func(j int, b float64) float64, at int) float64 {
	f := affineOf(c)
	most := term(at, f.bound())
	if c.Missing.Indicator {
		most = max(most, term(at, math.Abs(f.apply(*c.Missing.Fill)))+term(at+1, 1))
	}
	return most
}

// scale returns the factor by which coordinate j is multiplied.
func (f *Features) scale(j int) float64 {
	switch {
	case len(f.Scales) > 0: // a signed declaration may have an empty list
		return f.Scales[j]
	case f.Precondition != nil:
		return 1 / math.Sqrt(f.Precondition.SecondMoments[j]+f.Precondition.Damping)
	}
	return 1
}
