package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// otherWord names the indicator of words outside a vocabulary.
const otherWord = "*"

func (s *Spec) checkEvents() error {
	e := s.Events
	if err := oneOf("events.format", e.Format, LIBSVM, CSV, JSONL, IDX, Parquet); err != nil {
		return err
	}
	if e.MaxLine < 1 || e.MaxLine > maxLineLimit {
		return refuse("events.max_line", e.MaxLine, "a number of bytes from 1 to %d", maxLineLimit)
	}
	for i, p := range e.Skip {
		if p == "" || strings.TrimSpace(p) != p {
			return refuse(fmt.Sprintf("events.skip.%d", i), p, "text without blanks around it")
		}
	}
	if (e.Format == IDX || e.Format == Parquet) && len(e.Skip) > 0 {
		return refuse("events.skip", e.Skip, "nothing: %s has no lines", e.Format)
	}
	if e.Format != CSV {
		switch {
		case e.Header:
			return refuse("events.header", e.Header, "false: only csv has a header")
		case len(e.Columns) > 0:
			return refuse("events.columns", e.Columns, "nothing: only csv has columns by position")
		case e.Separator != "":
			return refuse("events.separator", e.Separator, "nothing: only csv has separators")
		}
		return nil
	}
	if len(e.Separator) != 1 || strings.ContainsAny(e.Separator, " \"\r\n\x00") || e.Separator[0] >= 0x80 {
		return refuse("events.separator", e.Separator, "one ASCII character, not a blank, a quote or a line break")
	}
	if e.Header == (len(e.Columns) > 0) {
		return refuse("events.columns", e.Columns, "the names of the columns, or events.header: true, and not both")
	}
	for i, c := range e.Columns {
		if err := checkColumnName(fmt.Sprintf("events.columns.%d", i), c, e.Columns[:i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkFeatures() error {
	v, columns := s.Features.Vector, s.Features.Columns
	if s.Events.Format == LIBSVM || s.Events.Format == IDX {
		if v == nil || len(columns) > 0 {
			return refuse("features", "", "vector, and no columns, for format %s", s.Events.Format)
		}
		return v.check("features.vector")
	}
	if v != nil || len(columns) == 0 {
		return refuse("features", "", "columns, and no vector, for format %s", s.Events.Format)
	}
	var names []string
	total := 0
	for i, c := range columns {
		path := fmt.Sprintf("features.columns.%d", i)
		if err := checkColumnName(path+".column", c.Name, names); err != nil {
			return err
		}
		if err := s.checkPresent(path+".column", c.Name); err != nil {
			return err
		}
		names = append(names, c.Name)
		if err := c.check(path); err != nil {
			return err
		}
		if total += c.width(); total > maxDimension {
			return refuse(path, c.Name, "at most %d coordinates in all", maxDimension)
		}
	}
	return nil
}

// checkPresent refuses a column that a csv file without header does not have.
func (s *Spec) checkPresent(path, name string) error {
	if len(s.Events.Columns) > 0 && !slices.Contains(s.Events.Columns, name) {
		return refuse(path, name, "one of events.columns")
	}
	return nil
}

func checkColumnName(path, name string, before []string) error {
	if name == "" || len(name) > 256 || strings.TrimSpace(name) != name {
		return refuse(path, name, "a name of 1 to 256 bytes without blanks around it")
	}
	if slices.Contains(before, name) {
		return refuse(path, name, "a name that is not in the list already")
	}
	return nil
}

func (v *Vector) check(path string) error {
	if v.Dimension < 1 || v.Dimension > maxDimension {
		return refuse(path+".dimension", v.Dimension, "a whole number from 1 to %d", maxDimension)
	}
	if v.MaxNonzeros < 1 || v.MaxNonzeros > v.Dimension {
		return refuse(path+".max_nonzeros", v.MaxNonzeros, "a whole number from 1 to the dimension (%d)", v.Dimension)
	}
	if err := checkRange(path, v.Min, v.Max); err != nil {
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
	return checkScale(path+".scale", v.Scale)
}

func (c *Column) check(path string) error {
	if err := oneOf(path+".kind", c.Kind, Numeric, Categorical, Hashed); err != nil {
		return err
	}
	if c.Kind != Numeric {
		switch {
		case c.Min != 0:
			return refuse(path+".min", c.Min, "nothing for kind %s", c.Kind)
		case c.Max != 0:
			return refuse(path+".max", c.Max, "nothing for kind %s", c.Kind)
		case c.Scale != "":
			return refuse(path+".scale", c.Scale, "nothing for kind %s", c.Kind)
		}
	}
	if c.Kind != Categorical {
		switch {
		case len(c.Vocabulary) > 0:
			return refuse(path+".vocabulary", c.Vocabulary, "nothing for kind %s", c.Kind)
		case c.Unknown != "":
			return refuse(path+".unknown", c.Unknown, "nothing for kind %s", c.Kind)
		}
	}
	if c.Kind != Hashed && c.Buckets != 0 {
		return refuse(path+".buckets", c.Buckets, "nothing for kind %s", c.Kind)
	}
	switch c.Kind {
	case Numeric:
		if err := checkRange(path, c.Min, c.Max); err != nil {
			return err
		}
		return checkScale(path+".scale", c.Scale)
	case Categorical:
		return c.checkVocabulary(path)
	}
	if c.Buckets < 1 || c.Buckets > maxDimension {
		return refuse(path+".buckets", c.Buckets, "a whole number from 1 to %d", maxDimension)
	}
	return nil
}

func (c *Column) checkVocabulary(path string) error {
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

func checkRange(path string, low, high float64) error {
	if low >= high {
		return refuse(path+".max", high, "a number > min (%v)", low)
	}
	// A range so narrow that its inverse overflows scales nothing.
	if math.IsInf(2/(high-low), 0) {
		return refuse(path+".max", high, "a wider range")
	}
	return nil
}

func checkScale(path string, s Scale) error { return oneOf(path, s, Raw, Unit, Symmetric) }
