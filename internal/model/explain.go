package model

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// An Explanation holds the contribution of each column of an event to a score. A contribution is the sum of the
// products of weight and value over the coordinates that are made from the column; with Intercept the contributions of
// an event add up to its score. It describes the model, not the world: how columns that move together share a
// contribution is arbitrary.
type Explanation struct {
	// Of names the score: "log odds of X", "score of X", "logarithm of the count", "logarithm of the number" or "number".
	Of string `json:"of"`
	// Unit names how a contribution acts: "log odds", "log count", "log number", "label" or "score".
	Unit      string         `json:"unit"`
	Intercept []float64      `json:"intercept"` // one for each score, in the order of Classes where there are several
	Classes   []string       `json:"classes,omitempty"`
	Columns   []contribution `json:"columns"` // the largest effect first
	Examples  int            `json:"examples,omitempty"`
	Invalid   int            `json:"invalid,omitempty"` // rows that do not fit; not among Examples
	Event     *explained     `json:"event,omitempty"`
}

// A contribution is the part of a column in the score. With several classes it is the part in Class's score minus the
// mean over the classes, because adding the same number to all classes' scores changes no probability.
type contribution struct {
	Column string `json:"column"` // several for crosses and what else is made from several: a x b
	Class  string `json:"class,omitempty"`
	// Lowest and Highest are among the declared values: bounds, knots, edges and words. They are nil where the declaration
	// lists no values, as of hashed words and texts.
	Lowest  *Valued `json:"lowest,omitempty"`
	Highest *Valued `json:"highest,omitempty"`
	// Effect is the contribution of Highest minus the contribution of Lowest; nil without them.
	Effect *float64 `json:"effect,omitempty"`
	// Mean and Spread (the standard deviation) are of the contributions of the examples; nil without any.
	Mean   *float64 `json:"mean,omitempty"`
	Spread *float64 `json:"spread,omitempty"`
}

// size returns what columns are ordered by: the spread where examples tell it, else the effect.
func (c contribution) size() float64 {
	switch {
	case c.Spread != nil:
		return *c.Spread
	case c.Effect != nil:
		return *c.Effect
	}
	return 0
}

// A Valued holds a declared value and what it contributes.
type Valued struct {
	Value        string  `json:"value"`
	Contribution float64 `json:"contribution"`
}

// An explained holds the prediction for one event in parts.
type explained struct {
	Line  int64   `json:"line"`
	Class string  `json:"class,omitempty"` // of which score the parts are, of several
	Score float64 `json:"score"`           // the sum of Base and of all parts
	// Base holds the score of the average example.
	Base  float64 `json:"base"`
	Parts []part  `json:"parts"` // the largest first
}

// A part holds what a column contributes to one event's score, beyond what it contributes to the average example's.
type part struct {
	Column       string  `json:"column"`
	Contribution float64 `json:"contribution"`
}

// ExplainOptions select what is explained. The zero value explains the declared values alone.
type ExplainOptions struct {
	Class string                     // one of several classes; empty: for each column the one that it moves most
	Rows  iter.Seq2[task.Row, error] // examples that somebody may look at; nil: none
	Line  int64                      // of Rows, the event to explain; 0: none
	Unfit func(*task.RowError)       // is called with each row that does not fit the declaration; it may be nil
}

// Explain returns the contribution of each column.
func (p Predictor) Explain(o ExplainOptions) (Explanation, error) {
	e := newExplainer(p)
	class := -1
	if o.Class != "" {
		if class = slices.Index(e.classes, o.Class); class < 0 {
			return Explanation{}, fmt.Errorf("class %q: want one of %s", o.Class, strings.Join(e.classes, ", "))
		}
	}
	if o.Rows != nil {
		if err := e.read(o); err != nil {
			return Explanation{}, err
		}
	}
	return e.result(class), nil
}

// An explainer adds up contributions by group and score.
type explainer struct {
	Predictor
	groups  []group
	of      []int // the group of each coordinate
	classes []string
	unit    float64 // of a contribution, in units of the printed score
	n       int
	invalid int
	sum     [][]float64 // by group and score
	square  [][]float64
	event   [][]float64 // contributions of the event to explain; nil: none
	line    int64
}

// A group is the coordinates that are made from one column, or together from several.
type group struct {
	name   string
	column string // empty where it is not one
}

func newExplainer(p Predictor) *explainer {
	p.Features = p.Features.Unlabelled()
	e := &explainer{Predictor: p, unit: 1}
	if p.Features.Outputs() > 1 {
		e.classes = p.Features.Classes()
	}
	if !p.Features.Classification() {
		e.unit = p.Features.InLabel(1) - p.Features.InLabel(0)
	}
	known := map[group]int{}
	for _, c := range p.Features.Coordinates() {
		g := groupOf(c)
		i, ok := known[g]
		if !ok {
			i = len(e.groups)
			known[g], e.groups = i, append(e.groups, g)
		}
		e.of = append(e.of, i)
	}
	if p.Features.HasOffset() {
		e.groups = append(e.groups, group{name: "public prediction"})
	}
	e.sum, e.square = e.table(), e.table()
	return e
}

func groupOf(c task.Coordinate) group {
	switch d := c.Derived; {
	case d != nil && d.Block != "":
		return group{name: "public model: " + d.Block}
	case d != nil && c.Kind == "fourier":
		return group{name: "random features"}
	case d != nil && len(d.Columns) > 0:
		return group{name: strings.Join(d.Columns, " x ")}
	case c.Column != "":
		return group{name: c.Column, column: c.Column}
	}
	return group{name: c.Name}
}

func (e *explainer) table() [][]float64 {
	out := make([][]float64, len(e.groups))
	for i := range out {
		out[i] = make([]float64, e.Features.Outputs())
	}
	return out
}

// add overwrites dst with the contributions of a mapped event.
func (e *explainer) add(dst [][]float64, example convex.Example) {
	for _, row := range dst {
		clear(row)
	}
	dim := e.Features.Dim()
	for i, x := range example.Value {
		j := i
		if example.Index != nil {
			j = int(example.Index[i])
		}
		if j >= len(e.of) {
			continue // the intercept
		}
		for k, row := 0, dst[e.of[j]]; k < len(row); k++ {
			row[k] += e.unit * e.Theta[k*dim+j] * x
		}
	}
	if e.Features.HasOffset() {
		dst[len(dst)-1][0] = example.Offset
	}
	if len(e.classes) > 0 {
		for _, row := range dst {
			centre(row)
		}
	}
}

// centre takes the mean from each number.
func centre(row []float64) {
	mean := 0.0
	for _, x := range row {
		mean += x / float64(len(row))
	}
	for k := range row {
		row[k] -= mean
	}
}

// read adds up the contributions of the examples.
func (e *explainer) read(o ExplainOptions) error {
	var (
		example convex.Example
		bad     *task.RowError
		parts   = e.table()
	)
	for row, err := range o.Rows {
		if err == nil {
			err = e.Features.Map(row, &example)
		}
		switch {
		case errors.As(err, &bad):
			if e.invalid++; o.Line > 0 && bad.Line == o.Line {
				return fmt.Errorf("the event to explain does not fit the declaration: %w", bad)
			}
			if o.Unfit != nil {
				o.Unfit(bad)
			}
			continue
		case err != nil:
			return err
		}
		e.add(parts, example)
		e.n++
		for g, row := range parts {
			for k, x := range row {
				e.sum[g][k] += x
				e.square[g][k] += x * x
			}
		}
		if o.Line > 0 && row.Line == o.Line && e.event == nil {
			e.line, e.event = row.Line, e.table()
			for g := range parts {
				copy(e.event[g], parts[g])
			}
		}
	}
	switch {
	case e.n == 0:
		return fmt.Errorf("no example fits the task's declaration (%d rows do not)", e.invalid)
	case o.Line > 0 && e.event == nil:
		return fmt.Errorf("line %d: there is no event", o.Line)
	}
	return nil
}

// result returns the sums as an Explanation: of one class, or of each column's own where class is below 0.
func (e *explainer) result(class int) Explanation {
	out := Explanation{Classes: e.classes, Intercept: e.intercept(), Examples: e.n, Invalid: e.invalid}
	out.Of, out.Unit = e.words()
	declared := e.declared()
	for g := range e.groups {
		best := contribution{Column: e.groups[g].name}
		for k := range e.Features.Outputs() {
			if class >= 0 && k != class {
				continue
			}
			if c := e.contribution(g, k, declared); best.Class == "" && k <= max(class, 0) || c.size() > best.size() {
				best = c
			}
		}
		out.Columns = append(out.Columns, best)
	}
	slices.SortStableFunc(out.Columns, func(a, b contribution) int { return cmp.Compare(b.size(), a.size()) })
	if e.event != nil {
		out.Event = e.explained(class, out.Intercept)
	}
	return out
}

// intercept returns what an event scores to which no column contributes.
func (e *explainer) intercept() []float64 {
	dim, scores := e.Features.Dim(), make([]float64, e.Features.Outputs())
	if dim > len(e.of) {
		index := []int32{int32(dim - 1)}
		e.Features.Scores(scores, e.Theta, convex.Example{Index: index, Value: []float64{e.spec.Intercept}})
	}
	if len(e.classes) > 0 {
		centre(scores)
	}
	if !e.Features.Classification() {
		scores[0] = e.Features.InLabel(scores[0])
	}
	return scores
}

// words name the score and how a contribution acts.
func (e *explainer) words() (of, unit string) {
	switch {
	case len(e.classes) > 0 && e.traits().Scores.Probable():
		return "log probability of a class, less the mean over the classes", "log odds"
	case len(e.classes) > 0:
		return "score of a class, less the mean over the classes", "score"
	case e.Features.Classification() && e.traits().Scores.Probable():
		return fmt.Sprintf("log odds of %q", e.Features.ClassName(1)), "log odds"
	case e.Features.Classification():
		return fmt.Sprintf("score of %q", e.Features.ClassName(1)), "score"
	case e.traits().Constant == convex.LogMeanLabel:
		return "logarithm of the count", "log count"
	case e.spec.Label.Scale == task.Log:
		return "logarithm of the number", "log number"
	}
	return "number", "label"
}

// contribution describes a group's part in score k.
func (e *explainer) contribution(g, k int, declared map[string][]valued) contribution {
	out := contribution{Column: e.groups[g].name}
	if len(e.classes) > 0 {
		out.Class = e.classes[k]
	}
	if list := declared[e.groups[g].name]; len(list) > 1 {
		by := func(a, b valued) int { return cmp.Compare(a.parts[k], b.parts[k]) }
		low, high := slices.MinFunc(list, by), slices.MaxFunc(list, by)
		out.Lowest, out.Highest = &Valued{low.value, low.parts[k]}, &Valued{high.value, high.parts[k]}
		effect := high.parts[k] - low.parts[k]
		out.Effect = &effect
	}
	if e.n > 0 {
		mean := e.sum[g][k] / float64(e.n)
		spread := math.Sqrt(max(0, e.square[g][k]/float64(e.n)-mean*mean))
		out.Mean, out.Spread = &mean, &spread
	}
	return out
}

// explained describes the event, beside the average example.
func (e *explainer) explained(class int, intercept []float64) *explained {
	k, scores := max(class, 0), slices.Clone(intercept)
	for g := range e.event {
		for i, x := range e.event[g] {
			scores[i] += x
		}
	}
	if class < 0 && len(e.classes) > 0 {
		k = slices.Index(scores, slices.Max(scores)) // the predicted one
	}
	out := &explained{Line: e.line, Score: scores[k], Base: intercept[k]}
	if len(e.classes) > 0 {
		out.Class = e.classes[k]
	}
	for g := range e.event {
		mean := e.sum[g][k] / float64(e.n)
		out.Base += mean
		out.Parts = append(out.Parts, part{Column: e.groups[g].name, Contribution: e.event[g][k] - mean})
	}
	slices.SortStableFunc(out.Parts, func(a, b part) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	return out
}
