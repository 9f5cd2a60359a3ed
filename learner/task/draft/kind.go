package draft

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task"
)

// Limits of what becomes an indicator.
const (
	mostVocabulary = 50   // words
	mostCodes      = 31   // different whole numbers that may be codes
	rowsPerCode    = 100  // rows for each of them
	leastCode      = 0.01 // share of the rows that has the rarest
	leastWord      = 1000 // a word of a vocabulary is in one of so many rows, and in two
	leastCovered   = 0.5  // share of the rows that a vocabulary covers
	textBuckets    = 256  // that a text is hashed into
	leastGaps      = 0.01 // share of the rows without a value that is worth a coordinate
)

// A feature is a column's entry of features.columns, with a comment; without an entry the column is left out.
type feature struct {
	column *column
	entry  []field
	note   string
	width  int       // coordinates
	more   []feature // of the same column
}

// A field is one key of an entry; its value is YAML.
type field struct{ key, value string }

var idName = regexp.MustCompile(
	`(?i)^(id|.*[_ -]id|.*I[Dd]|index|instant|uuid|guid|key|row|rownum|no|nr|number|serial)$`)

// featureOf decides what becomes of a column.
func featureOf(c *column) feature {
	leave := func(why string, args ...any) feature { return feature{column: c, note: fmt.Sprintf(why, args...)} }
	n := c.present()
	switch distinct := len(c.words); {
	case n == 0:
		return leave("no row has a value")
	case distinct == 1 && !c.many && !c.long && n == c.rows:
		return leave("all rows have the same value")
	case c.numeric():
		return c.numberFeature()
	case c.dates > n*9/10:
		if parts := c.dateFeatures(); len(parts) > 0 {
			parts[0].note, parts[0].more = "parts of a date that come again; its zone is passed over", parts[1:]
			return parts[0]
		}
		return leave("a date or a time; make columns of what matters in it, such as the hour or the weekday, if it matters")
	case c.long || c.many || 2*distinct > n && distinct > 20:
		what := "most words are there once: an identifier, or free text"
		if most, odd := c.mostNumbers(); most {
			what = fmt.Sprintf("most values are numbers, but %s is none, or too large: want numbers up to %g, or an empty field",
				text(odd), mostMagnitude)
		} else if 2*c.blanks > n {
			what = fmt.Sprintf("free text; {column: %s, kind: text, buckets: %d} would take its words", text(c.name),
				textBuckets)
		}
		return leave("%s", what)
	}
	return c.wordFeature()
}

// mostNumbers reports whether most values are numbers, and the first one by the alphabet that is none, or one too
// large.
func (c *column) mostNumbers() (most bool, odd string) {
	numbers, all, first := 0, 0, true
	for w, n := range c.words {
		all += n
		if _, err := strconv.ParseFloat(w, 64); err == nil {
			numbers += n
		}
		if _, ok := number(w); !ok && (first || w < odd) {
			odd, first = w, false
		}
	}
	return 2*numbers > all && !first, odd
}

func (c *column) numberFeature() feature {
	switch {
	case c.high-c.low < 1/mostMagnitude && c.gaps() == 0:
		return feature{column: c, note: "all rows have the same number"}
	case c.identifies() != "":
		return feature{column: c, note: c.identifies()}
	case c.codes():
		return c.codeFeature()
	case c.binary:
		return c.withGaps(feature{column: c, width: 1, entry: []field{{"column", text(c.name)},
			{"kind", string(task.Indicator)}}})
	}
	b, outside := c.bounds()
	f := feature{column: c, width: 1, entry: []field{{"column", text(c.name)}, {"kind", string(task.Numeric)},
		{"min", decimal(b.low)}, {"max", decimal(b.high)}}}
	if b.low == 0 {
		f.entry = append(f.entry, field{"scale", string(task.Unit)})
	}
	if outside > 0 {
		f.note = fmt.Sprintf("%.2g %% of the rows lie outside, the farthest at %s, and are moved to the bounds", 100*outside,
			decimal(c.farthest(b)))
	}
	return c.withGaps(f)
}

// identifies returns the reason why a column of numbers only identifies rows; empty if it does not.
func (c *column) identifies() string {
	switch {
	case c.running && c.numbers > 2:
		return "a running number"
	case c.whole && !c.many && len(c.words) == c.numbers && c.numbers > 20 && idName.MatchString(c.name):
		return "an identifier: every row has another"
	}
	return ""
}

// withGaps adds the marks of numbers, and the treatment of missing values, where there are some: the median as their
// value, and a coordinate that marks them where they are more than a few.
func (c *column) withGaps(f feature) feature {
	f.entry = c.withMarks(f.entry)
	if c.marks[","] {
		f.note = join(f.note, "a comma was taken for that of thousands")
	}
	if c.gaps() == 0 {
		return f
	}
	fill := quantile(slices.Sorted(slices.Values(c.kept)), 0.5)
	if b, _ := c.bounds(); !c.binary {
		fill = min(max(fill, b.low), b.high)
	}
	missing := []field{{"fill", decimal(fill)}}
	if tokens := c.tokens(); len(tokens) > 0 {
		missing = append([]field{{"tokens", texts(tokens)}}, missing...)
	}
	if share := float64(c.gaps()) / float64(c.rows); share >= leastGaps {
		missing = append(missing, field{"indicator", "true"})
		f.width++
	}
	f.entry = append(f.entry, field{"missing", mapping(missing)})
	f.note = join(f.note, fmt.Sprintf("%.2g %% of the rows have no value, and count as the median",
		100*float64(c.gaps())/float64(c.rows)))
	return f
}

// farthest returns the number that is most outside.
func (c *column) farthest(b interval) float64 {
	if b.low-c.low > c.high-b.high {
		return c.low
	}
	return c.high
}

// codes reports whether the numbers look like the numbers of things: few whole ones, each of them frequent.
func (c *column) codes() bool {
	if !c.whole || c.many || len(c.others) > 0 || len(c.words) < 3 || len(c.words) > mostCodes ||
		c.rows < rowsPerCode*len(c.words) {
		return false
	}
	for _, k := range c.words {
		if float64(k) < leastCode*float64(c.rows) {
			return false
		}
	}
	return true
}

func (c *column) codeFeature() feature {
	words := c.ranked()
	b := outward(c.low, c.high, true)
	return feature{column: c, width: len(words), entry: c.vocabulary(words, len(c.missing) > 0),
		note: fmt.Sprintf(
			"few whole numbers, taken for codes; as a number it is {column: %s, kind: numeric, min: %s, max: %s}", text(c.name),
			decimal(b.low), decimal(b.high))}
}

func (c *column) wordFeature() feature {
	var words []string
	covered := 0
	for _, w := range c.ranked() {
		if c.words[w] >= max(2, c.rows/leastWord) && utf8.ValidString(w) && w != "*" && len(words) < mostVocabulary {
			words = append(words, w)
			covered += c.words[w]
		}
	}
	if float64(covered) < leastCovered*float64(c.present()) || len(words) == 0 {
		return feature{column: c,
			note: fmt.Sprintf("%d words, of which %d cover too few rows; {column: %s, kind: hashed, buckets: %d} would take it",
				len(c.words), len(words), text(c.name), mostVocabulary)}
	}
	f := feature{column: c, width: len(words), entry: c.vocabulary(words, covered < c.rows)}
	if rest := len(c.words) - len(words); rest > 0 {
		f.note = fmt.Sprintf("left to other: %s", plural(rest, "word"))
	}
	if gaps := c.rows - c.present(); gaps > 0 {
		f.note = join(f.note, fmt.Sprintf("%.2g %% of the rows have none of them, which counts as another word",
			100*float64(gaps)/float64(c.rows)))
	}
	return f
}

// vocabulary returns the entry of a column of words. Words outside never make a row invalid: they have an
// indicator of their own where the sample has some, and none where it has none.
func (c *column) vocabulary(words []string, others bool) []field {
	unknown := task.Drop
	if others {
		unknown = task.Other
	}
	return []field{{"column", text(c.name)}, {"kind", string(task.Categorical)}, {"vocabulary", texts(words)},
		{"unknown", string(unknown)}}
}

func join(notes ...string) string {
	var out []string
	for _, n := range notes {
		if n != "" {
			out = append(out, n)
		}
	}
	return strings.Join(out, "; ")
}

// unreadable refuses columns that would be read otherwise than they are meant.
func (c *column) unreadable() error {
	if n := c.present(); c.commas > 0 && 2*(c.commas+c.numbers) > n && c.commas > n/20 {
		return fmt.Errorf("column %q has decimal commas: want decimal points, in the data of devices too", c.name)
	}
	return nil
}

// plural returns a number of things in words.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// share returns a part in whole per cent, at least one.
func share(part, all int) int { return int(math.Ceil(100 * float64(part) / float64(all))) }
