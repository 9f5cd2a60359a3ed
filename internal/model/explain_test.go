package model

import (
	"iter"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// rowsOf yields rows as a reader does.
func rowsOf(rows []task.Row) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i, row := range rows {
			if row.Line = int64(i + 1); !yield(row, nil) {
				return
			}
		}
	}
}

// TestPartsAddUpToTheScore checks for drawn tasks of every kind of column and every loss that what an event's columns
// contribute, and the base, are its score, and that the base is what the examples score on average.
func TestPartsAddUpToTheScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		_, p := released(t, s.spec, s.theta...)
		var mean, first []float64
		line, valid := int64(0), 0
		for i, row := range s.rows {
			e, ok := mapped(t, p, row)
			if !ok {
				continue
			}
			var got prediction
			p.predict(e, 0, &got)
			scores := append([]float64(nil), got.Scores...)
			if len(scores) > 1 {
				centre(scores)
			}
			if valid++; line == 0 {
				line, first, mean = int64(i+1), scores, make([]float64, len(scores))
			}
			for k, z := range scores {
				mean[k] += z
			}
		}
		got, err := p.Explain(ExplainOptions{Rows: rowsOf(s.rows), Line: line})
		if valid == 0 {
			if err == nil {
				t.Fatal("explained no example")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Examples != valid || got.Invalid != len(s.rows)-valid {
			t.Fatalf("%d examples and %d invalid of %d rows, %d of them valid", got.Examples, got.Invalid, len(s.rows), valid)
		}
		k := 0
		for i := range first {
			if len(first) > 1 && first[i] > first[k] {
				k = i
			}
		}
		tolerance := 1e-9 * (1 + convex.Norm(p.Theta)*p.Features.Bound())
		if !p.Features.Classification() {
			tolerance *= 1 + math.Abs(p.Features.InLabel(1)-p.Features.InLabel(0)) + math.Abs(p.Features.InLabel(0))
		}
		sum := got.Event.Base
		for _, part := range got.Event.Parts {
			sum += part.Contribution
		}
		if math.Abs(sum-got.Event.Score) > tolerance || math.Abs(got.Event.Score-first[k]) > tolerance ||
			math.Abs(got.Event.Base-mean[k]/float64(valid)) > tolerance {
			t.Fatalf("parts add up to %v of score %v (%v), base %v of mean %v", sum, got.Event.Score, first[k], got.Event.Base,
				mean[k]/float64(valid))
		}
	})
}

const explainedFile = `
version: 1
name: explained
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, scale: unit}
    - {column: job, kind: categorical, vocabulary: [a, b], unknown: other}
    - {column: url, kind: hashed, buckets: 4}
label: {column: y, positive: [yes], negative: [no]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

// TestEffectsByHand: contributions at the declared values are weights times values; hashed words list none.
func TestEffectsByHand(t *testing.T) {
	_, p := released(t, parsed(t, explainedFile), 2, 0.5, -1, 0.25, 0, 0, 0, 3, 0.125) // age, a, b, other, url, intercept
	got, err := p.Explain(ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requireFigures(t, got, `{"of":"log odds of \"yes\"","unit":"log odds","intercept":[0.125],"columns":[
		{"column":"age","effect":2,"lowest":{"value":"0","contribution":0},"highest":{"value":"100","contribution":2}},
		{"column":"job","effect":1.5,"lowest":{"value":"b","contribution":-1},"highest":{"value":"a","contribution":0.5}},
		{"column":"url"}]}`)
	rows, err := source.New(strings.NewReader("age,job,url,y\n50,a,x,yes\n100,c,x,no\n"), p.Features)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if got, err = p.Explain(ExplainOptions{Rows: rows.All(), Line: 3}); err != nil {
		t.Fatal(err)
	}
	// age contributes 1 and 2, job .5 and .25; both have the url.
	url := got.Event.Base - 0.125 - 1.5 - 0.375
	if got.Event.Line != 3 || got.Event.Parts[0] != (part{"age", 0.5}) || got.Event.Parts[1] != (part{"job", -0.125}) ||
		url != 0 && url != 3 || math.Abs(*got.Columns[0].Spread-0.5) > 1e-12 {
		t.Errorf("%+v, %+v", got.Event, got.Columns)
	}
}

// TestEffectsOfVectors: of a vector the declared bounds of each coordinate are its values.
func TestEffectsOfVectors(t *testing.T) {
	_, p := released(t, parsed(t, `
version: 1
name: vectors
events: {format: libsvm}
features: {vector: {dimension: 2, min: -1, max: 3, scale: raw}}
label: {positive: [1], negative: [-1]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`), 0.5, -1, 0.25)
	got, err := p.Explain(ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requireFigures(t, got, `{"of":"log odds of \"1\"","unit":"log odds","intercept":[0.25],"columns":[
		{"column":"x2","effect":4,"lowest":{"value":"3","contribution":-3},"highest":{"value":"-1","contribution":1}},
		{"column":"x1","effect":2,"lowest":{"value":"-1","contribution":-0.5},"highest":{"value":"3","contribution":1.5}}]}`)
}

// TestExplainRefuses lines and classes that are not there.
func TestExplainRefuses(t *testing.T) {
	_, p := released(t, parsed(t, explainedFile), make([]float64, 9)...)
	rows := []task.Row{{Fields: []string{"1", "a", "x"}, Label: "yes"}, {Fields: []string{"old", "a", "x"}, Label: "yes"}}
	for want, o := range map[string]ExplainOptions{
		`class "yes"`:     {Class: "yes"},
		"line 3":          {Rows: rowsOf(rows), Line: 3},
		"does not fit":    {Rows: rowsOf(rows), Line: 2},
		"no example fits": {Rows: rowsOf(rows[1:])},
	} {
		if _, err := p.Explain(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
