package model

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/panlearn/panlearn/internal/evaluation"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Comparison holds the results of two models on the events that fit both.
type Comparison struct {
	First       Evaluation                       `json:"first"`
	Second      Evaluation                       `json:"second"`
	Confidence  float64                          `json:"confidence"`  // of each interval
	Differences map[string]evaluation.Difference `json:"differences"` // second minus first, by the name of a measure
}

// A measure is a figure in which two models are compared.
type measure struct {
	Name  string // its field in JSON
	Falls bool   // better models have less of it
	of    func(row) float64
	read  func(*evaluation.Pair) evaluation.Difference
}

// Measures are all that there are. A comparison has those that both models have, and the loss if it is the same for
// both.
var Measures = [...]measure{
	{"accuracy", false, func(r row) float64 { return r.hit }, (*evaluation.Pair).Shares},
	{"loss", true, func(r row) float64 { return r.loss }, (*evaluation.Pair).Means},
	{"log_loss", true, func(r row) float64 { return r.logLoss }, (*evaluation.Pair).Means},
	{"rmse", true, func(r row) float64 { return r.square }, (*evaluation.Pair).Roots},
	{"mae", true, func(r row) float64 { return r.absolute }, (*evaluation.Pair).Means},
	{"quantile_loss", true, func(r row) float64 { return r.pinball }, (*evaluation.Pair).Means},
}

// Compare evaluates p and then other on the same data, which are read once for each. Models of labels that are
// declared otherwise are refused; see Evaluate for the rest.
func (p Predictor) Compare(other Predictor, first, second iter.Seq2[task.Row, error], o Options) (Comparison, error) {
	if !sameLabels(p.Features, other.Features) {
		return Comparison{},
			errors.New("the models do not predict the same label: classes, or the bounds and the scale of a number, differ")
	}
	a, err := newTally(p, o)
	if err != nil {
		return Comparison{}, err
	}
	b, err := newTally(other, o)
	if err != nil {
		return Comparison{}, err
	}
	pairs := make([]evaluation.Pair, len(Measures))
	next, stop := iter.Pull2(second)
	defer stop()
	var x, y convex.Example
	for row, err := range first {
		again, err2, more := next()
		if !more || again.Number != row.Number || again.File != row.File {
			return Comparison{}, fmt.Errorf("the data end early, or are read differently, at row %d", row.Number)
		}
		if err == nil {
			err = p.Features.Map(row, &x)
		}
		if err2 == nil {
			err2 = other.Features.Map(again, &y)
		}
		var bad *task.RowError
		switch whole := errors.Join(err, err2); {
		case whole == nil:
		case (err == nil || errors.As(err, &bad)) && (err2 == nil || errors.As(err2, &bad)):
			a.invalid, b.invalid = a.invalid+1, b.invalid+1
			if o.Unfit != nil {
				o.Unfit(bad)
			}
			continue
		default:
			return Comparison{}, whole
		}
		if x.Label != y.Label {
			return Comparison{}, fmt.Errorf("the models do not predict the same label: at row %d it differs", row.Number)
		}
		a.add(x)
		b.add(y)
		for i := range pairs {
			pairs[i].Add(Measures[i].of(a.row), Measures[i].of(b.row))
		}
	}
	out := Comparison{Confidence: evaluation.Confidence, Differences: map[string]evaluation.Difference{}}
	if out.First, err = a.result(o); err != nil {
		return Comparison{}, err
	}
	if out.Second, err = b.result(o); err != nil {
		return Comparison{}, err
	}
	sameLoss := reflect.DeepEqual(p.Loss, other.Loss)
	for i, m := range Measures {
		if (m.Name != "loss" && m.Name != "quantile_loss" || sameLoss) && out.First.has(m.Name) && out.Second.has(m.Name) {
			out.Differences[m.Name] = m.read(&pairs[i])
		}
	}
	return out, nil
}

func sameLabels(a, b *task.FeatureMap) bool {
	inUnits := func(m *task.FeatureMap) [2]float64 { return [2]float64{m.InUnits(0), m.InUnits(1)} }
	return slices.Equal(a.Classes(), b.Classes()) && slices.Equal(a.Labels(), b.Labels()) && inUnits(a) == inUnits(b)
}

// has reports whether an evaluation has a figure.
func (e Evaluation) has(measure string) bool {
	switch measure {
	case "accuracy":
		return e.OfClasses != nil
	case "log_loss":
		return e.OfClasses != nil && e.LogLoss != nil
	case "rmse", "mae":
		return e.OfNumbers != nil
	case "quantile_loss":
		return e.OfNumbers != nil && e.QuantileLoss != nil
	}
	return true
}
