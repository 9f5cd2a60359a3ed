package model

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func TestModelsThatAreRefused(t *testing.T) {
	good, _ := released(t, parsed(t, words), 1, 2, 3, 4)
	for want, change := range map[string]func(*Snapshot){
		"format_version 2":      func(s *Snapshot) { s.FormatVersion = 2 },
		"declaration":           func(s *Snapshot) { s.Declaration = []byte(`{"version":1}`) },
		"2 weights":             func(s *Snapshot) { s.Weights = Rows{s.Weights[0][1:]} },
		"6 weights":             func(s *Snapshot) { s.Weights = Rows{s.Weights[0], s.Weights[0]} },
		"2 rows of weights":     func(s *Snapshot) { s.Weights = Rows{s.Weights[0][:1], s.Weights[0][:1]} },
		"2 intercepts":          func(s *Snapshot) { s.Intercept = Constants{1, 2} },
		`loss "squared"`:        func(s *Snapshot) { s.Loss = "squared" },
		"not a snapshot in JSO": func(s *Snapshot) { s.Declaration = nil },
	} {
		bad := good
		change(&bad)
		data := encoded(t, bad)
		if bad.Declaration == nil {
			data = data[1:]
		}
		s, err := Parse(data)
		if err == nil {
			_, err = NewPredictor(s, "")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := NewPredictor(good, "parquette"); err == nil || !strings.Contains(err.Error(), "--format") {
		t.Errorf("an unknown format: %v", err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		for _, bad := range []Snapshot{{Weights: Rows{{1}, {2, v}}}, {Intercept: Constants{v}}} {
			if bad.validateFinite() == nil {
				t.Errorf("%v passes as finite", bad)
			}
		}
	}
	if err := good.validateFinite(); err != nil {
		t.Error(err)
	}
}

// TestRowsInJSON: one score is a list and a number, as scripts of users expect; several are lists of them.
func TestRowsInJSON(t *testing.T) {
	for text, s := range map[string]Snapshot{
		`"weights":[1,2],"intercept":3`:             {Weights: Rows{{1, 2}}, Intercept: Constants{3}},
		`"weights":[[1,2],[3,4]],"intercept":[5,6]`: {Weights: Rows{{1, 2}, {3, 4}}, Intercept: Constants{5, 6}},
	} {
		s.FormatVersion, s.Privacy.HonestFraction, s.Declaration = Version, accounting.One, []byte("{}")
		data := encoded(t, s)
		if !strings.Contains(string(data), text) {
			t.Errorf("%s is not in %s", text, data)
		}
		var again Snapshot
		err := json.Unmarshal(data, &again)
		if err != nil || !bytes.Equal(encoded(t, again), data) || len(again.Weights) != len(s.Weights) {
			t.Errorf("%s became %+v, %v", data, again, err)
		}
	}
}

// FuzzPredictor: whatever is in a model file, it is refused with a short error, or scores events.
func FuzzPredictor(f *testing.F) {
	good, _ := released(f, parsed(f, words), 1, 2, 3, 4)
	model := encoded(f, good)
	f.Add(model, "")
	f.Add(model, "libsvm")
	f.Add(bytes.Replace(model, []byte(`"weights":[`), []byte(`"weights":[1e308,`), 1), "jsonl")
	f.Add(bytes.Replace(model, []byte(`"weights":[`), []byte(`"weights":[[],`), 1), "jsonl")
	f.Add([]byte(`{"format_version":1,"declaration":{}}`), "csv")
	f.Fuzz(func(t *testing.T, model []byte, format string) {
		s, err := Parse(model)
		var p Predictor
		if err == nil {
			p, err = NewPredictor(s, task.Format(format))
		}
		if err != nil {
			if n := len(err.Error()); n > 4096+8*(len(model)+len(format)) {
				t.Errorf("an error of %d bytes about a model of %d", n, len(model))
			}
			return
		}
		if len(p.Theta) != p.Loss.Parameters(p.Features.Dim()) {
			t.Fatalf("%d parameters of %d features", len(p.Theta), p.Features.Dim())
		}
		for i, v := range p.Theta {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("parameter %d is %v", i, v)
			}
		}
		if _, err := p.EvaluateExamples([]convex.Example{{Index: []int32{}, Label: 1}}); err != nil {
			t.Error(err)
		}
	})
}
