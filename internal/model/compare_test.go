package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// compared compares two models of one column on the same text.
func compared(t *testing.T, first, second Predictor, events string) (Comparison, error) {
	t.Helper()
	var rows [2]*source.Reader
	for i, p := range []Predictor{first, second} {
		r, err := source.New(strings.NewReader(events), p.Features)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rows[i] = r
	}
	unfit := 0
	out, err := first.Compare(second, rows[0].All(), rows[1].All(), Options{Unfit: func(*task.RowError) { unfit++ }})
	if err == nil && unfit != out.First.Invalid {
		t.Errorf("%d rows are said not to fit, and %d are counted", unfit, out.First.Invalid)
	}
	return out, err
}

func predictor(t *testing.T, model, label string, theta ...float64) Predictor {
	t.Helper()
	_, p := released(t, parsed(t, lossFile+"model: {radius: 5, "+model+"}\nlabel: {column: y, "+label+"}\n"), theta...)
	return p
}

// TestCompareByHand: differences equal the differences of the two evaluations, on the rows that fit both, and intervals
// are around them.
func TestCompareByHand(t *testing.T) {
	const label = "min: -10, max: 10, scale: raw"
	a, b := predictor(t, "loss: squared", label, 0, 1), predictor(t, "loss: huber, width: 1", label, 1, 0)
	c, err := compared(t, a, b, "1,2\n2,4\nx,3\n-1,0\n3,0\n")
	if err != nil {
		t.Fatal(err)
	}
	// a predicts 1 and misses by 1, 3, -1, -1; b predicts x and misses by 1, 2, 1, -3.
	if c.First.Examples != 4 || c.First.Invalid != 1 || len(c.Differences) != 2 {
		t.Fatalf("%+v", c)
	}
	mae, rmse := c.Differences["mae"], c.Differences["rmse"]
	half := 1.959963984540054 * math.Sqrt((0+1+0+4-4*0.25*0.25)/4/4) // of differences 0, -1, 0, 2
	if math.Abs(mae.Value-0.25) > 1e-12 || math.Abs(mae.High-mae.Value-half) > 1e-12 ||
		math.Abs(mae.Value-mae.Low-half) > 1e-12 {
		t.Errorf("mae %+v, want 0.25 and %v around it", mae, half)
	}
	if want := math.Sqrt(15.0/4) - math.Sqrt(12.0/4); math.Abs(rmse.Value-want) > 1e-12 ||
		!(rmse.Low < want && want < rmse.High) {
		t.Errorf("rmse %+v, want %v", rmse, want)
	}
}

// TestCompareClasses: a loss is compared where it is the same one, probabilities where both have some.
func TestCompareClasses(t *testing.T) {
	events := strings.Repeat("2,yes\n-1,no\n1,no\n-1,yes\n3,yes\n", 40)
	good, poor := predictor(t, "loss: logistic", yesNo, 1, 0), predictor(t, "loss: logistic", yesNo, -1, 0)
	weighted, margin := predictor(t, "loss: logistic, class_weights: [2, 1]", yesNo, 1, 0), predictor(t, "loss: hinge",
		yesNo, 1, 0)
	for _, c := range []struct {
		a, b Predictor
		want string
	}{{good, poor, "accuracy loss log_loss"}, {good, weighted, "accuracy log_loss"}, {good, margin, "accuracy"}} {
		out, err := compared(t, c.a, c.b, events)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range Measures {
			if _, ok := out.Differences[m.Name]; ok {
				got = append(got, m.Name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("differences of %v, want %s", got, c.want)
		}
		if want := out.Second.Accuracy - out.First.Accuracy; math.Abs(out.Differences["accuracy"].Value-want) > 1e-12 {
			t.Errorf("accuracy %+v, want %v", out.Differences["accuracy"], want)
		}
	}
	out, err := compared(t, good, poor, events)
	if d := out.Differences["accuracy"]; err != nil || !d.Decided() || d.High >= 0 {
		t.Errorf("a model that is wrong about the others' hits: %+v, %v", d, err)
	}
}

// TestCompareRefuses models that do not predict the same label, and labels that say nothing.
func TestCompareRefuses(t *testing.T) {
	number := func(bounds string) Predictor { return predictor(t, "loss: squared", bounds, 0, 0) }
	yes := predictor(t, "loss: logistic", yesNo, 1, 0)
	for i, c := range []struct {
		a, b         Predictor
		events, want string
	}{
		{number("min: 0, max: 1"), number("min: 0, max: 2"), "0,1\n0,0\n", "the same label"},
		{number("min: 0, max: 1"), number("min: 0, max: 1, scale: unit"), "0,1\n0,0\n", "the same label"},
		{yes, predictor(t, "loss: logistic", "positive: [no], negative: [yes]", 1, 0), "0,yes\n0,no\n", "the same label"},
		{yes, predictor(t, "loss: logistic", "positive: [yes], negative: [no, No]", 1, 0), "0,No\n0,yes\n",
			`class "no" never occurs`},
	} {
		if _, err := compared(t, c.a, c.b, c.events); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("case %d: %v, want %q", i, err, c.want)
		}
	}
	rows := func(n int) func(yield func(task.Row, error) bool) {
		return func(yield func(task.Row, error) bool) {
			for i := range n {
				if !yield(task.Row{Fields: []string{"0", ""}, Label: []string{"yes", "no"}[i%2], Number: int64(i)}, nil) {
					return
				}
			}
		}
	}
	if _, err := yes.Compare(yes, rows(3), rows(2), Options{}); err == nil || !strings.Contains(fmt.Sprint(err), "row 2") {
		t.Errorf("data that end early: %v", err)
	}
}
