package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// A prequential scores every row of a round of gradients by the model that stood before the round: test, then train.
// Numbers are scored in their declared range as [-1, 1].
type prequential struct {
	Users        uint64   `json:"users"` // rows that were scored
	LogLoss      *float64 `json:"log_loss,omitempty"`
	SquaredError *float64 `json:"squared_error,omitempty"` // mean square
	Loss         *float64 `json:"loss,omitempty"`          // of classes whose loss has no probabilities
	Accuracy     *float64 `json:"accuracy,omitempty"`
	Alarms       []uint64 `json:"alarms"`                 // users so far, after each round that surprised; over several runs those of all
	AlarmCount   float64  `json:"alarm_count"`            // how many there are
	Memory       *float64 `json:"memory_users,omitempty"` // at the end
	// Diverged says that the second half of the rows is predicted worse than by their best constant, by more than .02
	// and three times the mean expected error.
	Diverged bool `json:"diverged"`
	// Curve has the means of stretches of rows, one after another.
	Curve []scored `json:"curve,omitempty"`

	sum, hits float64
	probable  bool      // the model has probabilities
	losses    []float64 // by row: log loss or squared error
	right     []float64 // by row of classes: 1 or 0
	labels    []float64
	tracking  float64 // mean expected error of the rounds
	rounds    float64
	model     []float64

	rowsOf func(report int32) []convex.Example
	order  []int32 // reports as they came
	from   int     // position in order of the first that was scored
}

// A scored is the mean over a stretch of rows.
type scored struct {
	Users        uint64   `json:"users"` // rows that were scored until its end
	LogLoss      *float64 `json:"log_loss,omitempty"`
	SquaredError *float64 `json:"squared_error,omitempty"`
	Loss         *float64 `json:"loss,omitempty"`
	Accuracy     *float64 `json:"accuracy,omitempty"`
}

// stretches are how many parts of the rows a curve has a mean of.
const stretches = 30

const divergedBy = 0.02 // nats, or mean square, beside three tracking errors

// watch returns an observer that scores, and then calls next, which may be nil.
// c has the rows.
func (p *prequential) watch(s *simulation, c sim.Config, next func(sim.Round)) func(sim.Round) {
	p.Alarms, p.rowsOf = []uint64{}, func(i int32) []convex.Example {
		if c.Blocks != nil {
			return c.Blocks[i].Rows
		}
		return c.Examples[i : i+1]
	}
	return func(r sim.Round) {
		if r.Point != nil && p.model != nil {
			p.score(s, r)
		} else {
			p.from += len(r.Cohort)
		}
		p.order = append(p.order, r.Cohort...)
		p.model = r.Model()
		if next != nil {
			next(r)
		}
	}
}

// score adds the rows of a round.
func (p *prequential) score(s *simulation, r sim.Round) {
	predictor := s.predictor(p.model)
	for _, i := range r.Cohort {
		for _, e := range p.rowsOf(i) {
			p.add(predictor, e, s.half())
		}
	}
	if t := r.Tracking; t != nil {
		p.rounds++
		p.tracking += (t.Error - p.tracking) / p.rounds
		p.Memory = &t.Memory
		if t.Alarm {
			p.Alarms = append(p.Alarms, p.Users)
			p.AlarmCount++
		}
	}
}

// half is half of the declared range of numbers.
func (s *simulation) half() float64 {
	if s.job.Spec.Classification() {
		return 0
	}
	return (s.job.Spec.Label.Max - s.job.Spec.Label.Min) / 2
}

// add scores a row, unless its label is none of the declared.
func (p *prequential) add(predictor model.Predictor, e convex.Example, half float64) {
	one, err := predictor.EvaluateExamples([]convex.Example{e})
	if err != nil {
		return
	}
	loss := one.Loss
	switch {
	case one.OfClasses != nil:
		p.hits += one.Accuracy
		p.right = append(p.right, one.Accuracy)
		if p.probable = one.LogLoss != nil; p.probable {
			loss = *one.LogLoss
		}
	case one.OfNumbers != nil:
		loss = one.RMSE * one.RMSE / half / half
	}
	p.Users++
	p.sum += loss
	p.losses, p.labels = append(p.losses, loss), append(p.labels, e.Label)
}

// end sums up.
func (p *prequential) end(classes bool) {
	if p.Users == 0 {
		return
	}
	mean := p.sum / float64(p.Users)
	p.curve(classes)
	half := p.losses[len(p.losses)/2:]
	constant, recent := 0.0, 0.0
	for _, l := range half {
		recent += l / float64(len(half))
	}
	if classes {
		accuracy := p.hits / float64(p.Users)
		p.Accuracy = &accuracy
		if !p.probable {
			p.Loss = &mean
			return
		}
		p.LogLoss = &mean
		counts := map[float64]int{}
		for _, y := range p.labels[len(p.labels)/2:] {
			counts[y]++
		}
		for _, n := range counts {
			share := float64(n) / float64(len(half))
			constant -= share * math.Log(share)
		}
	} else {
		p.SquaredError = &mean
	}
	p.Diverged = classes && recent > constant+divergedBy+3*p.tracking
}

// curve fills in the means of stretches.
func (p *prequential) curve(classes bool) {
	long := (len(p.losses) + stretches - 1) / stretches
	for from := 0; from < len(p.losses); from += long {
		to := min(len(p.losses), from+long)
		one, loss := scored{Users: uint64(to)}, stat.Mean(p.losses[from:to], nil)
		switch {
		case !classes:
			one.SquaredError = &loss
		case p.probable:
			one.LogLoss = &loss
		default:
			one.Loss = &loss
		}
		if classes {
			accuracy := stat.Mean(p.right[from:to], nil)
			one.Accuracy = &accuracy
		}
		p.Curve = append(p.Curve, one)
	}
}

func (p *prequential) String() string {
	if p.Users == 0 {
		return p.scores()
	}
	if p.AlarmCount == 1 {
		return p.scores() + ", 1 alarm"
	}
	return fmt.Sprintf("%s, %.3g alarms", p.scores(), p.AlarmCount)
}

// scores is String without the alarms.
func (p *prequential) scores() string {
	switch {
	case p.LogLoss != nil:
		return fmt.Sprintf("scored before it learned: %d rows, log loss %.4f, accuracy %.4f", p.Users, *p.LogLoss, *p.Accuracy)
	case p.Loss != nil:
		return fmt.Sprintf("scored before it learned: %d rows, loss %.4f, accuracy %.4f", p.Users, *p.Loss, *p.Accuracy)
	case p.SquaredError != nil:
		return fmt.Sprintf("scored before it learned: %d rows, mean square %.4f", p.Users, *p.SquaredError)
	}
	return "no row was scored before it learned: the data end with the first look"
}

// foldPrequential folds the figures of several runs; nil where there are none.
func foldPrequential(runs []simulated, fold func([]float64) float64) *prequential {
	if len(runs) == 0 || runs[0].Prequential == nil {
		return nil
	}
	out := &prequential{Users: runs[0].Prequential.Users, Alarms: []uint64{}}
	for _, r := range runs {
		out.Alarms = append(out.Alarms, r.Prequential.Alarms...)
	}
	slices.Sort(out.Alarms)
	for _, figure := range []func(*prequential) **float64{
		func(p *prequential) **float64 { return &p.LogLoss }, func(p *prequential) **float64 { return &p.SquaredError },
		func(p *prequential) **float64 { return &p.Accuracy }, func(p *prequential) **float64 { return &p.Loss }, func(p *prequential) **float64 { return &p.Memory },
	} {
		var values []float64
		for _, r := range runs {
			if v := *figure(r.Prequential); v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == len(runs) {
			folded := fold(values)
			*figure(out) = &folded
		}
	}
	var counts []float64
	for _, r := range runs {
		counts = append(counts, r.Prequential.AlarmCount)
	}
	out.AlarmCount = fold(counts)
	for _, r := range runs {
		out.Diverged = out.Diverged || r.Prequential.Diverged
	}
	return out
}
