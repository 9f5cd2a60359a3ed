package task

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// otherWord names the indicator of words outside a vocabulary.
const otherWord = "*"

// Limits of derived features.
const (
	maxCrossed     = 1<<32 - 1       // combinations of a hashed cross: a position is hashed as 32 bits
	maxFrequencies = 1 << 22         // numbers of Fourier features
	maxScale       = convex.MaxScale // of a preconditioner, and of its inverse
)

// validate refuses features that are contradictory, out of range, or absent from events.
func (f *Features) validate(events Events) error {
	if events.Format.Vectors() {
		if f.Vector == nil || len(f.Columns) > 0 {
			return refuse("features", "", "vector, and no columns, for format %s", events.Format)
		}
		if err := f.Vector.validate("features.vector"); err != nil {
			return err
		}
	} else {
		if f.Vector != nil || len(f.Columns) == 0 {
			return refuse("features", "", "columns, and no vector, for format %s", events.Format)
		}
		if err := f.validateColumns(events); err != nil {
			return err
		}
	}
	if err := f.validateDerived(); err != nil {
		return err
	}
	if f.unread() {
		return nil
	}
	if n := f.width(); n < 1 || n > maxDimension {
		return refuse("features", fmt.Sprintf("%d coordinates", n), "from 1 to %d in all", maxDimension)
	}
	return f.validateScales()
}

func (f *Features) validateColumns(events Events) error {
	total := 0
	for i := range f.Columns {
		c := &f.Columns[i]
		path := fmt.Sprintf("features.columns.%d", i)
		// A field may occur twice: once as a number, once by indicators.
		var before []string
		for _, other := range f.Columns[:i] {
			if other.Kind.Number() == c.Kind.Number() {
				before = append(before, other.Name)
			}
		}
		if err := validateColumnName(path+".column", c.Name, before); err != nil {
			return err
		}
		if err := c.validate(path); err != nil {
			return err
		}
		if c.Field != "" {
			if err := events.validatePresent(path+".field", c.Field); err != nil {
				return err
			}
			if err := events.validatePresent(path+".over", cmp.Or(c.Over, c.Field)); err != nil {
				return err
			}
		} else if c.Kind != OneHot {
			if err := events.validatePresent(path+".column", c.Name); err != nil {
				return err
			}
		}
		for k, name := range c.Columns {
			if err := f.validateMember(fmt.Sprintf("%s.columns.%d", path, k), c, k, name, events); err != nil {
				return err
			}
		}
		if total += c.width(); total > maxDimension {
			return refuse(path, c.Name, "at most %d coordinates in all", maxDimension)
		}
	}
	return nil
}

// validateMember refuses a member of a group that is not a field of events, or that is used elsewhere, except as a
// number.
func (f *Features) validateMember(path string, group *Column, at int, name string, events Events) error {
	before := slices.Clone(group.Columns[:at])
	for i := range f.Columns {
		if other := &f.Columns[i]; other != group && !other.Kind.Number() {
			before = append(before, other.Fields()...)
		}
	}
	if err := validateColumnName(path, name, before); err != nil {
		return err
	}
	return events.validatePresent(path, name)
}

func validateColumnName(path, name string, before []string) error {
	if name == "" || len(name) > 256 || strings.TrimSpace(name) != name {
		return refuse(path, name, "a name of 1 to 256 bytes without blanks around it")
	}
	if slices.Contains(before, name) {
		return refuse(path, name, "a name that is not in the list already")
	}
	return nil
}

func (v *Vector) validate(path string) error {
	if v.Dimension < 1 || v.Dimension > maxDimension {
		return refuse(path+".dimension", v.Dimension, "a whole number from 1 to %d", maxDimension)
	}
	if v.MaxNonzeros < 1 || v.MaxNonzeros > v.Dimension {
		return refuse(path+".max_nonzeros", v.MaxNonzeros, "a whole number from 1 to the dimension (%d)", v.Dimension)
	}
	if err := oneOf(path+".kind", v.Kind, Numeric, Indicator); err != nil {
		return err
	}
	if v.Kind == Indicator {
		switch {
		case v.Min != 0:
			return refuse(path+".min", v.Min, "nothing for kind indicator: values are 0 or 1")
		case v.Max != 0:
			return refuse(path+".max", v.Max, "nothing for kind indicator: values are 0 or 1")
		case v.Scale != "":
			return refuse(path+".scale", v.Scale, "nothing for kind indicator")
		}
		return nil
	}
	if err := validateRange(path, v.Min, v.Max); err != nil {
		return err
	}
	if v.Min > 0 {
		return refuse(path+".min", v.Min, "a number <= 0: a value that is not listed is zero")
	}
	if v.Max < 0 {
		return refuse(path+".max", v.Max, "a number >= 0: a value that is not listed is zero")
	}
	switch {
	case v.Scale == Unit && v.Min != 0:
		return refuse(path+".scale", v.Scale, "raw, or min 0, so that zero stays zero")
	case v.Scale == Symmetric && v.Min != -v.Max:
		return refuse(path+".scale", v.Scale, "raw, or min = -max, so that zero stays zero")
	}
	return validateScale(path+".scale", v.Scale)
}

func (c *Column) validate(path string) error {
	if err := oneOf(path+".kind", c.Kind, Numeric, Indicator, Categorical, Hashed, Bucketed, Hats,
		Text, OneHot); err != nil {
		return err
	}
	for _, key := range [...]struct {
		name  string
		given bool
		value any
		kind  ColumnKind
	}{
		{"min", c.Min != 0, c.Min, Numeric}, {"max", c.Max != 0, c.Max, Numeric}, {"scale", c.Scale != "", c.Scale, Numeric},
		{"mean", c.Mean != 0, c.Mean, Numeric}, {"std", c.Std != 0, c.Std, Numeric}, {"clip", c.Clip != 0, c.Clip, Numeric},
		{"unit", c.Unit != 0, c.Unit, Numeric},
		{"vocabulary", len(c.Vocabulary) > 0, c.Vocabulary, Categorical}, {"unknown", c.Unknown != "", c.Unknown,
			Categorical},
		{"words", c.Words != 0, c.Words, Text}, {"edges", len(c.Edges) > 0, c.Edges, Bucketed},
		{"knots", len(c.Knots) > 0, c.Knots, Hats}, {"columns", len(c.Columns) > 0, c.Columns, OneHot},
	} {
		if key.given && key.kind != c.Kind {
			return refuse(path+"."+key.name, key.value, "nothing for kind %s", c.Kind)
		}
	}
	if c.Buckets != 0 && c.Kind != Hashed && c.Kind != Text {
		return refuse(path+".buckets", c.Buckets, "nothing for kind %s", c.Kind)
	}
	if err := c.validateKind(path); err != nil {
		return err
	}
	if len(c.Marks) > 0 && !c.Kind.Number() && c.Kind != Bucketed && c.Kind != Hats {
		return refuse(path+".marks", c.Marks, "nothing for kind %s", c.Kind)
	}
	if err := validateMarks(path, c.Marks); err != nil {
		return err
	}
	if err := c.validatePart(path); err != nil {
		return err
	}
	return c.Missing.validate(path, c)
}

// validateKind checks the keys that depend only on the column's kind.
func (c *Column) validateKind(path string) error {
	switch c.Kind {
	case Indicator:
		return nil
	case Numeric:
		return c.validateNumeric(path)
	case Categorical:
		return c.validateVocabulary(path)
	case OneHot:
		if len(c.Columns) < 2 {
			return refuse(path+".columns", c.Columns, "at least two columns of numbers")
		}
		return nil
	case Hats:
		return c.validateKnots(path)
	case Bucketed:
		if len(c.Edges) == 0 {
			return refuse(path+".edges", "", "at least one number")
		}
		for i := range c.Edges[1:] {
			if c.Edges[i+1] <= c.Edges[i] {
				return refuse(fmt.Sprintf("%s.edges.%d", path, i+1), c.Edges[i+1], "a number > the one before (%v)", c.Edges[i])
			}
		}
		return nil
	}
	if c.Buckets < 1 || c.Buckets > maxDimension {
		return refuse(path+".buckets", c.Buckets, "a whole number from 1 to %d", maxDimension)
	}
	if c.Kind == Text {
		return c.validateText(path)
	}
	return nil
}

func (c *Column) validateNumeric(path string) error {
	if err := oneOf(path+".scale", c.Scale, Raw, Unit, Symmetric, Standard, Log); err != nil {
		return err
	}
	if c.Scale != Standard && c.Scale != Log {
		switch {
		case c.Mean != 0:
			return refuse(path+".mean", c.Mean, "nothing for scale %s", c.Scale)
		case c.Std != 0:
			return refuse(path+".std", c.Std, "nothing for scale %s", c.Scale)
		case c.Clip != 0:
			return refuse(path+".clip", c.Clip, "nothing for scale %s", c.Scale)
		case c.Unit != 0:
			return refuse(path+".unit", c.Unit, "nothing for scale %s", c.Scale)
		}
		return validateRange(path, c.Min, c.Max)
	}
	switch {
	case c.Min != 0:
		return refuse(path+".min", c.Min, "nothing for scale %s: mean, std and clip are its range", c.Scale)
	case c.Max != 0:
		return refuse(path+".max", c.Max, "nothing for scale %s: mean, std and clip are its range", c.Scale)
	case c.Std < 1/maxMagnitude:
		return refuse(path+".std", c.Std, "a number > 0")
	case c.Clip <= 0:
		return refuse(path+".clip", c.Clip, "a number > 0")
	}
	return c.validateLog(path)
}

func (c *Column) validateVocabulary(path string) error {
	if len(c.Vocabulary) == 0 {
		return refuse(path+".vocabulary", "", "at least one word")
	}
	if err := oneOf(path+".unknown", c.Unknown, Invalid, Drop, Other); err != nil {
		return err
	}
	seen := make(map[string]bool, len(c.Vocabulary))
	for i, w := range c.Vocabulary {
		at := path + ".vocabulary." + strconv.Itoa(i)
		switch {
		case w == "" || strings.TrimSpace(w) != w:
			return refuse(at, w, "a word without blanks around it")
		case seen[w]:
			return refuse(at, w, "a word that is not in the list already")
		case w == otherWord && c.Unknown == Other:
			return refuse(at, w, "another word: %s stands for the words outside the vocabulary", otherWord)
		}
		seen[w] = true
	}
	return nil
}

func validateRange(path string, low, high float64) error {
	if low >= high {
		return refuse(path+".max", high, "a number > min (%v)", low)
	}
	// A range so narrow that its inverse overflows, or nearly does, cannot be scaled.
	if !(2/(high-low) <= maxMagnitude) {
		return refuse(path+".max", high, "a wider range")
	}
	return nil
}

func validateScale(path string, s Scale) error { return oneOf(path, s, Raw, Unit, Symmetric) }
