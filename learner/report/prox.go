package report

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
)

// A Prox makes a report carry the minimiser over its block of the rows' mean loss + (Weight/2)||. - c||^2, minus c,
// where c is the round's point: the result of exactly Steps steps of gradient descent from c within Set, which contains
// c. The slope of a row's loss is cut where its gradient would be longer than ClipNorm; the loss stays convex, for
// losses of one linear score.
//
// The answer is no longer than ClipNorm/Weight, and moves by at most 2 ClipNorm/(Weight K) (1 + 2^-18) where
// one of K rows is replaced, after any number of steps (docs/proofs/theorem-a.md, section 3, a report of a
// minimiser). A row whose own curvature is above Curvature would break that, and contributes zero, as does a
// row that is no event of the task.
type Prox struct {
	Weight   float64 // lambda, above 0
	StepSize float64 // eta, at most 1/(beta + lambda) for rows of smoothness beta
	Steps    int
	Set      convex.Set // onto which each step is projected: a ball, its nonnegative part or a box
}

// Curvature returns the largest smoothness of a row's loss with which a step brings no two points further
// apart, 2/eta - 2 lambda: twice the smoothness that the step size must be planned for.
func (x Prox) Curvature() float64 { return 2 * (1/x.StepSize - x.Weight) * (1 - 0x1p-24) }

// validate checks a Prox against the rest of the configuration.
func (x Prox) validate(c Config) error {
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch {
	case c.Statistic != Gradient || c.Practical != nil || c.Radius != 0:
		return fmt.Errorf("report: a minimiser of %v, radius %v: want gradients of rows, in a proved plan", c.Statistic,
			c.Radius)
	case c.Scores != 0:
		return fmt.Errorf("report: %d scores beside a minimiser: want none", c.Scores)
	case convex.SlopeOf(c.Loss) == nil || !positive(c.Loss.Smoothness(1)):
		return fmt.Errorf(
			"report: a minimiser of loss %s: want a smooth one of one linear score, whose slope can be cut and stays convex: %s",
			c.Loss.Name(), convex.SlopedLosses())
	case !positive(x.Weight) || !positive(x.StepSize) || x.Steps < 1:
		return fmt.Errorf("report: prox of weight %v, %d steps of %v: want positive finite numbers", x.Weight, x.Steps,
			x.StepSize)
	case !projects(x.Set):
		return fmt.Errorf(
			"report: prox: set %T: want a ball, its nonnegative part or a box, whose projections round by little", x.Set)
	case !positive(x.Curvature()):
		return fmt.Errorf("report: prox: step size %v: want below 1/weight, %v", x.StepSize, 1/x.Weight)
	}
	return nil
}

// projects reports whether docs/proofs/theorem-a.md bounds the rounding of the projection onto a set.
func projects(s convex.Set) bool {
	switch s.(type) {
	case convex.Ball, convex.Nonnegative, convex.Box:
		return true
	}
	return false
}

// Gradients are added up in sums of addends rows, and scores in sums of addends features, so that rounding grows with
// that and not with a block.
const addends = convex.Addends

// CheckProx refuses an invalid Prox, and one whose rounding errors could exceed the charged margin 1 + 2^-18, for
// blocks of units units at points of norm at most radius. It does not depend on rows (docs/proofs/theorem-a.md, section
// 7).
func (c Config) CheckProx(units uint64, radius float64) error {
	if err := c.validate(); err != nil {
		return err
	}
	x, l := c.Prox, c.ClipNorm
	k, d := float64(units), float64(c.Dim())
	bend, large := c.Loss.Smoothness(1), c.Loss.Lipschitz(1)
	if math.IsInf(large, 0) {
		large = 0
	}
	longest := math.Sqrt(x.Curvature() / bend) // of a row's features
	sums := addends + k/addends + 8
	slopes := 8 * (2 + (bend+large)*longest/l)
	scores := x.Curvature() * (min(d, addends) + d/addends + 8) * (radius + l/x.Weight) / l
	steps := 4/(x.StepSize*x.Weight) + 8
	walls := (d/2 + 16) * (x.Set.Radius()*x.Weight/l + 2) / (x.StepSize * x.Weight)
	if errors := k * (sums + slopes + scores + steps + walls); !(errors <= 1<<34) {
		return fmt.Errorf(
			"report: a minimiser over %d rows of %v features: rounding errors of %.3g, want at most %.3g: fewer rows a report, a larger weight or a larger clip norm",
			units, d, errors*0x1p-53, 0x1p-19)
	}
	return nil
}

// A solver is the scratch memory of a minimiser.
type solver struct {
	slope     func(s, y float64) float64
	from, z   []float64 // the point x that a step starts from, and x - c
	part, sum []float64 // of the rows' gradients
	// cuts holds for each row the largest slope whose gradient is no longer than the clip norm; below 0: the row
	// contributes zero.
	cuts []float64
}

func newSolver(c Config) *solver {
	if c.Prox == nil {
		return nil
	}
	of := func() []float64 { return make([]float64, c.Dim()) }
	return &solver{slope: convex.SlopeOf(c.Loss), from: of(), z: of(), part: of(), sum: of()}
}

// Minimiser returns the minimiser of a block, for a report of units units with a Prox: missing units contribute zero.
// The result is valid until the next call.
func (e *Exact) Minimiser(b block.Block, units uint64) []float64 {
	z, _ := e.minimiser(context.Background(), b, units) // the context never ends
	return z
}

// minimiser works like Minimiser, but stops between two steps when ctx ends.
func (e *Exact) minimiser(ctx context.Context, b block.Block, units uint64) ([]float64, error) {
	s, x := e.solver, e.c.Prox
	s.cuts = s.cuts[:0]
	for i := range b.Units() {
		s.cuts = append(s.cuts, e.cut(b.Unit(i)))
	}
	clear(s.z)
	keep, step := 1-float64(x.StepSize*x.Weight), x.StepSize/float64(max(units, 1))
	for range x.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for j, c := range e.point {
			s.from[j] = c + s.z[j]
		}
		e.addGradients(b)
		for j, g := range s.sum {
			s.z[j] = float64(keep*s.z[j]) - float64(step*g)
			s.from[j] = e.point[j] + s.z[j]
		}
		x.Set.Project(s.from, s.from)
		for j, c := range e.point {
			s.z[j] = s.from[j] - c
		}
	}
	return s.z, nil
}

// cut returns the largest slope that the loss of a unit's row may have; -1 for a unit that contributes zero.
func (e *Exact) cut(unit []convex.Example) float64 {
	if len(unit) != 1 {
		return -1
	}
	row, unfit := e.fit(unit[0])
	n := row.Norm()
	if unfit || !(e.c.Loss.Smoothness(n) <= e.c.Prox.Curvature()) {
		return -1
	}
	return min(e.c.ClipNorm/max(n, 0x1p-1000), math.MaxFloat64) // a subnormal norm has lost digits
}

// addGradients writes the sum of the rows' gradients at solver.from to solver.sum.
func (e *Exact) addGradients(b block.Block) {
	s := e.solver
	clear(s.sum)
	for i, most := range s.cuts {
		row := &e.blank // the work is a row's
		if most >= 0 {
			row = &b.Unit(i)[0]
		}
		p := s.slope(row.DotInParts(s.from), row.Label)
		if !(p <= most) {
			p = most
		}
		if !(p >= -most) {
			p = -most
		}
		row.AddTo(s.part, p)
		if i%addends == addends-1 || i == len(s.cuts)-1 {
			for j, v := range s.part {
				s.sum[j] += v
			}
			clear(s.part)
		}
	}
}

func (s *solver) forget() {
	if s == nil {
		return
	}
	for _, x := range [][]float64{s.from, s.z, s.part, s.sum, s.cuts[:cap(s.cuts)]} {
		clear(x)
	}
}
