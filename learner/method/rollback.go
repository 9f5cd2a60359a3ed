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

// RollBack resets the bank to a model w in its coordinates, as a task with model.start begins: every filter is at w
// with the prior of a known start, the curvature is the first look's, and cohorts are the smallest. The counts of steps
// and users continue. The resulting state depends only on w and these counts.
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

// RollBack continues from an earlier model of the method, in the declared coordinates. For a method that does not
// follow a stream it changes nothing and returns an error that wraps ErrNoRollback.
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
