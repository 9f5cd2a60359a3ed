// Package inspection finds how data fit a task: which rows are invalid and why, which values are moved into
// their bounds, how long the vectors are, what the labels are and whether they come in an order.
//
// It reads the rows themselves, without noise. It is for people who may see the data, runs where the data are,
// and its result is not private: shares and quantiles are computed from the rows. It shows no contents: names
// and words of the declaration, positions of rows, and numbers that many rows have made. A norm is of single
// rows, and the largest is the norm of one row.
package inspection

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// A Report describes how the rows of a file fit a task.
type Report struct {
	Task    string   `json:"task"`
	Rows    int      `json:"rows"`
	Invalid int      `json:"invalid"` // rows that report the zero vector
	Columns []Column `json:"columns"` // in the order of the task, the label last; of libsvm and idx one of all values

	// ClippedShare is the share of the valid rows whose features are longer than NormBound and are scaled down to it.
	ClippedShare float64   `json:"clipped_share"`
	NormBound    float64   `json:"norm_bound"`
	Norms        quantiles `json:"norm_quantiles"` // of the features of valid rows before that, the intercept left out

	// Labels counts the declared classes, or labels in the quarters of their declared range.
	Labels map[string]int `json:"labels"`

	// OrderCorrelation is the correlation of the label with the position of the row; for several classes the
	// correlation ratio. NeighbourCorrelation is the correlation of the label with the label before, which
	// detects blocks too. Deviations is the number of standard deviations by which the larger of both is away
	// from random order. Ordered reports whether that is clear.
	OrderCorrelation     float64 `json:"order_correlation"`
	NeighbourCorrelation float64 `json:"neighbour_correlation"`
	Deviations           float64 `json:"order_deviations"`
	Ordered              bool    `json:"ordered"`

	First []badRow `json:"first_invalid"` // the first few invalid rows

	// Unknown are columns of the task that no event has, where events name their fields (jsonl): typed wrong, or always
	// missing.
	Unknown []string `json:"unknown_columns,omitempty"`

	// Advice is a sentence for people whose data are Ordered: what to do about it.
	Advice string `json:"-"`

	// LabelNames are the keys of Labels in their order.
	LabelNames []string `json:"-"`
}

// A Column counts rows by what becomes of one field.
type Column struct {
	Name    string `json:"column"`
	Invalid int    `json:"invalid"`
	Clamped int    `json:"clamped"`
	Missing int    `json:"missing"`

	Unlisted int `json:"unlisted"` // words outside the vocabulary that are dropped or count as another one
}

// quantiles are quantiles of norms; all are 0 without a valid row.
type quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// A badRow gives the place of an invalid row and the reason, and none of its contents.
type badRow struct {
	File   string `json:"file,omitempty"`
	Line   int64  `json:"line"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
}

// named is the number of invalid rows that are named.
const named = 5

// quarters are the parts that the range of a number is counted in.
const quarters = 4

// Of reads all rows. Data that have no columns of the task are refused with a *source.SchemaError.
func Of(path string, spec *task.Spec) (*Report, error) {
	m, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	rows, err := source.Open(path, m)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	c := newCounter(spec, m)
	for {
		row, err := rows.Next()
		var bad *task.RowError
		switch {
		case err == io.EOF:
			c.Unknown = rows.Unknown()
			return c.report(), nil
		case errors.As(err, &bad):
			c.invalid(bad)
		case err != nil:
			return nil, err
		default:
			m.Inspect(row, &c.one)
			c.add()
		}
	}
}

// adviceOf returns advice on rows in an order.
func adviceOf(spec *task.Spec) string {
	switch {
	case spec.Schedule.Adaptive():
		return "the model follows the order: if it is that of time, leave it. If it is another, mix the rows: ingest publish --shuffle N"
	case spec.Silo == nil:
		return "a round would see labels that are not those of the whole. Mix them: ingest publish --shuffle N"
	case spec.Schedule.Interactive:
		return "that is of no account here: in many passes each report is about all rows"
	}
	return "a report would be about labels that are not those of the whole. Mix the rows of each file before a silo first takes part, and never after"
}

// A counter adds up inspections.
type counter struct {
	Report
	features *task.FeatureMap
	one      task.Inspection
	norms    []float64
	order    *order
	advice   string // about rows in an order
	labels   []int
	low      float64 // of the label as the loss sees it
	high     float64
}

func newCounter(spec *task.Spec, m *task.FeatureMap) *counter {
	c := &counter{features: m, order: newOrder(len(m.Classes())), advice: adviceOf(spec), Report: Report{Task: spec.Name,
		NormBound: m.Longest(), Labels: map[string]int{}, First: []badRow{}}}
	for _, name := range m.Schema().Columns {
		c.Columns = append(c.Columns, Column{Name: name})
	}
	if len(c.Columns) == 0 {
		c.Columns = []Column{{Name: "values"}}
	}
	c.Columns = append(c.Columns, Column{Name: cmp.Or(spec.Label.Column, "label")})
	if c.LabelNames = m.Classes(); c.LabelNames == nil {
		bounds := m.Labels()
		c.low, c.high = bounds[0], bounds[1]
		for i := range quarters {
			at := func(k int) string {
				edge := spec.Label.Min + (spec.Label.Max-spec.Label.Min)*float64(k)/quarters
				if spec.Label.Scale == task.Log { // quarters of the logarithm
					edge = m.InUnits(c.low + (c.high-c.low)*float64(k)/quarters)
				}
				return strconv.FormatFloat(edge, 'g', 6, 64)
			}
			c.LabelNames = append(c.LabelNames, at(i)+" to "+at(i+1))
		}
	}
	c.labels = make([]int, len(c.LabelNames))
	return c
}

func (c *counter) invalid(bad *task.RowError) {
	c.Rows++
	if c.Invalid++; len(c.First) < named {
		c.First = append(c.First, badRow{File: bad.File, Line: bad.Line, Column: bad.Column, Reason: bad.Reason})
	}
}

// add counts the row that was inspected last.
func (c *counter) add() {
	for i, f := range c.one.Columns {
		c.Columns[i].count(f)
	}
	c.Columns[len(c.Columns)-1].count(c.one.Label)
	if c.one.Reason != nil {
		c.invalid(c.one.Reason)
		return
	}
	c.Rows++
	c.norms = append(c.norms, c.one.Norm)
	c.order.add(c.one.Y)
	c.labels[c.position(c.one.Y)]++
}

// position returns the index of a label in LabelNames.
func (c *counter) position(y float64) int {
	switch classes := len(c.features.Classes()); {
	case classes == 2 && y < 0:
		return 0
	case classes > 0:
		return int(y)
	}
	return min(quarters-1, int(quarters*(y-c.low)/(c.high-c.low)))
}

func (c *Column) count(f task.Finding) {
	add := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	add(&c.Invalid, f.Invalid)
	add(&c.Clamped, f.Clamped)
	add(&c.Missing, f.Missing)
	add(&c.Unlisted, f.Unlisted)
}

func (c *counter) report() *Report {
	for i, name := range c.LabelNames {
		c.Labels[name] += c.labels[i]
	}
	if n := len(c.norms); n > 0 {
		slices.Sort(c.norms)
		at := func(q float64) float64 { return c.norms[int(math.Ceil(q*float64(n)))-1] }
		c.Norms = quantiles{at(0.5), at(0.9), at(0.99), at(1)}
		longer := n - upTo(c.norms, c.NormBound*(1+1e-12)) // rounding may put a norm above the bound
		c.ClippedShare = float64(longer) / float64(n)
	}
	c.OrderCorrelation, c.NeighbourCorrelation, c.Deviations = c.order.correlations()
	if c.Ordered = c.Deviations > clearly; c.Ordered {
		c.Advice = c.advice
	}
	return &c.Report
}

// upTo returns how many of the sorted numbers are at most x.
func upTo(sorted []float64, x float64) int {
	at, _ := slices.BinarySearchFunc(sorted, x, func(v, x float64) int {
		if v <= x {
			return -1
		}
		return 1
	})
	return at
}

// Unfit returns an error if no row fits; nil if one does.
func (r *Report) Unfit() error {
	switch {
	case r.Rows == 0:
		return errors.New("no rows")
	case r.Invalid < r.Rows:
		return nil
	}
	first := r.First[0]
	return fmt.Errorf("none of the %d rows fits the task; the first: %w", r.Rows, &task.RowError{File: first.File,
		Line: first.Line, Column: first.Column, Reason: first.Reason})
}
