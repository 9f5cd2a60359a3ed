package prequential

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/task"
)

// A Score measures how well the models of a stream predicted the rows that came after each. Numbers are scored
// in their declared range as [-1, 1].
type Score struct {
	Users        uint64   `json:"users"` // rows that were scored
	LogLoss      *float64 `json:"log_loss,omitempty"`
	SquaredError *float64 `json:"squared_error,omitempty"` // mean square
	Loss         *float64 `json:"loss,omitempty"`          // of classes, for a loss without probabilities
	Accuracy     *float64 `json:"accuracy,omitempty"`
	// RecentLoss and RecentAccuracy count earlier rounds for less, at the rate at which the model forgets them.
	RecentLoss     *float64 `json:"recent_loss,omitempty"`
	RecentAccuracy *float64 `json:"recent_accuracy,omitempty"`
	// users so far, after each round that surprised; of several runs the alarms of all
	Alarms     []uint64 `json:"alarms"`
	AlarmCount float64  `json:"alarm_count"`            // how many there are
	Memory     *float64 `json:"memory_users,omitempty"` // at the end
	// Diverged reports whether the second half of the rows is predicted worse than by their best constant, by
	// more than .02 and three times the mean expected error.
	Diverged bool `json:"diverged"`
	// Curve holds the means of stretches of rows, one after another. Fold leaves it out.
	Curve []Stretch `json:"curve,omitempty"`

	Tracking float64   `json:"-"` // mean expected error of the rounds
	Labels   []float64 `json:"-"` // of the rows that were scored, in their order

	classes   bool
	half      float64 // of the range of numbers
	sum, hits float64
	probable  bool      // the model has probabilities
	losses    []float64 // by row: log loss or squared error
	right     []float64 // by row of classes: 1 or 0
	round     sums      // since the last Round
	recent    sums
	rounds    float64
}

// A Stretch has the means over some rows.
type Stretch struct {
	Users        uint64   `json:"users"` // rows that were scored until its end
	LogLoss      *float64 `json:"log_loss,omitempty"`
	SquaredError *float64 `json:"squared_error,omitempty"`
	Loss         *float64 `json:"loss,omitempty"`
	Accuracy     *float64 `json:"accuracy,omitempty"`
}

// stretches is the number of parts into which Curve divides the rows.
const stretches = 30

// sums are weighted sums over rows.
type sums struct{ rows, loss, hits float64 }

const divergedBy = 0.02 // nats, or mean square, beside three tracking errors

// New returns a score without rows, of a task.
func New(spec *task.Spec) *Score {
	out := &Score{Alarms: []uint64{}, classes: spec.Model.Classification()}
	if !out.classes {
		out.half = (spec.Label.Max - spec.Label.Min) / 2
	}
	return out
}

// Add scores a row by the model that was current before it. It skips a row with an undeclared label.
func (p *Score) Add(predictor model.Predictor, e convex.Example) {
	one, err := predictor.EvaluateExamples([]convex.Example{e})
	if err != nil {
		return
	}
	loss, hit := one.Loss, 0.0
	switch {
	case one.OfClasses != nil:
		hit = one.Accuracy
		p.right = append(p.right, hit)
		if p.probable = one.LogLoss != nil; p.probable {
			loss = *one.LogLoss
		}
	case one.OfNumbers != nil:
		loss = one.RMSE * one.RMSE / p.half / p.half
	}
	p.Users++
	p.sum += loss
	p.hits += hit
	p.round.rows++
	p.round.loss += loss
	p.round.hits += hit
	p.losses, p.Labels = append(p.losses, loss), append(p.Labels, e.Label)
}

// Round ends a round, after which the stream is followed like this; nil: nothing is known of it.
func (p *Score) Round(t *method.Tracking) {
	share := method.RecentShare
	if t != nil {
		p.rounds++
		p.Tracking += (t.Error - p.Tracking) / p.rounds
		p.Memory = &t.Memory
		share = max(0, 1-p.round.rows/t.Memory)
		if t.Alarm {
			p.Alarms = append(p.Alarms, p.Users)
			p.AlarmCount++
		}
	}
	r := &p.recent
	r.rows, r.loss, r.hits = share*r.rows+p.round.rows, share*r.loss+p.round.loss, share*r.hits+p.round.hits
	p.round = sums{}
}

// End sums up. It is called once, after the last round.
func (p *Score) End() {
	if p.Users == 0 {
		return
	}
	classes := p.classes
	p.draw()
	if p.recent.rows > 0 {
		loss, accuracy := p.recent.loss/p.recent.rows, p.recent.hits/p.recent.rows
		if p.RecentLoss = &loss; classes {
			p.RecentAccuracy = &accuracy
		}
	}
	mean := p.sum / float64(p.Users)
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
		for _, y := range p.Labels[len(p.Labels)/2:] {
			counts[y]++
		}
		for _, n := range counts {
			share := float64(n) / float64(len(half))
			constant -= share * math.Log(share)
		}
	} else {
		p.SquaredError = &mean
	}
	p.Diverged = classes && recent > constant+divergedBy+3*p.Tracking
}

// draw fills in the curve.
func (p *Score) draw() {
	long := (len(p.losses) + stretches - 1) / stretches
	for from := 0; from < len(p.losses); from += long {
		to := min(len(p.losses), from+long)
		one, loss := Stretch{Users: uint64(to)}, stat.Mean(p.losses[from:to], nil)
		switch {
		case !p.classes:
			one.SquaredError = &loss
		case p.probable:
			one.LogLoss = &loss
		default:
			one.Loss = &loss
		}
		if p.classes {
			accuracy := stat.Mean(p.right[from:to], nil)
			one.Accuracy = &accuracy
		}
		p.Curve = append(p.Curve, one)
	}
}

// String returns the figures and the number of alarms in a line.
func (p *Score) String() string {
	if p.Users == 0 {
		return p.Figures()
	}
	if p.AlarmCount == 1 {
		return p.Figures() + ", 1 alarm"
	}
	return fmt.Sprintf("%s, %.3g alarms", p.Figures(), p.AlarmCount)
}

// Figures returns the rows that were scored with their mean loss and accuracy, in a line.
func (p *Score) Figures() string {
	switch {
	case p.LogLoss != nil:
		return fmt.Sprintf("scored before it learned: %d rows, log loss %.4f, accuracy %.4f", p.Users, *p.LogLoss,
			*p.Accuracy)
	case p.Loss != nil:
		return fmt.Sprintf("scored before it learned: %d rows, loss %.4f, accuracy %.4f", p.Users, *p.Loss, *p.Accuracy)
	case p.SquaredError != nil:
		return fmt.Sprintf("scored before it learned: %d rows, mean square %.4f", p.Users, *p.SquaredError)
	}
	return "no row was scored before it learned: the data end with the first look"
}

// Fold folds the figures of several runs; nil where there are none.
func Fold(runs []*Score, fold func([]float64) float64) *Score {
	if len(runs) == 0 || runs[0] == nil {
		return nil
	}
	out := &Score{Users: runs[0].Users, Alarms: []uint64{}}
	for _, r := range runs {
		out.Alarms = append(out.Alarms, r.Alarms...)
	}
	slices.Sort(out.Alarms)
	for _, figure := range []func(*Score) **float64{
		func(p *Score) **float64 { return &p.LogLoss }, func(p *Score) **float64 { return &p.SquaredError },
		func(p *Score) **float64 { return &p.Accuracy }, func(p *Score) **float64 { return &p.Loss },
		func(p *Score) **float64 { return &p.Memory },
		func(p *Score) **float64 { return &p.RecentLoss }, func(p *Score) **float64 { return &p.RecentAccuracy },
	} {
		var values []float64
		for _, r := range runs {
			if v := *figure(r); v != nil {
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
		counts = append(counts, r.AlarmCount)
	}
	out.AlarmCount = fold(counts)
	for _, r := range runs {
		out.Diverged = out.Diverged || r.Diverged
	}
	return out
}
