package practical_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestEvenLayout: even rounds: looks are as large as any round, and follow from the noise that everybody's sum
// has, not from who reports it.
func TestEvenLayout(t *testing.T) {
	p := problem(convex.Declaration{Name: "logistic"})
	p.Even, p.Users = true, 9000
	// d = 4: q = 9000/(4 unit); 2.5 q^(1/3) rounds of new rows, 5 of the same.
	for _, c := range []struct {
		interactive  bool
		radius, unit float64
		want         practical.Layout
	}{
		{false, 0, 281.25, practical.Layout{Rounds: 5, MomentUsers: 1500, Unit: 281.25}},
		{false, 0, 1e-3, practical.Layout{Rounds: 8, MomentUsers: 1000, Unit: 1e-3}},
		{false, 0.25, 1125, practical.Layout{Rounds: 5, MomentUsers: 1500, Unit: 281.25}},
		{true, 0, 281.25, practical.Layout{Rounds: 10, MomentUsers: 9000, Unit: 281.25}},
		{true, 1, 281.25, practical.Layout{Rounds: 10, MomentUsers: 9000, Unit: 281.25}},
		{true, 0.25, 1125, practical.Layout{Rounds: 10, MomentUsers: 9000, Unit: 281.25}},
		{true, 0.5, 2250 * 4, practical.Layout{Rounds: 4, MomentUsers: 9000, Unit: 4500}},
	} {
		p.Interactive, p.Radius = c.interactive, c.radius
		if got := p.Layout(c.unit); got != c.want {
			t.Errorf("again %v, radius %v, unit %v: %+v, want %+v", c.interactive, c.radius, c.unit, got, c.want)
		}
	}
	// A matrix is asked where its noise is what it is at the limit without even rounds: d unit = 0.2 n with 0.4 n users.
	p = problem(convex.Declaration{Name: "squared"})
	p.Even = true
	for interactive, parts := range map[bool]float64{false: 6, true: math.Sqrt(6)} {
		p.Interactive = interactive
		limit := 0.5 / parts * 10000 / 4
		if l := p.Layout(limit * 0.99); l.MatrixUsers == 0 || l.MatrixUsers != l.MomentUsers || l.Rounds != 4 ||
			l.Method != practical.Descent {
			t.Errorf("again %v, below the limit: %+v", interactive, l)
		}
		if l := p.Layout(limit * 1.01); l.MatrixUsers != 0 || l.Method != practical.Acceleration {
			t.Errorf("again %v, above the limit: %+v", interactive, l)
		}
	}
	// As few units as there are rounds are not divided further.
	p = problem(convex.Declaration{Name: "logistic"})
	p.Even, p.Users = true, 3
	if l := p.Layout(1e-3); l.Rounds != 2 || l.MomentUsers != 1 {
		t.Errorf("3 units: %+v", l)
	}
}

// TestEvenSteps: the step size knows the noise of a round: what one of T equal rounds and a look has, in one
// pass and in many, with the radius in it.
func TestEvenSteps(t *testing.T) {
	v := func(even, interactive bool, radius, unit float64, rounds uint64) float64 {
		p := problem(convex.Declaration{Name: "logistic"})
		p.Even, p.Interactive, p.Radius, p.Clip = even, interactive, radius, 2
		l := practical.Layout{MomentUsers: 1000, Rounds: rounds, Unit: p.Layout(unit).Unit}
		learned, err := p.First(l, make([]float64, p.MomentsDim()), 0.01)
		if err != nil {
			t.Fatal(err)
		}
		return learned.Curvature
	}
	quiet := v(false, false, 0, 1e-9, 4)
	for _, c := range []struct {
		even, interactive bool
		radius, want      float64 // rounds' noise in units of that of everybody's
	}{
		{false, false, 0, 4}, {false, true, 0, 2}, {true, false, 0, 5}, {true, true, 0, math.Sqrt(5)},
		{true, true, 0.25, math.Sqrt(5) / 4}, {false, false, 0.5, 2},
	} {
		// clip 2, d = 4, 500/10000 of noise
		near(t, "noise in v", v(c.even, c.interactive, c.radius, 500, 4)-quiet, c.want*2*2*0.05, 1e-9)
	}
}
