package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// TestEvaluateFigures against numbers that a person can check.
func TestEvaluateFigures(t *testing.T) {
	_, p := released(t, parsed(t, numbers), 0, 0, 0, 0) // predicts the middle: 500
	rows, err := source.New(strings.NewReader("30,a<b,100\n90,c&d,900\n50,a<b,500\n"), p.Features)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	e, err := p.Evaluate(rows.All(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	requireFigures(t, e, `{"examples":3,"invalid":0,"loss":0.2133,"r2":0,"error":326.5986,"rmse":326.5986,"mae":266.6667,
		"baseline":{"value":500,"loss":0.2133,"error":326.5986,"mae":266.6667}}`)
	none := func(yield func(task.Row, error) bool) { yield(task.Row{}, &task.RowError{Line: 1}) }
	if _, err := p.Evaluate(none, Options{}); err == nil || !strings.Contains(err.Error(), "1 rows do not") {
		t.Errorf("no example at all: %v", err)
	}
	broken := errors.New("the disk is gone")
	ends := func(yield func(task.Row, error) bool) { yield(task.Row{}, broken) }
	if _, err := p.Evaluate(ends, Options{}); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
}

// requireFigures compares an evaluation with JSON, numbers to four digits after the point.
func requireFigures(t *testing.T, e any, want string) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(data, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	if where := difference(a, b); where != "" {
		t.Errorf("%s\n%s, want\n%s", where, data, want)
	}
}

// difference returns the path at which two values from JSON differ; empty: nowhere.
func difference(a, b any) string {
	switch b := b.(type) {
	case float64:
		if a, ok := a.(float64); ok && math.Abs(a-b) <= 1e-4 {
			return ""
		}
	case []any:
		if a, ok := a.([]any); ok && len(a) == len(b) {
			for i := range b {
				if d := difference(a[i], b[i]); d != "" {
					return fmt.Sprintf("%d: %s", i, d)
				}
			}
			return ""
		}
	case map[string]any:
		if a, ok := a.(map[string]any); ok && len(a) == len(b) {
			for key := range b {
				if d := difference(a[key], b[key]); d != "" {
					return key + ": " + d
				}
			}
			return ""
		}
	default:
		if a == b {
			return ""
		}
	}
	return fmt.Sprintf("%v, want %v", a, b)
}

// losses of one column x, whose events below are at x = 0, or where the score is x itself.
const lossFile = `
version: 1
name: losses
events: {format: csv, columns: [x, y]}
features: {columns: [{column: x, kind: numeric, min: -4, max: 4, scale: raw}]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

func evaluated(t *testing.T, model, label, events string, o Options, theta ...float64) (Evaluation, error) {
	t.Helper()
	_, p := released(t, parsed(t, lossFile+"model: {radius: 5, "+model+"}\nlabel: {column: y, "+label+"}\n"), theta...)
	rows, err := source.New(strings.NewReader(events), p.Features)
	if err != nil {
		t.Fatalf("%s: %v", model, err)
	}
	defer rows.Close()
	return p.Evaluate(rows.All(), o)
}

const yesNo = "positive: [yes], negative: [no]"

// TestEvaluateEveryLoss on a few events each.
func TestEvaluateEveryLoss(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		model, label, events string
		theta                []float64
		want                 string
	}{
		{"loss: quantile, level: 0.75", "min: -10, max: 10, scale: raw", "0,1\n0,3\n0,9\n", []float64{5, 3},
			// misses -2, 0, 6: pinball (0.25 2 + 0 + 0.75 6)/3; the quantile is 9, with misses -8, -6, 0. Squares
			// 40 of 104/3.
			`{"examples":3,"invalid":0,"loss":1.6667,"r2":-0.1538,"error":3.6515,"rmse":3.6515,"mae":2.6667,"coverage":0.6667,"quantile_loss":1.6667,
				"baseline":{"value":9,"loss":1.1667,"error":5.7735,"mae":4.6667,"quantile_loss":1.1667}}`},
		{"loss: logistic", yesNo, "2,yes\n-1,no\n1,no\n-1,yes\n3,yes\n", []float64{1, 0},
			// AUC: of 6 pairs 2>-1, 2>1, 3>-1, 3>1 are in order, -1 = -1 is half, -1 < 1 is not. Losses
			// ln(1+exp(-m)) of margins 2, 1, -1, -1, 3: 0.126928, 0.313262, 1.313262, 1.313262, 0.048587. The
			// shares 0.4 and 0.6 have 0.673012. Probabilities 0.880797, 0.268941 (twice, one occurs), 0.731059
			// (does not), 0.952574.
			`{"examples":5,"invalid":0,"loss":0.6231,"accuracy":0.6,"log_loss":0.6231,"auc":0.75,"classes":["no","yes"],
				"confusion":[[1,1],[1,2]],"precision":0.6667,"recall":0.6667,"calibration_error":0.2719,
				"reliability":[{"low":0.2,"high":0.3,"events":2,"probability":0.2689,"occurred":0.5},{"low":0.7,"high":0.8,"events":1,"probability":0.7311,"occurred":0},
					{"low":0.8,"high":0.9,"events":1,"probability":0.8808,"occurred":1},{"low":0.9,"high":1,"events":1,"probability":0.9526,"occurred":1}],
				"baseline":{"class":"yes","loss":0.6730,"accuracy":0.6,"log_loss":0.6730}}`},
		{"loss: softmax, class_weights: [1, 2, 1]", "classes: [red, green, blue]", "0,red\n0,blue\n0,blue\n0,green\n",
			[]float64{0, 0, 0, 1, 0, 2},
			// ln(1 + e + e^2) = 2.4076, less the scores 0, 2, 2 and twice 1: the loss has weights, the log loss has
			// not. Constant: shares with weights are 1, 2, 2 of 5, which costs (ln 5 + 2 ln 2.5 + 2 ln 2.5)/4;
			// without them 1, 1, 2 of 4, (2 ln 4 + 2 ln 2)/4.
			`{"examples":4,"invalid":0,"loss":1.5095,"accuracy":0.5,"log_loss":1.1576,"auc":0.5,"classes":["red","green","blue"],
				"confusion":[[0,0,1],[0,0,1],[0,0,2]],"precision":0.1667,"recall":0.3333,"calibration_error":0.1652,
				"reliability":[{"low":0.6,"high":0.7,"events":4,"probability":0.6652,"occurred":0.5}],
				"baseline":{"class":"blue","loss":1.3187,"accuracy":0.5,"log_loss":1.0397}}`},
		{"loss: hinge", yesNo, "0,yes\n0,no\n0,yes\n", []float64{0, 0.5},
			// All scores are equal. The best constant score is 1: a loss of 2 for the no.
			`{"examples":3,"invalid":0,"loss":0.8333,"accuracy":0.6667,"auc":0.5,"classes":["no","yes"],"confusion":[[0,1],[0,2]],
				"precision":0.6667,"recall":1,"baseline":{"class":"yes","loss":0.6667,"accuracy":0.6667}}`},
		{"loss: poisson, score_bound: 2", "max: 20", "0,2\n0,2\n0,8\n", []float64{0, math.Ln2},
			// misses 0, 0, 6; half the deviance of 8 from 2 is 8 ln 4 - 6; the mean is 4, half deviances 2 ln(1/2)
			// + 2 twice and 8 ln 2 - 4.
			`{"examples":3,"invalid":0,"loss":1.6968,"r2":-0.5,"error":3.4641,"rmse":3.4641,"mae":2,
				"baseline":{"value":4,"loss":0.9242,"error":2.8284,"mae":2.6667}}`},
		{"loss: absolute", "min: 0, max: 10, scale: raw", "0,1\n0,3\n0,x\n0,9\n", []float64{0, 2},
			// squares 1, 1 and 49; of labels around their mean 104/3
			`{"examples":3,"invalid":1,"loss":3,"r2":-0.4712,"error":4.1231,"rmse":4.1231,"mae":3,
				"baseline":{"value":3,"loss":2.6667,"error":3.6515,"mae":2.6667}}`},
	} {
		t.Run(strings.Fields(c.model)[1], func(t *testing.T) {
			e, err := evaluated(t, c.model, c.label, c.events, Options{}, c.theta...)
			if err != nil {
				t.Fatal(err)
			}
			requireFigures(t, e, c.want)
			if e.OfClasses == nil || len(e.Classes) > 2 {
				if _, err := evaluated(t, c.model, c.label, c.events, Options{Threshold: &half}, c.theta...); err == nil {
					t.Error("a threshold is accepted where nothing is decided between two classes")
				}
			}
		})
	}
}

// TestAreaIsOfProbabilities: of several classes events are ordered by a class's probability. Their scores have
// another order, for a large event has large scores of all classes.
func TestAreaIsOfProbabilities(t *testing.T) {
	// Scores (4x, 3x, 0): red is the more probable the larger x is, and green has the largest probability, not
	// score, at x = 1.
	e, err := evaluated(t, "loss: softmax", "classes: [red, green, blue]", "-4,blue\n4,red\n1,green\n-3,blue\n3,red\n",
		Options{}, 4, 0, 3, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.AUC == nil || *e.AUC != 1 {
		t.Errorf("the area is %v, want 1: every class's probability is largest at its own events", *e.AUC)
	}
}

// TestThreshold: above it, in probability or in score, is the positive class.
func TestThreshold(t *testing.T) {
	const events = "2,yes\n-1,no\n1,no\n-1,yes\n3,yes\n"
	for _, c := range []struct {
		loss      string
		threshold float64
		want      string // of the confusion matrix
	}{
		{"logistic", 0.5, "[[1 1] [1 2]]"}, {"logistic", 0.9, "[[2 0] [2 1]]"}, {"logistic", 0.2, "[[0 2] [0 3]]"},
		{"hinge", 1.5, "[[2 0] [1 2]]"},
		{"logistic", 1, ""}, {"logistic", 0, ""}, {"logistic", math.NaN(), ""}, {"hinge", math.Inf(1), ""},
	} {
		e, err := evaluated(t, "loss: "+c.loss, yesNo, events, Options{Threshold: &c.threshold}, 1, 0)
		if got := ""; err == nil {
			got = fmt.Sprint([][]int(e.Confusion))
			if got != c.want || *e.Threshold != c.threshold {
				t.Errorf("%s above %v: %s, want %s", c.loss, c.threshold, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s above %v: %v", c.loss, c.threshold, err)
		}
	}
}

// zeros returns zero parameters of a loss in lossFile, of three classes if it is softmax.
func zeros(model string) []float64 {
	if strings.Contains(model, "softmax") {
		return make([]float64, 6)
	}
	return make([]float64, 2)
}

// TestLabelsThatSayNothing: labels that say nothing are refused: a label that is typed wrong would be a
// perfect model.
func TestLabelsThatSayNothing(t *testing.T) {
	for _, c := range []struct{ model, label, events, want string }{
		{"loss: logistic", yesNo, "0,no\n0,YES\n0,no\n", `class "yes" never occurs in 2 rows`},
		{"loss: hinge", yesNo, "0,yes\n0,yes\n", `class "no" never occurs in 2 rows`},
		{"loss: softmax", "classes: [red, green, blue]", "0,red\n0,blue\n", `class "green" never occurs in 2 rows`},
		{"loss: squared", "min: 0, max: 1", "0,1\n0,2\n", "all 2 are equal"},
		{"loss: poisson, score_bound: 2", "max: 20", "0,3\n0,3\n", "all 2 are equal"},
	} {
		theta := zeros(c.model)
		if _, err := evaluated(t, c.model, c.label, c.events, Options{}, theta...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.model, err, c.want)
		}
		e, err := evaluated(t, c.model, c.label, c.events, Options{Absent: true}, theta...)
		if err != nil {
			t.Errorf("%s, where it is allowed: %v", c.model, err)
		}
		if data, err := json.Marshal(e); err != nil {
			t.Errorf("%s: %s, %v", c.model, data, err)
		}
	}
	_, p := released(t, parsed(t, lossFile+"model: {radius: 5, loss: softmax}\nlabel: {column: y, classes: [a, b, c]}\n"),
		zeros("softmax")...)
	for labels, want := range map[string][2]bool{"012": {true, true}, "01": {true, false}, "11": {false, false},
		"1": {true, false}} {
		var examples []convex.Example
		for _, y := range labels {
			examples = append(examples, convex.Example{Value: []float64{0, 1}, Label: float64(y - '0')})
		}
		if got := [2]bool{p.ValidateLabels(examples, false) == nil, p.ValidateLabels(examples, true) == nil}; got != want {
			t.Errorf("labels %s: accepted %v, want %v", labels, got, want)
		}
	}
}

// TestBaselineIsTheBestConstant: no other constant score has a smaller loss, for every loss whose baseline is said
// to have the least, weights and label noise too.
func TestBaselineIsTheBestConstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([][2]string{{"loss: logistic", yesNo}, {"loss: logistic, class_weights: [3, 1]", yesNo},
			{"loss: logistic, label_noise: 0.1", yesNo},
			{"loss: hinge", yesNo}, {"loss: smoothed-hinge, width: 0.5", yesNo}, {"loss: softmax, class_weights: [1, 5, 2]",
				"classes: [a, b, c]"},
			{"loss: squared", "min: -3, max: 9"}, {"loss: absolute", "min: -3, max: 9"}, {"loss: quantile, level: 0.9",
				"min: -3, max: 9"},
			{"loss: poisson, score_bound: 3", "max: 20"}}).Draw(t, "loss")
		spec := parsed(t, lossFile+"model: {radius: 5, "+c[0]+"}\nlabel: {column: y, "+c[1]+"}\n")
		_, p := released(t, spec, zeros(c[0])...)
		labels := p.Features.Labels()
		var examples []convex.Example
		for range rapid.IntRange(2, 12).Draw(t, "events") {
			y := rapid.SampledFrom(labels).Draw(t, "label")
			if spec.Model.Loss == "squared" || spec.Model.Loss == "absolute" || spec.Model.Loss == "quantile" {
				y = rapid.Float64Range(labels[0], labels[1]).Draw(t, "number")
			}
			examples = append(examples, convex.Example{Value: []float64{0, 1}, Label: y})
		}
		if p.ValidateLabels(examples, true) != nil {
			return // the best constant may be infinite
		}
		least := p.Baseline(examples, examples).Loss
		scores := make([]float64, p.Features.Outputs())
		for i := range scores {
			scores[i] = rapid.Float64Range(-4, 4).Draw(t, "score")
		}
		other := 0.0
		for _, e := range examples {
			other += p.lossOf(scores, e.Label) / float64(len(examples))
		}
		if other < least-1e-9 {
			t.Fatalf("%s: a constant score of %v has loss %v, the baseline %v", c[0], scores, other, least)
		}
	})
}

// unlisted is a loss that the table of losses has no row of.
type unlisted struct{ convex.Loss }

func (unlisted) Name() string { return "unlisted" }

// TestBestConstantIsSearched: the best constant of a loss without a formula for it is searched among the labels; with
// four of five labels equal, the Huber loss's is near these, and not the mean.
func TestBestConstantIsSearched(t *testing.T) {
	spec := parsed(t, lossFile+"model: {radius: 5, loss: huber, width: 0.5}\nlabel: {column: y, min: -3, max: 9, scale: raw}\n")
	_, p := released(t, spec, 0, 0)
	for _, loss := range []convex.Loss{p.Loss, unlisted{p.Loss}} {
		p.Loss = loss
		l := newLabels(p)
		for _, y := range []float64{1, 1, 1, 1, 9} {
			l.add(y, 0)
		}
		if got := l.constant()[0]; math.Abs(got-1.125) > 1e-6 { // 4 (z - 1) = 0.5
			t.Errorf("%s: best constant %v, want 1.125", loss.Name(), got)
		}
	}
}

// TestWorseThanTheConstant: of the same rows, a model that is worse than their mean says so with both figures, and one
// that is as good does not.
func TestWorseThanTheConstant(t *testing.T) {
	for label, want := range map[string]string{
		"100,500,900": "", "900,900,960": "root mean squared error 420.95, the constant has 28.284",
	} {
		_, p := released(t, parsed(t, numbers), 0, 0, 0, 0) // predicts the middle: 500
		var data strings.Builder
		for y := range strings.SplitSeq(label, ",") {
			fmt.Fprintf(&data, "30,a<b,%s\n", y)
		}
		rows, err := source.New(strings.NewReader(data.String()), p.Features)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluate(rows.All(), Options{})
		if err = errors.Join(err, rows.Close()); err != nil {
			t.Fatal(err)
		}
		if e.Worse() != want {
			t.Errorf("labels %s: %q, want %q", label, e.Worse(), want)
		}
	}
}
