package curator

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Sums of gradients and of scores are added up in parts of so many, so that rounding grows with that and not with
// how many there are.
const addends = convex.Addends

// mostRows of a person enter; who has more, has the first so many. It keeps the bound on rounding free of what
// people hold.
const mostRows = 1 << 20

// slopeErrors bounds the rounding errors of a row's slope, in units of 2^-53 of the largest slope that is not
// cut.
const slopeErrors = 1 << 14

// A slope is cut at L/||x||, and a curvature compared with beta, with a norm that is rounded. So the computed
// losses have the constants of Public, times these factors. The error of a norm of 2^24 numbers is below
// 2^-28.
const (
	cutSlack  = 1 + 0x1p-24
	bendSlack = 1 + 0x1p-20
)

// lipschitz and smoothness hold for every person's loss as it is computed, whatever the rows are.
func (p Public) lipschitz() float64  { return p.Lipschitz * cutSlack }
func (p Public) smoothness() float64 { return p.Smoothness * bendSlack * bendSlack }

// A table is people's rows, made ready for gradients of their cut losses. It is secret.
type table struct {
	slope  func(s, y float64) float64
	people []Person
	cuts   [][]float64 // of each row: the largest slope whose gradient is at most L; below 0: the row contributes zero
	part   []float64
	sum    []float64
	idle   []float64 // where the gradients of those go who are not kept
}

// newTable refuses a loss that is not known to stay convex and smooth when its slope is cut. A row that does
// not fit the loss, or is more curved than was planned for, has the gradient 0.
func newTable(p Public, loss convex.Loss, people []Person) (*table, error) {
	t := &table{slope: convex.SlopeOf(loss), people: people, part: make([]float64, p.Dim), sum: make([]float64, p.Dim),
		idle: make([]float64, p.Dim)}
	bend, steep := loss.Smoothness(1), loss.Lipschitz(1)
	if t.slope == nil || loss.Parameters(p.Dim) != p.Dim || !(bend > 0) || math.IsInf(bend, 1) {
		return nil, fmt.Errorf("loss %s: want a smooth one of one linear score, which stays convex when its slope is cut: %s",
			loss.Name(), convex.SlopedLosses())
	}
	if math.IsInf(steep, 1) {
		steep = 0 // the slope is its score's and its label's, and no sum of larger numbers
	}
	longest := math.Sqrt(p.smoothness() / bend) // of features that say something
	if e := 8 * (2 + (bend+steep)*longest/p.Lipschitz); !(e <= slopeErrors) {
		return nil,
			fmt.Errorf(
				"loss %s: slopes have rounding errors of %.3g units of a clip norm of %v: want at most %d; a larger clip norm",
				loss.Name(), e, p.Lipschitz, slopeErrors)
	}
	t.cuts = make([][]float64, len(people))
	for i, rows := range people {
		rows = rows[:min(len(rows), mostRows)]
		t.cuts[i] = make([]float64, len(rows))
		for k, row := range rows {
			cut := -1.0
			if n := row.Norm(); row.Validate(p.Dim) == nil && loss.CheckLabel(row.Label) == nil &&
				loss.Smoothness(n) <= p.Smoothness*bendSlack {
				cut = min(p.Lipschitz/max(n, 0x1p-1000), math.MaxFloat64) // a subnormal norm has lost digits
			}
			t.cuts[i][k] = cut
		}
	}
	return t, nil
}

// gradient overwrites dst with the gradient of person i's loss at theta: the mean of their rows' clipped gradients,
// at most L long up to rounding.
func (t *table) gradient(dst, theta []float64, i int) {
	clear(dst)
	rows, cuts := t.people[i], t.cuts[i]
	if len(cuts) == 0 {
		return
	}
	share := 1 / float64(len(cuts))
	clear(t.part)
	for k, most := range cuts {
		if row := &rows[k]; most >= 0 {
			p := t.slope(row.DotInParts(theta), row.Label)
			if !(p <= most) {
				p = most
			}
			if !(p >= -most) {
				p = -most
			}
			row.AddTo(t.part, float64(p*share))
		}
		if k%addends == addends-1 || k == len(cuts)-1 {
			addTo(dst, t.part)
			clear(t.part)
		}
	}
}

// mean overwrites dst with the mean of the gradients at theta of these people, or only of the people in keep: the work
// is the same. person and dst are of the length of theta.
func (t *table) mean(dst, theta, person []float64, people []int, keep []bool) {
	clear(dst)
	clear(t.sum)
	kept := 0
	for k, i := range people {
		t.gradient(person, theta, i)
		if keep == nil || keep[k] {
			addTo(t.sum, person)
			kept++
		} else {
			addTo(t.idle, person)
		}
		if k%addends == addends-1 || k == len(people)-1 {
			addTo(dst, t.sum)
			clear(t.sum)
		}
	}
	n := float64(max(kept, 1))
	for j := range dst {
		dst[j] /= n
	}
}

func addTo(dst, x []float64) {
	for j, v := range x {
		dst[j] += v
	}
}

// A solver finds the minimiser over Public.Set of the mean over people of their losses + (weight/2)||. - m||^2,
// whose weight includes the ridge's (Public.middle). The number of steps depends on public numbers alone.
type solver struct {
	public Public
	weight float64 // nu: the objective is nu-strongly convex
	large  float64 // smoothness of the objective
	root   float64 // s, at most sqrt(nu/large)
	steps  int
	// wrong bounds the rounding error of a gradient, and of a person's distance from the mean one.
	wrong float64
	// xi is at least the distance of what minimiser returns from the minimiser (docs/proofs/curator.md, Solver).
	xi float64
}

// move is the distance that is left after a solver's steps at most, in exact arithmetic, as a share of 2L/(nu n):
// little beside what a person moves.
const move = 0x1p-12

// newSolver plans one for the objective's strong convexity and so many people.
func newSolver(p Public, weight float64, people int) (*solver, error) {
	if err := p.smoothable(); err != nil {
		return nil, err
	}
	if !(weight > 0) || math.IsInf(weight, 0) {
		return nil, fmt.Errorf("solver: weight %v: want a finite number above 0", weight)
	}
	large := (p.smoothness() + weight) * (1 + 0x1p-30)
	root := math.Sqrt(weight/large) * (1 - 0x1p-30)
	s := &solver{public: p, weight: weight, large: large, root: root}
	l, r, d := p.lipschitz(), p.Set.Radius(), float64(p.Dim)
	far := math.Sqrt(3) * l / weight // sqrt(2/nu) times the root of the first potential, at most
	left := move * 2 * l / (weight * float64(people))
	steps := math.Ceil(2 * math.Log(max(far/left, 2)) / -math.Log1p(-root))
	if !(steps <= 1<<24) {
		return nil, fmt.Errorf("solver: %.3g steps for smoothness %v at strong convexity %v: want at most 2^24", steps,
			p.Smoothness, weight)
	}
	s.steps = int(steps)
	// what a step's rounding is at most, in units of 2^-53 L
	sums := (addends + mostRows/addends + 8) + (addends + float64(people)/addends + 8)
	scores := p.smoothness() * (min(d, addends) + d/addends + 8) * 3 * r / l
	quadratic := 32 * weight * r / l
	walls := (1.5*d + 80) * large * r / l
	e := 2 * (sums + slopeErrors + scores + quadratic + walls + 16) * 0x1p-53 * l
	s.wrong = 2 * e
	s.xi = (left + 4*e/weight + (d/2+24)*r*0x1p-53) * (1 + 0x1p-40)
	return s, nil
}

// moves bounds how far apart the minimisers of neighbours are, of so many people: 2L/(nu n).
func (s *solver) moves(people int) float64 {
	return 2 * s.public.lipschitz() / (s.weight * float64(people)) * (1 + 0x1p-40)
}

func (s *solver) inexact() float64 { return s.xi }

// ball returns the radius of a ball in which the minimiser is, around the point of the set nearest to the
// middle.
func (s *solver) ball() float64 {
	return min(s.public.lipschitz()/s.weight, s.public.diameter()) * (1 + 0x1p-40)
}

// minimiser returns a point of the set within xi of the minimiser, over these people or only the people in keep, of the
// objective around middle: accelerated projected gradient from the point of the set nearest to it, in a number of steps
// that does not depend on rows. An error is ctx's.
func (s *solver) minimiser(ctx context.Context, t *table, middle []float64, people []int, keep []bool) ([]float64,
	error) {
	d := len(middle)
	x, y, last, g, person := make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d),
		make([]float64, d)
	s.public.Set.Project(x, middle)
	copy(y, x)
	momentum := (1 - s.root) / (1 + s.root)
	for range s.steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.mean(g, y, person, people, keep)
		copy(last, x)
		for j, v := range y {
			x[j] = v - float64((g[j]+float64(s.weight*(v-middle[j])))/s.large)
		}
		s.public.Set.Project(x, x)
		for j, v := range x {
			y[j] = v + float64(momentum*(v-last[j]))
		}
	}
	return x, nil
}

// middle returns the point m for which (weight/2)||. - c||^2 + (ridge/2)||.||^2 is (weight + ridge)/2 ||. -
// m||^2 and a constant.
func (p Public) middle(weight float64, c []float64) []float64 {
	m := make([]float64, len(c))
	for j, v := range c {
		m[j] = v * (weight / (weight + p.Ridge))
	}
	return m
}
