package practical_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestDeclaredStart checks that steps begin with the declared start, for every loss whose frame has no
// whitener; under a whitener the fit is pulled to the start as far as the damping goes, and is the start itself
// where the matrix is all noise.
func TestDeclaredStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, loss := range losses {
		p := problem(loss)
		p.Start = make([]float64, p.Parameters())
		for i := range p.Start {
			p.Start[i] = 0.5 * rng.NormFloat64()
		}
		for _, matrix := range []uint64{0, 4000} {
			if convex.TraitsOf(loss.Name).Labels.Classes() && matrix > 0 {
				continue
			}
			layout := practical.Layout{MomentUsers: 1000, MatrixUsers: matrix, Rounds: 4, Unit: 10}
			if matrix > 0 {
				layout.Method = practical.Descent
			}
			first := make([]float64, p.MomentsDim())
			for i := range first {
				first[i] = 0.1 + 0.3*rng.Float64()
			}
			l, err := p.First(layout, first, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			if matrix > 0 {
				if l, err = p.Second(l, make([]float64, p.MatrixDim()), 0.5); err != nil {
					t.Fatal(err)
				}
			}
			got := l.Model(l.Start, p.Intercept)
			for i, want := range p.Start {
				if math.Abs(got[i]-want) > 1e-9*(1+math.Abs(want)) {
					t.Errorf("%s, matrix of %d: the model at the start is %v, want %v", loss.Name, matrix, got, p.Start)
					break
				}
			}
		}
	}
}

// TestMatrixOverrulesTheStart: a fit that the matrix is sure of does not depend on the start.
func TestMatrixOverrulesTheStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	p := problem(convex.Declaration{Name: "squared"})
	users := population(rng, p, 20000)
	fit := func(start []float64, sd float64) []float64 {
		q := p
		q.Start = start
		l, err := q.First(practical.Layout{MomentUsers: 5000, MatrixUsers: 15000, Rounds: 4, Method: practical.Descent,
			Unit: 10}, moments(q, users[:5000]), 1e-4)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = q.Second(l, matrix(q, &l.Frame, users[5000:]), sd); err != nil {
			t.Fatal(err)
		}
		return l.Model(l.Start, q.Intercept)
	}
	far := []float64{3, -3, 3, 3}
	distance := func(sd float64) float64 {
		one, other := fit(nil, sd), fit(far, sd)
		for i := range one {
			one[i] -= other[i]
		}
		return convex.Norm(one)
	}
	sure, unsure := distance(1e-4), distance(10)
	if sure > unsure/20 { // the least damping stays
		t.Errorf("a start moves the fit by %v where the matrix is exact, and by %v where it is noise", sure, unsure)
	}
}

// TestStartWeighsClasses: weights that balance the classes make a start of equal odds.
func TestStartWeighsClasses(t *testing.T) {
	for _, continuous := range []bool{false, true} {
		p := problem(convex.Declaration{Name: "logistic", ClassWeights: []float64{3, 1}})
		p.Continuous = continuous
		moments := make([]float64, p.MomentsDim())
		moments[len(moments)-1] = 0.5 // a quarter of the labels is -1
		l, err := p.First(practical.Layout{MomentUsers: 10000, Rounds: 4, Unit: 1}, moments, 0)
		if err != nil {
			t.Fatal(err)
		}
		if odds := l.Start[len(l.Start)-1]; math.Abs(odds) > 1e-12 {
			t.Errorf("continuous %v: log odds %v at the start, want 0", continuous, odds)
		}
	}
}
