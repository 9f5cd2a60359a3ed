package task

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

// scaledValue returns the value of a numeric source, position that of another one, or -1, for a row of fields
// by name, as another program would read the description.
func scaledValue(t rapid.TB, s *Source, fields map[string]string) float64 {
	x, missing := quantity(t, s, fields)
	if missing {
		x = s.Fill
	}
	return scaledNumber(s, x)
}

// quantity returns the number of a source, or the ratio of its two fields, and whether it is missing.
func quantity(t rapid.TB, s *Source, fields map[string]string) (x float64, missing bool) {
	x, missing = number(t, s, s.field(), fields)
	if s.Over == "" {
		return x, missing
	}
	y, none := number(t, s, s.Over, fields)
	q := x / y
	return q, missing || none || y == 0 || math.IsInf(q, 0)
}

// number returns the number in a field, and whether it is missing.
func number(t rapid.TB, s *Source, name string, fields map[string]string) (x float64, missing bool) {
	field := fields[name]
	if field == "" || slices.Contains(s.Tokens, field) {
		return 0, true
	}
	if s.Part != "" {
		return partByLibrary(t, field, s.Part)
	}
	for _, m := range s.Marks {
		field = strings.ReplaceAll(field, m, "")
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x, math.IsNaN(x) || slices.Contains(s.Numbers, x)
}

func scaledNumber(s *Source, x float64) float64 {
	if s.Kind == Indicator {
		if x >= 0.5 {
			return 1
		}
		return 0
	}
	if s.Unit > 0 {
		x = math.Copysign(math.Log(1+math.Abs(x)/s.Unit), x)
	}
	return s.Factor*math.Min(math.Max(x, s.Min), s.Max) + s.Offset
}

func position(t rapid.TB, s *Source, fields map[string]string) int {
	field := fields[s.Column]
	switch s.Kind {
	case OneHot:
		return slices.IndexFunc(s.Columns, func(name string) bool {
			x, missing := number(t, s, name, fields)
			return !missing && x >= 0.5
		})
	case Categorical:
		i := slices.Index(s.Vocabulary, field)
		switch {
		case i < 0 && (field == "" || slices.Contains(s.Tokens, field)):
			return s.Vacant
		case i >= 0 || s.Unknown == Drop:
			return i
		}
		return len(s.Vocabulary)
	case Hashed:
		return int(murmur3(field, s.Seed) % uint32(s.Buckets))
	}
	x, missing := quantity(t, s, fields)
	if missing {
		return -1
	}
	n := 0
	for _, e := range s.Edges {
		if e <= x {
			n++
		}
	}
	return n
}

// partByLibrary reads a part as package time does.
func partByLibrary(t rapid.TB, text string, part Part) (x float64, missing bool) {
	text = strings.Replace(text, " ", "T", 1)
	var at time.Time
	var err error
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	switch part {
	case Year:
		return float64(at.Year()), false
	case Month:
		return float64(at.Month()), false
	case Day:
		return float64(at.Day()), false
	case Weekday:
		return [...]float64{7, 1, 2, 3, 4, 5, 6}[at.Weekday()], false
	}
	return float64(at.Hour()) + float64(at.Minute())/60, len(text) == len(time.DateOnly)
}

// wordBuckets returns the buckets of the words of a text.
func wordBuckets(s *Source, fields map[string]string) map[int]bool {
	text, set := []rune(fields[s.Column]), map[int]bool{}
	if slices.Contains(s.Tokens, string(text)) {
		return set
	}
	text = text[:min(len(text), 32*s.Words)]
	words := regexp.MustCompile(`[\p{L}\p{M}\p{N}]+`).FindAllString(string(text), s.Words)
	for _, word := range words {
		letters := []rune(word)
		for i := range letters {
			letters[i] = unicode.ToLower(letters[i])
		}
		set[int(murmur3(string(letters[:min(len(letters), 32)]), s.Seed)%uint32(s.Buckets))] = true
	}
	return set
}

// hat computes a hat by the two lines that bound it.
func hat(t rapid.TB, c Coordinate, fields map[string]string) float64 {
	s, j := c.Sources[0], c.Position
	x, missing := quantity(t, s, fields)
	if missing {
		return 0
	}
	x = math.Min(math.Max(x, s.Knots[0]), s.Knots[len(s.Knots)-1])
	h := 1.0
	if j > 0 {
		h = math.Min(h, (x-s.Knots[j-1])/(s.Knots[j]-s.Knots[j-1]))
	}
	if j+1 < len(s.Knots) {
		h = math.Min(h, (s.Knots[j+1]-x)/(s.Knots[j+1]-s.Knots[j]))
	}
	return math.Max(h, 0)
}

// base computes the base of a coordinate from its description alone.
func base(t rapid.TB, c Coordinate, fields map[string]string, vector []float64) float64 {
	indicator := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	switch {
	case c.Kind == "public":
		return publicOutput(t, c, fields, vector)
	case c.Kind == "fourier":
		angle := c.Derived.Phase
		for j, w := range c.Derived.Frequencies {
			if s := c.Sources[0]; s.Column == "" {
				angle += w * scaledNumber(s, vector[j])
			} else {
				angle += w * scaledValue(t, c.Sources[j], fields)
			}
		}
		return c.Max * math.Cos(angle)
	case c.Kind == "polynomial":
		v := 1.0
		for _, s := range c.Sources {
			v *= scaledValue(t, s, fields)
		}
		return v
	case c.Kind == "cross":
		number := 0
		for i, s := range c.Sources {
			p := position(t, s, fields)
			if p < 0 {
				return 0
			}
			if at := c.Derived.Positions; at != nil && at[i] != p {
				return 0
			}
			number = number*s.Positions() + p
		}
		if d := c.Derived; d.Buckets > 0 {
			number = int(murmur3([]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)},
				d.Seed) % uint32(d.Buckets))
		}
		if s := c.Derived.Scaled; s != nil && number == c.Position {
			return scaledValue(t, s, fields)
		}
		return indicator(number == c.Position)
	case c.Kind == "missing":
		_, missing := quantity(t, c.Sources[0], fields)
		return indicator(missing)
	case c.Column == "": // of a vector
		i, err := strconv.Atoi(c.Name[1:])
		if err != nil {
			t.Fatal(err)
		}
		return (scaledNumber(c.Sources[0], vector[i-1]) - c.Sources[0].Offset) / c.Sources[0].Factor
	case c.Kind == "text":
		set := wordBuckets(c.Sources[0], fields)
		return indicator(set[c.Position]) / math.Sqrt(max(1, float64(len(set))))
	case c.Kind == "hats":
		return hat(t, c, fields)
	case c.Kind == "numeric", c.Kind == "indicator":
		return (scaledValue(t, c.Sources[0], fields) - c.Sources[0].Offset) / c.Sources[0].Factor
	}
	return indicator(position(t, c.Sources[0], fields) == c.Position)
}

// bases computes all of them for a row.
func bases(t rapid.TB, m *FeatureMap, row Row) []float64 {
	t.Helper()
	fields := make(map[string]string)
	var vector []float64
	if m.vector != nil {
		vector = make([]float64, m.vector.dimension)
		for k, i := range row.Index {
			vector[i] = row.Value[k]
		}
	} else {
		for i, name := range m.Schema().Columns {
			fields[name] = strings.TrimSpace(row.Fields[i])
		}
	}
	out := make([]float64, len(m.Coordinates()))
	for j, c := range m.Coordinates() {
		out[j] = base(t, c, fields, vector)
		if slack := 1e-9 * (1 + math.Abs(c.Min) + math.Abs(c.Max)); !(out[j] >= c.Min-slack && out[j] <= c.Max+slack) {
			t.Fatalf("coordinate %s: base %v outside [%v, %v]", c.Name, out[j], c.Min, c.Max)
		}
	}
	return out
}

// TestCoordinatesSayItAll: the description of the coordinates is enough to compute every vector.
func TestCoordinatesSayItAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.NormBound = 0 // nothing is scaled down
		m := mustCompile(t, s)
		row := drawRow(t, s, true)
		want := bases(t, m, row)
		var e convex.Example
		if err := m.Map(row, &e); err != nil {
			t.Fatal(err)
		}
		got := make([]float64, m.Dim())
		e.AddTo(got, 1)
		for j, c := range m.Coordinates() {
			if want := c.Factor*want[j] + c.Offset; math.Abs(got[j]-want) > 1e-9*(1+math.Abs(want)+math.Abs(c.Offset)) {
				t.Fatalf("coordinate %s: %v, by its description %v", c.Name, got[j], want)
			}
		}
	})
}

// TestNamesAreUnique: names are unique, whatever the columns and words are called.
func TestNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mustCompile(t, drawSpec(t))
		seen := map[string]bool{}
		for _, n := range m.Names() {
			if seen[n] {
				t.Fatalf("two coordinates %q", n)
			}
			seen[n] = true
		}
	})
	odd := mustCompile(t, mustParse(t, strings.Replace(plain, "[age, job, url, y]", `[age, job, url, "job=a", "url#1", y]`,
		1),
		"features.crosses=[{columns: [job, url]}]",
		`features.columns=[{column: job, kind: categorical, vocabulary: [a, "a&url#1"]}, {column: "job=a", kind: numeric, min: 0, max: 1}, {column: url, kind: hashed, buckets: 2}, {column: "url#1", kind: numeric, min: 0, max: 1}]`))
	want := []string{"job=a", `job="a&url#1"`, `"job=a"`, "url#0", "url#1", `"url#1"`, "job=a&url#0", "job=a&url#1",
		`job="a&url#1"&url#0`, `job="a&url#1"&url#1`}
	if got := odd.Names(); !slices.Equal(got, want) {
		t.Errorf("names %q,\nwant  %q", got, want)
	}
}
