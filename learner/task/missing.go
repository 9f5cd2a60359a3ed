package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Missing declares the treatment of missing values, which never make a row invalid. A blank field, a null, a key that
// an event lacks and the texts in Tokens are missing values, and NaN for a number. A hashed word is never missing: a
// blank is a word like any other.
type Missing struct {
	// Tokens are further texts that mean a missing value; numbers are compared as numbers. A number that consists of marks
	// alone is missing too.
	Tokens []string `json:"tokens,omitempty"`
	// Fill replaces a missing number; it must lie within the bounds. Default: the middle of the bounds; 0 for kind
	// indicator; for scale log the number whose logarithm is the mean, to six digits.
	Fill *float64 `json:"fill,omitempty"`
	// Indicator adds one coordinate for a number: 1 if the value is missing, else 0.
	Indicator bool `json:"indicator,omitempty"`
	// Word is the word of the vocabulary that replaces a missing word. Without it, a missing word sets the indicator for
	// words outside the vocabulary if there is one (unknown: other), else none. Missing values of other kinds set no
	// indicator and no hat.
	Word string `json:"word,omitempty"`
}

// setDefaults fills in what a file may leave out. A blank token is removed: a blank is missing anyway.
func (m *Missing) setDefaults(c *Column) {
	if slices.Contains(m.Tokens, "") {
		m.Tokens = slices.DeleteFunc(slices.Clone(m.Tokens), func(t string) bool { return t == "" })
	}
	if len(m.Tokens) == 0 {
		m.Tokens = nil
	}
	if m.Fill == nil && c.Kind.Number() {
		fill := c.middle()
		m.Fill = &fill
	}
}

func (m *Missing) validate(path string, c *Column) error {
	path += ".missing"
	var fill float64
	if m.Fill != nil {
		fill = *m.Fill
	}
	for _, key := range [...]struct {
		name  string
		given bool
		value any
		means bool
	}{
		{"tokens", len(m.Tokens) > 0, m.Tokens, c.Kind != Hashed}, {"fill", m.Fill != nil, fill, c.Kind.Number()},
		{"indicator", m.Indicator, m.Indicator, c.Kind.Number()}, {"word", m.Word != "", m.Word, c.Kind == Categorical},
	} {
		if key.given && !key.means {
			return refuse(path+"."+key.name, key.value, "nothing for kind %s", c.Kind)
		}
	}
	for i, t := range m.Tokens {
		at := fmt.Sprintf("%s.tokens.%d", path, i)
		switch {
		case t == "" || strings.TrimSpace(t) != t:
			return refuse(at, t, "text without blanks around it")
		case slices.Contains(m.Tokens[:i], t):
			return refuse(at, t, "text that is not in the list already")
		case slices.Contains(c.Vocabulary, t):
			return refuse(at, t,
				"text that is not in the vocabulary; missing.word names the word that a missing value counts as")
		}
	}
	if m.Word != "" && !slices.Contains(c.Vocabulary, m.Word) {
		return refuse(path+".word", m.Word, "a word of the vocabulary")
	}
	if !c.Kind.Number() {
		return nil
	}
	f := affineOf(c)
	switch {
	case m.Fill == nil:
		return refuse(path+".fill", "", "a number from %v to %v", f.raw(f.low), f.raw(f.high))
	case !f.within(fill):
		return refuse(path+".fill", fill, "a number from %v to %v", f.raw(f.low), f.raw(f.high))
	case c.Kind == Indicator && fill != 0 && fill != 1:
		return refuse(path+".fill", fill, "0 or 1")
	case m.Indicator && c.Hidden:
		return refuse(path+".indicator", true, "false: a hidden column has no coordinates of its own")
	}
	return nil
}

// numbers returns the tokens that are numbers.
func (m *Missing) numbers() (out []float64) {
	for _, t := range m.Tokens {
		if x, err := parseFinite(t); err == nil {
			out = append(out, x)
		}
	}
	return out
}

// vacant returns the position of a missing value among c's.
func (c *Column) vacant() int {
	switch {
	case c.Missing.Word != "":
		return slices.Index(c.Vocabulary, c.Missing.Word)
	case c.Unknown == Other:
		return len(c.Vocabulary)
	}
	return none
}

// MissingOf is the kind of the coordinate that marks missing numbers.
const MissingOf = "missing"

// ofMissing describes the coordinate that marks missing numbers of a source.
func ofMissing(s *Source) Coordinate {
	return Coordinate{Name: quoteName(s.Column) + "~missing", Column: s.field(), Part: s.Part, Over: s.Over, Kind: MissingOf, Max: 1,
		Factor: 1, Sources: []*Source{s}}
}

// quantity reads the number of a source from its fields, before the scale, or reports that it is missing.
func (in *input) quantity(fields []string) (x float64, missing bool, err error) {
	x, missing, err = in.number(strings.TrimSpace(fields[in.fields[0]]))
	if in.Over == "" {
		return x, missing, err
	}
	y, none, wrong := in.number(strings.TrimSpace(fields[in.fields[1]])) // read even if the first one is missing
	if err != nil || wrong != nil {
		return 0, false, errors.Join(err, wrong)
	}
	x, ok := ratio(x, y)
	return x, missing || none || !ok, nil
}

// ratio returns x/y, or false if that is not finite.
func ratio(x, y float64) (float64, bool) {
	q := x / y
	return q, y != 0 && !math.IsNaN(q) && !math.IsInf(q, 0)
}

// number reads a field that is a number, or reports that it is missing.
func (in *input) number(field string) (x float64, missing bool, err error) {
	if field == "" || slices.Contains(in.Tokens, field) {
		return 0, true, nil
	}
	if in.Part != "" {
		return datePart(field, in.Part)
	}
	if field, err = unmarked(field, in.Marks); err != nil || field == "" {
		return 0, err == nil, err
	}
	x, err = parseNumber(field)
	return x, math.IsNaN(x) || slices.Contains(in.Numbers, x), err
}
