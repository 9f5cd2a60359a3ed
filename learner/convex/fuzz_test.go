package convex_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// floats reads little-endian numbers, NaN and infinities among them.
func floats(data []byte, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		if len(data) >= 8 {
			x[i], data = math.Float64frombits(binary.LittleEndian.Uint64(data)), data[8:]
		}
	}
	return x
}

// FuzzLoss hands every loss anything: nothing panics, everything ends, and a subgradient of moderate input is finite
// and within the Lipschitz constant.
func FuzzLoss(f *testing.F) {
	f.Add(1.0, 0.5, []byte{})
	f.Add(math.NaN(), math.Inf(1), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7f, 1})
	f.Add(-1e300, 5e-324, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef,
		0xff})
	f.Fuzz(func(t *testing.T, label, b float64, data []byte) {
		const dim = 2
		for _, d := range declared {
			l := declare(t, d.Declaration)
			n := l.Parameters(dim)
			all := floats(data, dim+n)
			e, theta := convex.Example{Value: all[:dim], Label: label}, all[dim:]
			losses := []convex.Loss{l}
			if env, err := convex.NewEnvelope(l, b); err == nil {
				losses = append(losses, env)
			}
			moderate := l.CheckLabel(label) == nil && math.Abs(label) < 1e6 && e.Validate(dim) == nil && convex.Norm(all) < 1e6
			for _, l := range losses {
				v, g := l.Value(theta, e), gradient(l, theta, e)
				if size := convex.Norm(g); moderate && !(size <= l.Lipschitz(e.Norm())*(1+1e-9) && !math.IsInf(size, 0) &&
					!math.IsNaN(v)) {
					t.Errorf("%s: value %v, gradient of norm %v", l.Name(), v, size)
				}
			}
			u := prox(l, theta, e, b)
			if moderate && b > 1e-6 && b < 1e6 && math.IsNaN(convex.Norm(u)) {
				t.Errorf("%s: prox %v", l.Name(), u)
			}
			convex.Clip(u, 1)
		}
	})
}

func FuzzProject(f *testing.F) {
	f.Add(1.0, []byte{})
	f.Add(0.1, []byte{1, 0, 0, 0, 0, 0, 0xf0, 0x3f, 2, 0, 0, 0, 0, 0, 0xf0, 0x3f})
	f.Fuzz(func(t *testing.T, radius float64, data []byte) {
		const dim = 4
		x := floats(data, dim)
		for _, d := range []convex.SetDeclaration{
			{Radius: radius}, {Kind: "nonnegative", Radius: radius}, {Kind: "simplex", Radius: radius},
			{Kind: "l1", Radius: radius}, {Kind: "box", Min: -1, Max: radius},
		} {
			s, err := d.New(dim)
			if err != nil {
				continue
			}
			p := project(s, x)
			if !s.Contains(p) || !same(project(s, p), p) {
				t.Errorf("%T: %v projected to %v", s, x, p)
			}
			start := make([]float64, dim)
			s.Start(start)
			if !s.Contains(start) {
				t.Errorf("%T: the start %v is outside", s, start)
			}
		}
	})
}
