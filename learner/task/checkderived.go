package task

import (
	"fmt"
	"slices"
	"strings"
)

// validateDerived checks features that are derived from the columns or the vector, which must be valid.
func (f *Features) validateDerived() error {
	if f.Vector != nil {
		switch {
		case len(f.Crosses) > 0:
			return refuse("features.crosses", fmt.Sprintf("%d", len(f.Crosses)),
				"nothing with a vector, which has no columns of indicators")
		case f.Polynomial != nil:
			return refuse("features.polynomial", "", "nothing with a vector, which has no columns")
		}
	}
	for i, c := range f.Crosses {
		path := fmt.Sprintf("features.crosses.%d", i)
		if err := f.validateCross(path, c); err != nil {
			return err
		}
		for _, other := range f.Crosses[:i] {
			if slices.Equal(other.Columns, c.Columns) && other.Number == c.Number {
				return refuse(path+".columns", strings.Join(c.Columns, ", "), "columns that are not crossed already")
			}
		}
	}
	if p := f.Polynomial; p != nil {
		if err := f.validateNumbers("features.polynomial.columns", p.Columns); err != nil {
			return err
		}
		if p.Degree != 2 && p.Degree != 3 {
			return refuse("features.polynomial.degree", p.Degree, "2 or 3")
		}
		if n := p.width(); n > maxDimension {
			return refuse("features.polynomial.columns", fmt.Sprintf("%d products", n), "at most %d", maxDimension)
		}
	}
	if f.Fourier != nil {
		if err := f.validateFourier(); err != nil {
			return err
		}
	}
	if f.Vector != nil && f.Vector.Hidden && f.Fourier == nil && f.Public == nil {
		return refuse("features.vector.hidden", true,
			"false, or features.fourier or features.public: nothing is made from the values")
	}
	for i := range f.Columns {
		if c := &f.Columns[i]; c.Hidden && !f.uses(c) {
			return refuse(fmt.Sprintf("features.columns.%d.hidden", i), true,
				"false, or a cross, polynomial, fourier or public model that is made from it")
		}
	}
	if f.Public != nil && f.Public.model != nil {
		return f.validatePublic()
	}
	return nil
}

func (f *Features) validateCross(path string, c Cross) error {
	switch n := len(c.Columns); {
	case c.Number == "" && (n < 2 || n > 4):
		return refuse(path+".columns", strings.Join(c.Columns, ", "), "two to four columns, or one to four with a number")
	case n < 1 || n > 4:
		return refuse(path+".columns", strings.Join(c.Columns, ", "), "one to four columns with a number")
	case c.Number != "" && f.column(c.Number, true) == nil:
		return refuse(path+".number", c.Number, "a declared column of kind numeric or indicator")
	}
	combinations := 1
	for i, name := range c.Columns {
		at := fmt.Sprintf("%s.columns.%d", path, i)
		if slices.Contains(c.Columns[:i], name) {
			return refuse(at, name, "a column that is not in the list already")
		}
		column := f.column(name, false)
		if column == nil || column.Kind == Hats || column.Kind == Text {
			return refuse(at, name, "a declared column that is categorical, hashed, bucketed or a onehot-group")
		}
		if combinations > maxCrossed/column.positions() {
			return refuse(path+".columns", strings.Join(c.Columns, ", "), "columns with at most %d combinations", maxCrossed)
		}
		combinations *= column.positions()
	}
	if c.Buckets < 0 || c.Buckets > maxDimension {
		return refuse(path+".buckets", c.Buckets, "a whole number from 1 to %d, or 0 for an indicator for each combination",
			maxDimension)
	}
	if c.Buckets == 0 && combinations > maxDimension {
		return refuse(path+".columns", strings.Join(c.Columns, ", "), "buckets for %d combinations: more than %d",
			combinations, maxDimension)
	}
	return nil
}

// validateNumbers refuses names other than those of distinct numeric columns.
func (f *Features) validateNumbers(path string, names []string) error {
	if len(names) == 0 {
		return refuse(path, "", "at least one numeric column")
	}
	for i, name := range names {
		at := fmt.Sprintf("%s.%d", path, i)
		if slices.Contains(names[:i], name) {
			return refuse(at, name, "a column that is not in the list already")
		}
		if f.column(name, true) == nil {
			return refuse(at, name, "a declared column of kind numeric or indicator")
		}
	}
	return nil
}

func (f *Features) validateFourier() error {
	r := f.Fourier
	inputs := len(r.Columns)
	if f.Vector != nil {
		if inputs = f.Vector.Dimension; len(r.Columns) > 0 {
			return refuse("features.fourier.columns", strings.Join(r.Columns, ", "),
				"nothing with a vector: all its values count")
		}
	} else if err := f.validateNumbers("features.fourier.columns", r.Columns); err != nil {
		return err
	}
	if r.Dimension < 1 || r.Dimension > maxDimension || r.Dimension > maxFrequencies/inputs {
		return refuse("features.fourier.dimension", r.Dimension, "a whole number from 1 to %d, for %d values",
			min(maxDimension, maxFrequencies/inputs), inputs)
	}
	if r.Gamma <= 0 || r.Gamma > maxScale {
		return refuse("features.fourier.gamma", r.Gamma, "a number > 0 and at most %g", float64(maxScale))
	}
	if r.Seed < 0 {
		return refuse("features.fourier.seed", r.Seed, "a whole number >= 0")
	}
	return nil
}

func (f *Features) validateScales() error {
	width := f.width()
	if len(f.Scales) > 0 {
		if f.Precondition != nil {
			return refuse("features.precondition", "", "nothing together with features.scales")
		}
		if len(f.Scales) != width {
			return refuse("features.scales", fmt.Sprintf("%d numbers", len(f.Scales)), "%d, one a coordinate", width)
		}
		for i, v := range f.Scales {
			if !(v >= 1/maxScale && v <= maxScale) {
				return refuse(fmt.Sprintf("features.scales.%d", i), v, "a number > 0, from %g to %g", 1/maxScale, float64(maxScale))
			}
		}
	}
	p := f.Precondition
	if p == nil {
		return nil
	}
	switch {
	case p.Damping < 1/maxScale || p.Damping > maxScale:
		return refuse("features.precondition.damping", p.Damping, "a number > 0, from %g to %g", 1/maxScale,
			float64(maxScale))
	}
	if len(p.SecondMoments) != width {
		return refuse("features.precondition.second_moments", fmt.Sprintf("%d numbers", len(p.SecondMoments)),
			"%d, one a coordinate", width)
	}
	for i, h := range p.SecondMoments {
		if h < 0 || h > maxScale {
			return refuse(fmt.Sprintf("features.precondition.second_moments.%d", i), h, "a number from 0 to %g",
				float64(maxScale))
		}
	}
	return nil
}

// column returns the entry with this name that is a number, or the one that is indicators, or nil.
func (f *Features) column(name string, number bool) *Column {
	for i := range f.Columns {
		if c := &f.Columns[i]; c.Name == name && c.Kind.Number() == number {
			return c
		}
	}
	return nil
}

// uses reports whether any feature is derived from a column.
func (f *Features) uses(c *Column) bool {
	if f.Public != nil {
		return true // its inputs are all columns
	}
	if c.Kind.Number() {
		return f.Polynomial != nil && slices.Contains(f.Polynomial.Columns, c.Name) ||
			f.Fourier != nil && slices.Contains(f.Fourier.Columns, c.Name) ||
			slices.ContainsFunc(f.Crosses, func(x Cross) bool { return x.Number == c.Name })
	}
	return slices.ContainsFunc(f.Crosses, func(x Cross) bool { return slices.Contains(x.Columns, c.Name) })
}
