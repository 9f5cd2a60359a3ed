package draft

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task"
)

// Limits of what becomes a word or a hat of a task that begins with a public model.
const (
	fineKnots    = 8     // of a number, where there are users enough
	coarseKnots  = 5     // of a number elsewhere
	mostPublic   = 40    // words of a vocabulary
	leastSeen    = 3     // rows of the sample that have the rarest
	nearlyAll    = 0.995 // of the rows: words that cover so many leave none to others
	skewed       = 2     // skewness above which a logarithm may be taken
	publicClip   = 3     // standard deviations
	digitsOfUnit = 4
)

// An entry is one item of features.columns.
type entry []field

func (e entry) get(key string) string {
	for _, f := range e {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// hidden returns the entry of a column that only a public model looks at. It has no coordinate that marks what is
// missing: none of its hats is set there.
func (e entry) hidden() entry {
	out := slices.Clone(e)
	for i, f := range out {
		if f.key == "missing" {
			out[i].value = strings.Replace(f.value, ", indicator: true}", "}", 1)
		}
	}
	return append(out, field{"hidden", "true"})
}

// shown returns the entry without what hides it.
func (e entry) shown() entry {
	return slices.DeleteFunc(slices.Clone(e), func(f field) bool { return f.key == "hidden" })
}

// asPool returns the entries of a feature for a public model: of a number its value, and hats; of codes their value and
// their indicators; of words those that the sample has three times.
func (f feature) asPool(knots int) []entry {
	if own := f.asNumber(); own != nil {
		return append([]entry{own}, f.asHats(knots)...)
	}
	return f.asHats(knots)
}

// asHats returns the entries of a feature for a linear model: of a number hats.
func (f feature) asHats(knots int) []entry {
	c := f.column
	switch kind := entry(f.entry).get("kind"); {
	case kind == string(task.Numeric):
		t := Knots(slices.Sorted(slices.Values(c.kept)), knots)
		if len(t) < 2 {
			return nil
		}
		hats := entry{{"column", text(c.name)}, {"kind", string(task.Hats)}, {"knots", numbers(t)}}
		if tokens := c.tokens(); len(tokens) > 0 {
			hats = append(hats, field{"missing", mapping([]field{{"tokens", texts(tokens)}})})
		}
		return []entry{f.marked(hats)}
	case kind == string(task.Categorical) && !c.numeric():
		return []entry{c.wordsSeen()}
	}
	return []entry{f.entry}
}

// asNumber returns the entry of a column of numbers as one coordinate, standardized; nil for any other.
func (f feature) asNumber() entry {
	c, own := f.column, entry(f.entry)
	if bounds, dated := partBounds[own.get("part")]; dated {
		e := entry{{"column", own.get("column")}, {"field", own.get("field")}, {"part", own.get("part")},
			{"kind", string(task.Numeric)}, {"min", bounds[0]}, {"max", bounds[1]}}
		if missing := own.get("missing"); missing != "" {
			e = append(e, field{"missing", missing})
		}
		return e
	}
	kind := own.get("kind")
	if kind != string(task.Numeric) && !(kind == string(task.Categorical) && c.numeric() && len(c.others) == 0) {
		return nil
	}
	e := append(entry{{"column", text(c.name)}, {"kind", string(task.Numeric)}}, scaleOf(c.kept)...)
	if missing := own.get("missing"); missing != "" {
		e = append(e, field{"missing", missing})
	}
	return f.marked(e)
}

// partBounds holds the bounds of the parts of dates.
var partBounds = map[string][2]string{"hour": {"0", "24"}, "weekday": {"1", "7"}, "month": {"1", "12"}}

// marked adds the marks of the feature's own entry.
func (f feature) marked(e entry) entry {
	if marks := entry(f.entry).get("marks"); marks != "" {
		return append(e, field{"marks", marks})
	}
	return e
}

// wordsSeen returns the entry of a column of words. Two words that cover the sample are one indicator.
func (c *column) wordsSeen() entry {
	var words []string
	covered := 0
	for _, w := range c.ranked() {
		if c.words[w] >= leastSeen && utf8.ValidString(w) && w != "*" && len(words) < mostPublic {
			words = append(words, w)
			covered += c.words[w]
		}
	}
	if len(words) == 2 && covered == c.rows {
		return c.vocabulary(words[1:], false)
	}
	return c.vocabulary(words, float64(covered) < nearlyAll*float64(c.rows))
}

// scaleOf returns the scale of sorted or unsorted numbers: their mean and standard deviation, of logarithms where the
// numbers are skewed and their logarithms less so.
func scaleOf(x []float64) []field {
	if unit, mean, std, ok := LogScale(x); ok {
		return append([]field{{"scale", string(task.Log)}, {"unit", decimal(unit)}}, standardized(mean, std)...)
	}
	mean, std, _ := momentsOf(x)
	return append([]field{{"scale", string(task.Standard)}}, standardized(mean, std)...)
}

// LogScale returns the unit of a logarithm that makes numbers less skewed, their median size, and the moments of the
// logarithms; ok is false for numbers that want none.
func LogScale(x []float64) (unit, mean, std float64, ok bool) {
	_, _, skew := momentsOf(x)
	if !(math.Abs(skew) > skewed) {
		return 0, 0, 0, false
	}
	var sizes []float64
	for _, v := range x {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	unit = significant(quantile(slices.Sorted(slices.Values(sizes)), 0.5), digitsOfUnit)
	logs := make([]float64, len(x))
	for i, v := range x {
		logs[i] = math.Copysign(math.Log1p(math.Abs(v)/unit), v)
	}
	mean, std, less := momentsOf(logs)
	return unit, mean, std, math.Abs(less) < math.Abs(skew) && std > 0
}

func standardized(mean, std float64) []field {
	std = significant(std, digitsOfUnit)
	step := math.Pow(10, math.Floor(math.Log10(std))-digitsOfUnit+1)
	if rounded := math.Round(mean/step) * step; math.Abs(rounded) < 1e15*step {
		mean, _ = strconv.ParseFloat(strconv.FormatFloat(rounded, 'g', 12, 64), 64)
	}
	return []field{{"mean", decimal(mean)}, {"std", decimal(std)}, {"clip", strconv.Itoa(publicClip)}}
}

// significant rounds to so many digits.
func significant(x float64, digits int) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return out
}

// momentsOf returns mean, standard deviation and skewness; the deviation is above 0.
func momentsOf(x []float64) (mean, std, skew float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	var two, three float64
	for _, v := range x {
		d := v - mean
		two += d * d / n
		three += d * d * d / n
	}
	if std = math.Sqrt(two); std < 1e-12*(1+math.Abs(mean)) {
		return mean, 1, 0
	}
	return mean, std, three / (std * two)
}

// Knots returns at most k knots for sorted numbers: all values where there are so few. Else each value that more than
// a k-th of the rows have, and quantiles of the others.
func Knots(sorted []float64, k int) []float64 {
	var distinct, often, rest []float64
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to] == sorted[from] {
			to++
		}
		distinct = append(distinct, sorted[from])
		if (to-from)*k > len(sorted) {
			often = append(often, sorted[from])
		} else {
			rest = append(rest, sorted[from:to]...)
		}
		from = to
	}
	if len(distinct) <= k {
		return distinct
	}
	const tail = 0.005
	if places := k - len(often); places > 1 {
		for i := range places {
			often = append(often, quantile(rest, tail+(1-2*tail)*float64(i)/float64(places-1)))
		}
	} else if places == 1 {
		often = append(often, quantile(rest, 0.5))
	}
	slices.Sort(often)
	return slices.Compact(often)
}

// numbers writes a list.
func numbers(x []float64) string {
	words := make([]string, len(x))
	for i, v := range x {
		words[i] = decimal(v)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
