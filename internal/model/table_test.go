package model

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// predicted scores data without labels.
func predicted(t *testing.T, p Predictor, format, data string) (lines string, count scored, unfit []string) {
	t.Helper()
	rows, err := source.New(strings.NewReader(data), p.Features.Unlabelled())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out strings.Builder
	table, err := NewTable(&out, format, p)
	if err != nil {
		t.Fatal(err)
	}
	count, err = p.Score(rows.All(), table, ScoreOptions{Unfit: func(bad *task.RowError) {
		unfit = append(unfit, bad.Error())
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), count, unfit
}

// TestPredictLines by hand, for a loss of every kind, in both formats.
func TestPredictLines(t *testing.T) {
	const head = `
version: 1
name: lines
events: {format: csv, columns: [x, y]}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1, scale: raw}]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`
	for _, c := range []struct {
		model, label string
		theta        []float64
		csv, jsonl   string
	}{
		{"loss: logistic", `positive: ["a,b"], negative: ["<c"]`, []float64{500, -500},
			"line,score,probability,class\n1,0,0.5,<c\n2,,,\n3,-1000,0,<c\n",
			`{"line":1,"score":0,"probability":0.5,"class":"<c"}` + "\n" + `{"line":2,"score":null}` + "\n" +
				`{"line":3,"score":-1000,"probability":0,"class":"<c"}` + "\n"},
		{"loss: hinge", `positive: ["a,b"], negative: ["<c"]`, []float64{-1, 0},
			"line,score,class\n1,-1,<c\n2,,\n3,1,\"a,b\"\n",
			`{"line":1,"score":-1,"class":"<c"}` + "\n" + `{"line":2,"score":null}` + "\n" +
				`{"line":3,"score":1,"class":"a,b"}` + "\n"},
		{"loss: softmax", `classes: [r, "<g"]`, []float64{0, 1, 0, 1},
			"line,score:r,score:<g,probability:r,probability:<g,class\n1,1,1,0.5,0.5,r\n2,,,,,\n3,1,1,0.5,0.5,r\n",
			`{"line":1,"score":{"r":1,"<g":1},"probability":{"r":0.5,"<g":0.5},"class":"r"}` + "\n" + `{"line":2,"score":null}` +
				"\n" +
				`{"line":3,"score":{"r":1,"<g":1},"probability":{"r":0.5,"<g":0.5},"class":"r"}` + "\n"},
		{"loss: absolute", `min: 0, max: 8, scale: symmetric`, []float64{0.75, 0.5}, // 9 is above the largest label
			"line,score,prediction\n1,9,8\n2,,\n3,3,3\n",
			`{"line":1,"score":9,"prediction":8}` + "\n" + `{"line":2,"score":null}` + "\n" +
				`{"line":3,"score":3,"prediction":3}` + "\n"},
		{"loss: poisson, score_bound: 1", `max: 8`, []float64{800, -800},
			"line,score,prediction\n1,0,1\n2,,\n3,-1600,0\n",
			`{"line":1,"score":0,"prediction":1}` + "\n" + `{"line":2,"score":null}` + "\n" +
				`{"line":3,"score":-1600,"prediction":0}` + "\n"},
	} {
		spec := parsed(t, head+"model: {radius: 5, "+c.model+"}\nlabel: {column: y, "+c.label+"}\n")
		_, p := released(t, spec, c.theta...)
		for format, want := range map[string]string{CSV: c.csv, JSONL: c.jsonl} {
			got, count, unfit := predicted(t, p, format, "1\nsecret\n-7\n") // -7 is moved to -1
			if got != want {
				t.Errorf("%s, %s:\n%s, want\n%s", c.model, format, got, want)
			}
			if count != (scored{Rows: 3, Invalid: 1}) || len(unfit) != 1 || !strings.Contains(unfit[0], "line 2, column x") ||
				strings.Contains(unfit[0], "secret") {
				t.Errorf("%s: %+v, %q", c.model, count, unfit)
			}
		}
	}
	_, p := released(t, parsed(t, words), 1, 2, 3, 4)
	if _, err := NewTable(nil, "xml", p); err == nil {
		t.Error("an unknown format is accepted")
	}
}

// TestPredictIsTheProduct: for any task the score is the product of the mapped row with the parameters, in the units of
// the label where it is a number, of scale log the logarithm.
func TestPredictIsTheProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, theta := drawTask(t)
		_, p := released(t, spec, theta...)
		row := drawRow(t, spec)
		var out strings.Builder
		table, err := NewTable(&out, JSONL, p)
		if err != nil {
			t.Fatal(err)
		}
		count, err := p.Score(func(yield func(task.Row, error) bool) { yield(row, nil) }, table, ScoreOptions{AtOnce: true})
		if err != nil {
			t.Fatal(err)
		}
		e, valid := mapped(t, p, row)
		if (count.Invalid == 0) != valid || count.Rows != 1 {
			t.Fatalf("%+v of a row that is valid: %v", count, valid)
		}
		var line struct {
			Score json.RawMessage `json:"score"`
		}
		if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
			t.Fatal(err)
		}
		if !valid {
			if string(line.Score) != "null" {
				t.Fatalf("%s for a row that is not valid", out.String())
			}
			return
		}
		got := map[string]float64{}
		classes := p.Features.Classes()
		if p.Features.Outputs() == 1 {
			classes = []string{""}
			line.Score = []byte(`{"":` + string(line.Score) + `}`)
		}
		if err := json.Unmarshal(line.Score, &got); err != nil || len(got) != len(classes) {
			t.Fatalf("%s: %v", out.String(), err)
		}
		x := make([]float64, p.Features.Dim())
		e.AddTo(x, 1)
		for k, class := range classes {
			var want float64
			for j, v := range x {
				want += v * theta[k*len(x)+j] // not the theta that was printed and read back
			}
			unit := 1.0
			if spec.Label.Max > spec.Label.Min && spec.Model.Loss != "poisson" {
				low, high := spec.Label.Min, spec.Label.Max
				switch spec.Label.Scale {
				case task.Unit:
					unit, want = high-low, low+want*(high-low)
				case task.Symmetric:
					unit, want = (high-low)/2, (low+high)/2+want*(high-low)/2
				case task.Log:
					log := func(y float64) float64 { return math.Copysign(math.Log(1+math.Abs(y)/spec.Label.Unit), y) }
					low, high = log(low), log(high)
					unit, want = (high-low)/2, (low+high)/2+want*(high-low)/2
				}
			}
			want += e.Offset
			if math.Abs(got[class]-want) > 1e-8*(200+unit*(1+10*float64(len(x))*p.Features.Bound())) {
				t.Fatalf("score %v of class %q, want %v", got[class], class, want)
			}
		}
	})
}

// TestScoreEnds: scoring ends with the first error of the source or of the writer, and returns it.
func TestScoreEnds(t *testing.T) {
	_, p := released(t, parsed(t, words), 1, 2, 3, 4)
	broken := errors.New("the disk is full")
	table, err := NewTable(full{broken}, CSV, p)
	if err != nil {
		t.Fatal(err)
	}
	two := func(yield func(task.Row, error) bool) {
		_ = yield(task.Row{Fields: []string{"1", "a<b"}}, nil) && yield(task.Row{}, broken)
	}
	if count, err := p.Score(two, table, ScoreOptions{AtOnce: true}); !errors.Is(err, broken) || count.Rows != 1 {
		t.Errorf("a full disk: %+v, %v", count, err)
	}
	if table, err = NewTable(&strings.Builder{}, CSV, p); err != nil {
		t.Fatal(err)
	}
	if count, err := p.Score(two, table, ScoreOptions{}); !errors.Is(err, broken) || count.Rows != 1 {
		t.Errorf("a source that breaks: %+v, %v", count, err)
	}
}

type full struct{ error }

func (f full) Write([]byte) (int, error) { return 0, f.error }

// TestScoreKeepsWhatWasScored: where the data break off, the lines before are whole.
func TestScoreKeepsWhatWasScored(t *testing.T) {
	_, p := released(t, parsed(t, words), 1, 2, 3, 4)
	var out strings.Builder
	table, err := NewTable(&out, CSV, p)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	count, err := p.Score(func(yield func(task.Row, error) bool) {
		_ = yield(task.Row{Line: 1}, &task.RowError{Line: 1}) && yield(task.Row{}, broken)
	}, table, ScoreOptions{})
	if !errors.Is(err, broken) || count.Rows != 1 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%+v, %v, wrote %q", count, err, out.String())
	}
}

// TestPredictAtAThreshold: predict and evaluate decide alike, whatever the threshold.
func TestPredictAtAThreshold(t *testing.T) {
	_, p := released(t, parsed(t, words), 1, 2, 3, 4)
	row := task.Row{Fields: []string{"30", "a<b"}}
	var e convex.Example
	if err := p.Features.Unlabelled().Map(row, &e); err != nil {
		t.Fatal(err)
	}
	var at prediction
	p.predict(e, 0, &at)
	for _, above := range []bool{false, true} {
		threshold := at.Probabilities[0] * 0.9
		if above {
			threshold = 1 - (1-at.Probabilities[0])*0.9
		}
		var out strings.Builder
		table, err := NewTable(&out, CSV, p)
		if err != nil {
			t.Fatal(err)
		}
		one := func(yield func(task.Row, error) bool) { yield(row, nil) }
		if _, err := p.Score(one, table, ScoreOptions{Threshold: &threshold}); err != nil {
			t.Fatal(err)
		}
		want := p.Features.Classes()[1]
		if above {
			want = p.Features.Classes()[0]
		}
		if !strings.HasSuffix(strings.TrimSpace(out.String()), ","+want) {
			t.Errorf("threshold %v, probability %v: %q, want class %s", threshold, at.Probabilities[0], out.String(), want)
		}
	}
	wrong := 2.
	if _, err := p.Score(nil, nil, ScoreOptions{Threshold: &wrong}); err == nil {
		t.Error("a threshold of 2 is accepted")
	}
}
