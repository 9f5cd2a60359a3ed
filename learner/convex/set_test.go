package convex_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// support returns the supremum of <g, z> over the z of a set.
func support(s convex.Set, g []float64) float64 {
	part := func(f func(v float64) float64) (sum, top float64) {
		top = math.Inf(-1)
		for _, v := range g {
			sum, top = sum+f(v), max(top, f(v))
		}
		return sum, top
	}
	switch s := s.(type) {
	case convex.Ball:
		return s.R * convex.Norm(g)
	case convex.Nonnegative:
		positive := slices.Clone(g)
		for i, v := range g {
			positive[i] = max(v, 0)
		}
		return s.R * convex.Norm(positive)
	case convex.Box:
		sum, _ := part(func(v float64) float64 { return max(v*s.Min, v*s.Max) })
		return sum
	case convex.Simplex:
		_, top := part(func(v float64) float64 { return v })
		return s.R * top
	case convex.L1Ball:
		_, top := part(math.Abs)
		return s.R * top
	}
	panic("no support function")
}

func set(t *rapid.T, dim int) convex.Set {
	kind := rapid.SampledFrom([]string{"ball", "box", "simplex", "nonnegative", "l1"}).Draw(t, "kind")
	d := convex.SetDeclaration{Kind: kind, Radius: math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "log10 radius"))}
	if kind == "box" {
		low, width := rapid.Float64Range(-10, 10).Draw(t, "min"), rapid.Float64Range(0.01, 10).Draw(t, "width")
		d = convex.SetDeclaration{Kind: kind, Min: low, Max: low + width}
	}
	s, err := d.New(dim)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spread draws a vector with entries of several magnitudes, with ties and zeros.
func spread(dim int) *rapid.Generator[[]float64] {
	return rapid.Custom(func(t *rapid.T) []float64 {
		scale := math.Pow(10, rapid.Float64Range(-8, 9).Draw(t, "log10 scale"))
		entry := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{-1, 0, 0.5, 1}))
		x := rapid.SliceOfN(entry, dim, dim).Draw(t, "x")
		for i := range x {
			x[i] *= scale
		}
		return x
	})
}

func project(s convex.Set, x []float64) []float64 {
	p := slices.Clone(x)
	s.Project(p, x)
	return p
}

// TestProjectionIsOptimal: p is the projection of x if and only if it is in the set and <x - p, z - p> <= 0 for
// every z of the set: for the one that maximizes <x - p, z>, whose value the support function knows.
func TestProjectionIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 12).Draw(t, "dim")
		s, x := set(t, dim), spread(dim).Draw(t, "x")
		p := project(s, x)
		if !s.Contains(p) {
			t.Fatalf("%T: projected to %v, outside", s, p)
		}
		g := minus(x, p)
		if gap := support(s, g) - dot(g, p); gap > 1e-13*float64(dim)*(convex.Norm(x)+s.Radius())*s.Radius() {
			t.Fatalf("%T: a point of the set is %v nearer to %v than %v", s, gap, x, p)
		}
	})
}

func TestProjectionIsIdempotentAndNonexpansive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 12).Draw(t, "dim")
		s, x, y := set(t, dim), spread(dim).Draw(t, "x"), spread(dim).Draw(t, "y")
		p, q := project(s, x), project(s, y)
		if again := project(s, p); !same(again, p) {
			t.Fatalf("%T: a point of the set moved from %v to %v", s, p, again)
		}
		inPlace := slices.Clone(x)
		s.Project(inPlace, inPlace)
		if !same(inPlace, p) {
			t.Fatalf("%T: %v in place, %v elsewhere", s, inPlace, p)
		}
		if moved, was := convex.Norm(minus(p, q)), convex.Norm(minus(x, y)); moved > was+1e-14*float64(dim)*(s.Radius()+was) {
			t.Fatalf("%T: %v apart after the projection, %v before", s, moved, was)
		}
		if n := convex.Norm(p); n > s.Radius()*(1+1e-15) {
			t.Fatalf("%T: a point of norm %v, radius %v", s, n, s.Radius())
		}
	})
}

// The threshold by sorting, as the textbooks have it.
func slowSimplex(x []float64, r float64) []float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	var sum, tau float64
	for i, v := range sorted {
		sum += v
		if next := (sum - r) / float64(i+1); v > next {
			tau = next
		}
	}
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = max(v-tau, 0)
	}
	return p
}

func TestSimplexAndL1AgreeWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 30).Draw(t, "dim")
		x, r := vectors(dim, 10).Draw(t, "x"), rapid.Float64Range(0.01, 20).Draw(t, "r")
		if d := minus(project(convex.Simplex{Dim: dim, R: r}, x), slowSimplex(x, r)); convex.Norm(d) > 1e-12 {
			t.Fatalf("simplex: %v apart", d)
		}
		sizes, total := slices.Clone(x), 0.0
		for i, v := range x {
			sizes[i] = math.Abs(v)
			total += sizes[i]
		}
		if total <= r {
			return
		}
		want := slowSimplex(sizes, r)
		for i, v := range x {
			want[i] = math.Copysign(want[i], v)
		}
		if d := minus(project(convex.L1Ball{R: r}, x), want); convex.Norm(d) > 1e-12 {
			t.Fatalf("L1 ball: %v apart", d)
		}
	})
}

// TestProjectionAtTies: entries that the threshold meets to the last digit: rounding must not let it step to
// and fro.
func TestProjectionAtTies(t *testing.T) {
	for _, r := range []float64{1, 0.1, math.Pi, 1e-90} {
		for ulps := -6; ulps <= 6; ulps++ {
			low := -r
			for range max(ulps, -ulps) {
				low = math.Nextafter(low, float64(ulps)*1e300)
			}
			for _, top := range []float64{0, r, 7 * r} {
				for _, s := range []convex.Set{convex.Simplex{Dim: 3, R: r}, convex.L1Ball{R: r}} {
					x := []float64{top + low, top, -9 * r}
					if p := project(s, x); !s.Contains(p) || !same(project(s, p), p) {
						t.Errorf("%T of %v: %v projected to %v", s, r, x, p)
					}
				}
			}
		}
	}
}

// TestProjectionInManyDimensions: many entries, so that every way is met in which the sum can round.
func TestProjectionInManyDimensions(t *testing.T) {
	for dim := 3; dim < 300; dim++ {
		x := make([]float64, dim)
		for i := range x {
			x[i] = math.Sin(float64(i*dim)) * 3
		}
		for _, r := range []float64{0.3, 1, math.E, 10} {
			for _, s := range []convex.Set{convex.Ball{R: r}, convex.Nonnegative{R: r}, convex.Simplex{Dim: dim, R: r},
				convex.L1Ball{R: r}} {
				start := make([]float64, dim)
				s.Start(start)
				if p := project(s, x); !s.Contains(p) || !same(project(s, p), p) || !s.Contains(start) {
					t.Fatalf("%T of %v in dimension %d: projected to a point outside", s, r, dim)
				}
			}
		}
	}
}

func TestStartIsTheProjectionOfTheOrigin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 40).Draw(t, "dim")
		s := set(t, dim)
		start, want := make([]float64, dim), project(s, make([]float64, dim))
		for i := range start {
			start[i] = math.NaN()
		}
		s.Start(start)
		if !s.Contains(start) || convex.Norm(minus(start, want)) > 1e-15*s.Radius() {
			t.Fatalf("%T: start %v, want %v", s, start, want)
		}
		if p := project(s, spread(dim).Draw(t, "x")); convex.Norm(minus(p, start)) > s.Radius()*(1+1e-14) {
			t.Fatalf("%T: a point at %v from the start, radius %v", s, convex.Norm(minus(p, start)), s.Radius())
		}
	})
}

// TestProjectionOfAnything: the projection of any vector ends, in the set.
func TestProjectionOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 6).Draw(t, "dim")
		entry := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1),
			math.MaxFloat64, -math.MaxFloat64, 5e-324}))
		s, x := set(t, dim), rapid.SliceOfN(entry, dim, dim).Draw(t, "x")
		p := project(s, x)
		if !s.Contains(p) || !same(project(s, p), p) {
			t.Fatalf("%T: %v projected to %v", s, x, p)
		}
		start := make([]float64, dim)
		s.Start(start)
		if n := convex.Norm(x); (math.IsNaN(n) || math.IsInf(n, 0)) && !same(p, start) {
			t.Fatalf("%T: %v projected to %v, want the start %v", s, x, p, start)
		}
	})
}

func TestContainsRefuses(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		set     convex.Set
		in, out [][]float64
	}{
		{convex.Ball{R: 1}, [][]float64{{1, 0}, {0, 0}}, [][]float64{{1, 1e-7}, {nan, 0}}},
		{convex.Nonnegative{R: 1}, [][]float64{{1, 0}, {0, 0}}, [][]float64{{1, 1e-7}, {-1e-300, 0}, {nan, 0}}},
		{convex.Box{Dim: 2, Min: -1, Max: 2}, [][]float64{{-1, 2}, {0, 0}}, [][]float64{{-1.0000001, 0}, {0, 2.0000001},
			{nan, 0}}},
		{convex.Simplex{Dim: 2, R: 1}, [][]float64{{1, 0}, {0.25, 0.75}}, [][]float64{{1, 1e-12}, {1 - 1e-12, 0}, {2, -1},
			{nan, 0}}},
		{convex.L1Ball{R: 1}, [][]float64{{-0.25, 0.75}, {0, 0}}, [][]float64{{-0.25, 0.7500001}, {nan, 0}}},
	} {
		for _, x := range c.in {
			if !c.set.Contains(x) {
				t.Errorf("%T: %v is outside", c.set, x)
			}
		}
		for _, x := range c.out {
			if c.set.Contains(x) {
				t.Errorf("%T: %v is inside", c.set, x)
			}
		}
	}
}

func TestSetDeclaration(t *testing.T) {
	for text, want := range map[string]convex.Set{
		`{"radius":2}`:                        convex.Ball{R: 2},
		`{"kind":"ball","radius":2}`:          convex.Ball{R: 2},
		`{"kind":"box","min":-1,"max":2}`:     convex.Box{Dim: 4, Min: -1, Max: 2},
		`{"kind":"simplex","radius":2}`:       convex.Simplex{Dim: 4, R: 2},
		`{"kind":"nonnegative","radius":0.5}`: convex.Nonnegative{R: 0.5},
		`{"kind":"l1","radius":3}`:            convex.L1Ball{R: 3},
	} {
		var d convex.SetDeclaration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if s, err := d.New(4); err != nil || s != want {
			t.Errorf("%s: %v, %v, want %v", text, s, err, want)
		}
	}
	if r := (convex.Box{Dim: 4, Min: -3, Max: 2}).Radius(); r != 6 {
		t.Errorf("box: radius %v, want 6", r)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		d    convex.SetDeclaration
		dim  int
		want string
	}{
		{convex.SetDeclaration{Kind: "sphere", Radius: 1}, 2, `"sphere"`},
		{convex.SetDeclaration{Radius: 1}, 0, "dimension 0"},
		{convex.SetDeclaration{}, 2, "radius: 0"},
		{convex.SetDeclaration{Radius: inf}, 2, "radius: +Inf"},
		{convex.SetDeclaration{Radius: nan}, 2, "radius: NaN"},
		{convex.SetDeclaration{Kind: "nonnegative", Radius: -1}, 2, "radius: -1"},
		{convex.SetDeclaration{Kind: "simplex", Radius: 1e101}, 2, "radius: 1e+101"},
		{convex.SetDeclaration{Kind: "l1", Radius: 1e-101}, 2, "radius: 1e-101"},
		{convex.SetDeclaration{Kind: "l1", Radius: 1, Max: 1}, 2, "max: 1, want nothing for set l1"},
		{convex.SetDeclaration{Kind: "box", Radius: 1, Max: 1}, 2, "radius: 1"},
		{convex.SetDeclaration{Kind: "box"}, 2, "max: 0, want a number > min (0)"},
		{convex.SetDeclaration{Kind: "box", Min: 2, Max: 1}, 2, "max: 1, want a number > min (2)"},
		{convex.SetDeclaration{Kind: "box", Min: nan, Max: 1}, 2, "min (NaN)"},
		{convex.SetDeclaration{Kind: "box", Min: 0, Max: inf}, 2, "max: +Inf"},
	} {
		if s, err := c.d.New(c.dim); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: set %v, error %v, want one with %q", c.d, s, err, c.want)
		}
	}
}
