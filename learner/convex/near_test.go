package convex_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func near(t *rapid.T, dim int) (*convex.Near, convex.Set, []float64, float64) {
	s := set(t, dim)
	center := project(s, spread(dim).Draw(t, "center"))
	r := s.Radius() * math.Pow(10, rapid.Float64Range(-4, 0.5).Draw(t, "log10 distance"))
	n, err := convex.NewNear(s, center, r)
	if err != nil {
		t.Fatal(err)
	}
	return n, s, center, r
}

// p is the projection of x onto the set within a distance of c if x - p = mu (p - c) + g, where g is normal to the set at p and mu >= 0 is
// 0 unless p is at the distance. Then <x - p - mu (p - c), z> has its supremum over the set at z = p; the gap is convex in mu.
func TestNearIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 8).Draw(t, "dim")
		n, s, c, r := near(t, dim)
		x := spread(dim).Draw(t, "x")
		p := project(n, x)
		if !n.Contains(p) {
			t.Fatalf("%T: %v projected to %v, outside", s, x, p)
		}
		if !same(project(n, p), p) {
			t.Fatalf("%T: a point moved", s)
		}
		inPlace := slices.Clone(x)
		if n.Project(inPlace, inPlace); !same(inPlace, p) {
			t.Fatalf("%T: %v in place, %v elsewhere", s, inPlace, p)
		}
		way := minus(p, c)
		gap := func(mu float64) float64 {
			g := along(minus(x, p), way, -mu)
			return support(s, g) - dot(g, p)
		}
		// Projections are exact to the digits of the point and of the radius, which may be coarse beside the distance.
		if d := convex.Norm(way); d < r*(1-1e-12)-1e-14*float64(dim)*(convex.Norm(x)+s.Radius()) {
			if got := gap(0); got > 1e-12*float64(dim)*(convex.Norm(x)+s.Radius())*s.Radius() {
				t.Fatalf("%T: at %v of %v from the centre, gap %v", s, d, r, got)
			}
			return
		}
		low, high := 0.0, (convex.Norm(minus(x, p))+s.Radius())/r
		for range 300 {
			third := (high - low) / 3
			if gap(low+third) < gap(high-third) {
				high -= third
			} else {
				low += third
			}
		}
		// Of the point on the sphere r only the digits above those of the centre are known.
		slack := 1e-11 * float64(dim) * (convex.Norm(x) + s.Radius()) * s.Radius()
		if got := min(gap(low), gap(0)); got > slack {
			t.Fatalf("%T: gap %v for mu = %v, want at most %v", s, got, low, slack)
		}
	})
}

// slowNear is the method of alternating projections with Dykstra's correction, which converges to the projection onto the intersection.
func slowNear(s convex.Set, c []float64, r float64, x []float64) []float64 {
	at, p, q := slices.Clone(x), make([]float64, len(x)), make([]float64, len(x))
	ball := convex.Ball{R: r}
	for range 20000 {
		shifted := along(at, p, 1)
		y := along(project(ball, minus(shifted, c)), c, 1)
		p = minus(shifted, y)
		shifted = along(y, q, 1)
		next := project(s, shifted)
		q = minus(shifted, next)
		if at = next; convex.Norm(minus(next, y)) < 1e-12 { // in both sets
			break
		}
	}
	return at
}

func TestNearAgreesWithDykstra(t *testing.T) {
	for _, d := range []convex.SetDeclaration{
		{Radius: 1}, {Kind: "nonnegative", Radius: 1}, {Kind: "simplex", Radius: 1}, {Kind: "l1", Radius: 1}, {Kind: "box", Min: -0.5, Max: 1},
	} {
		s, err := d.New(3)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range [][]float64{{3, -1, 0.5}, {-2, -2, 1}, {0.9, 0.9, 0.9}} {
			c := project(s, []float64{0.8, 0.3, -0.1})
			for _, r := range []float64{0.1, 0.5, 1.2} {
				n, err := convex.NewNear(s, c, r)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := project(n, x), slowNear(s, c, r, x); convex.Norm(minus(got, want)) > 1e-6 {
					t.Errorf("%T, point %d, distance %v: %v, by Dykstra's method %v", s, i, r, got, want)
				}
			}
		}
	}
}

func TestNear(t *testing.T) {
	c := []float64{0.8, 0}
	n, err := convex.NewNear(convex.Ball{R: 1}, c, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if c[0] = 7; n.Contains(c) {
		t.Error("the set holds its caller's centre")
	}
	// Both circles meet at x = (1 - 0.25 + 0.64)/1.6 = 0.86875.
	if p := project(n, []float64{9, 9}); math.Abs(p[0]-0.86875) > 1e-12 || math.Abs(p[1]-math.Sqrt(1-0.86875*0.86875)) > 1e-12 {
		t.Errorf("projected to %v, want the corner", p)
	}
	start := make([]float64, 2)
	if n.Start(start); !same(start, []float64{0.8, 0}) || n.Radius() != 1 || n.Distance() != 0.5 {
		t.Errorf("start %v, radius %v, distance %v", start, n.Radius(), n.Distance())
	}
	if small, err := convex.NewNear(convex.Ball{R: 1}, []float64{0.3, 0}, 0.2); err != nil || small.Radius() != 0.5 {
		t.Errorf("radius %v, want 0.3 + 0.2, %v", small.Radius(), err)
	}
	for _, x := range [][]float64{{math.NaN(), 0}, {math.Inf(1), 0}, {math.MaxFloat64, -math.MaxFloat64}, {1e300, 0}, {5e-324, 1e-310}} {
		if p := project(n, x); !n.Contains(p) || !same(project(n, p), p) {
			t.Errorf("%v projected to %v", x, p)
		}
	}
	for _, d := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := convex.NewNear(convex.Ball{R: 1}, []float64{0, 0}, d); err == nil {
			t.Errorf("distance %v accepted", d)
		}
	}
	if _, err := convex.NewNear(convex.Ball{R: 1}, []float64{1, 1}, 1); err == nil {
		t.Error("a centre outside the set accepted")
	}
}
