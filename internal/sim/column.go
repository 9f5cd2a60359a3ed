package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/learner/task"
)

// A column describes the distribution of one field.
type column struct {
	words   []string // most frequent first; nil: a number
	weights []float64
	low     float64
	high    float64
	middle  float64
	spread  float64
	whole   bool
	loading float64  // of the hidden factor
	present float64  // of a vector: how often a value is not 0
	missing []string // what is written for a value that is not there; none where no value may be missing
}

// A group is fields of which one is 1.
type group struct {
	column       // its words are positions
	fields []int // of the row, by position
}

// gaps is the share of values that are missing in a column that allows it.
const gaps = 0.03

// newColumn chooses how a field is drawn, from all features that are made of it.
func newColumn(r *rand.Rand, spec *task.Spec, name string, kind task.ColumnKind) (column, error) {
	out := column{loading: 0.8 * (2*r.Float64() - 1), low: math.Inf(1), high: math.Inf(-1)}
	may := true
	for _, c := range spec.Features.Columns {
		if !slices.Contains(c.Fields(), name) {
			continue
		}
		if may = may && len(c.Missing.Tokens) > 0; may {
			out.missing = c.Missing.Tokens
		}
		if c.Part != "" {
			out.words = dates()
			continue
		}
		switch c.Kind {
		case task.Numeric:
			switch c.Scale {
			case task.Standard:
				out.widen(c.Mean-2*c.Std, c.Mean+2*c.Std)
			case task.Log:
				out.widen(task.FromLog(c.Mean-2*c.Std, c.Unit), task.FromLog(c.Mean+2*c.Std, c.Unit))
			default:
				out.widen(c.Min, c.Max)
			}
		case task.Bucketed:
			margin := 1.0
			if n := len(c.Edges); n > 1 {
				margin = (c.Edges[n-1] - c.Edges[0]) / float64(n-1)
			}
			out.widen(c.Edges[0]-margin, c.Edges[len(c.Edges)-1]+margin)
		case task.Hats:
			out.widen(c.Knots[0], c.Knots[len(c.Knots)-1])
		case task.Categorical:
			out.words = slices.Clone(c.Vocabulary)
		case task.Indicator:
			out.words = []string{"0", "1"}
		case task.Hashed, task.Text:
			for i := range c.Buckets {
				out.words = append(out.words, "word"+strconv.Itoa(i))
			}
		case task.OneHot:
			out.widen(0, 1)
		default:
			return column{}, fmt.Errorf("synthetic rows: no rows of kind %s", c.Kind)
		}
	}
	if !may {
		out.missing = nil
	}
	if kind.Number() && out.words != nil { // numbers that are words of another feature, too
		out.words = slices.DeleteFunc(out.words, func(w string) bool {
			_, err := strconv.ParseFloat(w, 64)
			return err != nil
		})
		if len(out.words) == 0 {
			return column{}, fmt.Errorf("synthetic rows: column %s is declared as numbers and as words that are none", name)
		}
	}
	if out.words != nil {
		out.rank(r)
		return out, nil
	}
	out.whole = out.low == math.Trunc(out.low) && out.high == math.Trunc(out.high) && out.high-out.low > 3
	out.place(r, spec.Intercept == 0)
	return out, nil
}

// dates returns dates with times, at all hours and in all months.
func dates() (out []string) {
	for i := range 300 {
		out = append(out, time.Unix(1.7e9, 0).UTC().Add(time.Duration(i)*29*time.Hour).Format(time.RFC3339))
	}
	return out
}

// rank orders the words by how frequent they are: the i-th has weight 1/i.
func (c *column) rank(r *rand.Rand) {
	r.Shuffle(len(c.words), func(i, j int) { c.words[i], c.words[j] = c.words[j], c.words[i] })
	var sum float64
	for i := range c.words {
		sum += 1 / float64(i+1)
		c.weights = append(c.weights, sum)
	}
}

func (c *column) widen(low, high float64) { c.low, c.high = min(c.low, low), max(c.high, high) }

// place puts the middle of a number somewhere into its range: declared bounds are wider than most data. Where a
// task has no intercept, and so expects scores of 0 in the middle, it is 0.
func (c *column) place(r *rand.Rand, through bool) {
	c.middle = c.low + (0.15+0.7*r.Float64())*(c.high-c.low)
	if through {
		c.middle = min(max(0, c.low), c.high)
	}
	c.spread = (0.04 + 0.16*r.Float64()) * (c.high - c.low)
}

// number draws a value of the column for one event's factor.
func (c *column) number(r *rand.Rand, factor float64) float64 {
	z := c.loading*factor + math.Sqrt(1-c.loading*c.loading)*r.NormFloat64()
	x := min(max(c.middle+c.spread*z, c.low), c.high)
	if c.whole {
		x = math.Round(x)
	}
	return x
}

func (c *column) field(r *rand.Rand, factor float64) string {
	if len(c.missing) > 0 && r.Float64() < gaps {
		return c.missing[0]
	}
	if c.words == nil {
		return strconv.FormatFloat(c.number(r, factor), 'g', 8, 64)
	}
	// The factor moves the draw, so that words go together with other fields; the order of frequency stays.
	z := c.loading*factor + math.Sqrt(1-c.loading*c.loading)*r.NormFloat64()
	u := 0.5 * math.Erfc(-z/math.Sqrt2)
	at, _ := slices.BinarySearch(c.weights, u*c.weights[len(c.weights)-1])
	return c.words[min(at, len(c.words)-1)]
}
