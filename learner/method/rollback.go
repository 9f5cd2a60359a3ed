package method

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoRollback is returned when a method cannot go on from an earlier model.
var ErrNoRollback = errors.New(
	"only a task without an end (schedule.continuous adaptive) that has its first look goes on from an " +
		"earlier model: the steps that are left of another plan are made for the point where it stands")

// RollBack makes the bank go on from a model w in its coordinates, as a task with model.start begins there:
// every filter is at w with the prior of a known start, the curvature is the one of the first look, and cohorts
// are the smallest. Steps and users go on being counted. The state that it leaves depends on w and these counts
// alone.
func (b *Bank) RollBack(w []float64) error {
	if len(w) != len(b.start) {
		return fmt.Errorf("roll back: a model of %d numbers, want %d", len(w), len(b.start))
	}
	for _, x := range w {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.New("roll back: the model is not finite")
		}
	}
	at := make([]float64, len(w))
	b.set.Project(at, w)
	b.skipped, b.taken = b.position(), 0
	b.calm = false
	b.begin(at, math.Inf(1))
	return nil
}

// RollBack makes the method go on from an earlier model of it, in the declared coordinates. It refuses a method
// that does not follow a stream with an error that wraps ErrNoRollback, and then changes nothing.
func (p *Practical) RollBack(model []float64) error {
	b, adapts := p.inner.(*Bank)
	if !adapts {
		return ErrNoRollback
	}
	if want := p.Problem.Parameters(); len(model) != want {
		return fmt.Errorf("roll back: a model of %d parameters, want %d", len(model), want)
	}
	w, err := p.Problem.Within(&p.learned, model)
	if err == nil {
		err = b.RollBack(w)
	}
	if err != nil {
		return err
	}
	p.reclip(&p.learned, b)
	return nil
}
