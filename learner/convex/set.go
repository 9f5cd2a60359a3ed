package convex

import (
	"fmt"
	"math"
	"strings"
)

// A Set is a closed convex set.
type Set interface {
	// Project overwrites dst with the point of the set nearest to x in Euclidean distance, up to rounding; dst and x have
	// the same length and may be the same slice. A point of the set is returned unchanged, bit for bit, and the result is
	// one. For an x with an entry that is not finite, or whose norm is not, the result is Start.
	Project(dst, x []float64)
	// Contains reports whether x is in the set. NaN never is.
	Contains(x []float64) bool
	// Radius bounds the norm of the points of the set. It bounds their distance from Start too, which is the D_0 of the
	// risk bounds, for ||z - start||^2 <= ||z||^2 - ||start||^2.
	Radius() float64
	// Start overwrites dst with the point where every method starts: the projection of the origin.
	Start(dst []float64)
}

// A SetDeclaration is a constraint set as a task file and a plan name it.
type SetDeclaration struct {
	Kind string `json:"kind,omitempty"` // one of SetKinds; "" means ball
	// all but the box: bound on the norm, for l1 on the L1 norm; for the simplex the sum
	Radius float64 `json:"radius,omitempty"`
	Min    float64 `json:"min,omitempty"` // box: least value of every entry
	Max    float64 `json:"max,omitempty"` // box: largest value of every entry
}

// sets is the table of sets, in the order of the documentation. All sets except the box have a radius.
var sets = [...]struct {
	kind        string
	above, most float64 // radius
	make        func(d SetDeclaration, dim int) Set
}{
	{"ball", 0, math.MaxFloat64, func(d SetDeclaration, _ int) Set { return Ball{R: d.Radius} }},
	{"box", 0, 0, func(d SetDeclaration, dim int) Set { return Box{Dim: dim, Min: d.Min, Max: d.Max} }},
	{"nonnegative", 0, math.MaxFloat64, func(d SetDeclaration, _ int) Set { return Nonnegative{R: d.Radius} }},
	{"simplex", 1e-100, 1e100, func(d SetDeclaration, dim int) Set { return Simplex{Dim: dim, R: d.Radius} }},
	{"l1", 1e-100, 1e100, func(d SetDeclaration, _ int) Set { return L1Ball{R: d.Radius} }},
}

// SetKinds returns the kinds of sets, in the order of the documentation. The first is the default, also written "".
func SetKinds() []string {
	out := make([]string, len(sets))
	for i, s := range sets {
		out[i] = s.kind
	}
	return out
}

// New returns the declared set in a dimension of at least 1. The error wraps a *ParameterError that names the field
// that does not fit.
func (d SetDeclaration) New(dim int) (Set, error) {
	kind := d.Kind
	if kind == "" {
		kind = sets[0].kind
	}
	for _, s := range sets {
		if s.kind != kind {
			continue
		}
		if err := d.check(kind, s.above, s.most); err != nil {
			return nil, err
		}
		out := s.make(d, dim)
		switch {
		case dim < 1:
			return nil, fmt.Errorf("set: dimension %d, want at least 1", dim)
		case math.IsInf(out.Radius(), 0):
			return nil, &ParameterError{"max", d.Max, "bounds whose corner has a finite norm"}
		}
		return out, nil
	}
	return nil, &ParameterError{"set", fmt.Sprintf("%q", d.Kind), "one of " + strings.Join(SetKinds(), ", ")}
}

// check looks at the parameters of a set with a radius in (above, most]; of the box, which has none, most is 0.
func (d SetDeclaration) check(kind string, above, most float64) error {
	switch {
	case most == 0 && d.Radius != 0:
		return &ParameterError{"radius", d.Radius, fmt.Sprintf("nothing for set %s: min and max are its size", kind)}
	case most == 0 && !(d.Min < d.Max):
		return &ParameterError{"max", d.Max, fmt.Sprintf("a number > min (%v)", d.Min)}
	case most == 0:
		return nil
	case d.Min != 0:
		return &ParameterError{"min", d.Min, "nothing for set " + kind}
	case d.Max != 0:
		return &ParameterError{"max", d.Max, "nothing for set " + kind}
	case d.Radius > above && d.Radius <= most:
		return nil
	case most == math.MaxFloat64:
		return &ParameterError{"radius", d.Radius, "a number > 0"}
	}
	return &ParameterError{"radius", d.Radius, fmt.Sprintf("a number > %v and at most %v", above, most)}
}

func finite(x []float64) bool {
	n := Norm(x)
	return !math.IsNaN(n) && !math.IsInf(n, 0)
}
