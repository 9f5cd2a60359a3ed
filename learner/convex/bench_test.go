package convex_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// scenery returns an example and a point of dimension 100, the same at every call.
func scenery(l convex.Loss, label float64) (convex.Example, []float64) {
	e := convex.Example{Value: make([]float64, 100), Label: label}
	for i := range e.Value {
		e.Value[i] = math.Sin(float64(i)) / 7
	}
	theta := make([]float64, l.Parameters(100))
	for i := range theta {
		theta[i] = math.Cos(float64(i * i))
	}
	return e, theta
}

func title(d convex.Declaration) string {
	s := d.Name
	if d.Classes > 0 {
		s += fmt.Sprintf("/classes=%d", d.Classes)
	}
	if d.ClassWeights != nil {
		s += "/weighted"
	}
	if d.LabelNoise > 0 {
		s += "/denoised"
	}
	return s
}

// TestGradientsDoNotAllocate: devices compute gradients one after another: none of them may allocate.
func TestGradientsDoNotAllocate(t *testing.T) {
	for _, d := range declared {
		l := declare(t, d.Declaration)
		e, theta := scenery(l, d.labels[0])
		dst, smooth := make([]float64, len(theta)), envelope(t, l, 3)
		for name, f := range map[string]func(){
			"gradient":            func() { l.Gradient(dst, theta, e) },
			"prox":                func() { l.Prox(dst, theta, e, 3) },
			"envelope's gradient": func() { smooth.Gradient(dst, theta, e) },
		} {
			if n := testing.AllocsPerRun(10, f); n != 0 {
				t.Errorf("%s: %s allocates %v times", title(d.Declaration), name, n)
			}
		}
	}
}

func BenchmarkGradient(b *testing.B) {
	for _, d := range declared {
		b.Run(title(d.Declaration), func(b *testing.B) {
			l := declare(b, d.Declaration)
			e, theta := scenery(l, d.labels[0])
			dst := make([]float64, len(theta))
			b.ReportAllocs()
			for b.Loop() {
				l.Gradient(dst, theta, e)
			}
		})
	}
}

func BenchmarkProx(b *testing.B) {
	for _, d := range declared {
		b.Run(title(d.Declaration), func(b *testing.B) {
			l := declare(b, d.Declaration)
			e, theta := scenery(l, d.labels[0])
			dst := make([]float64, len(theta))
			b.ReportAllocs()
			for b.Loop() {
				l.Prox(dst, theta, e, 3)
			}
		})
	}
}

func BenchmarkProject(b *testing.B) {
	for _, dim := range []int{100, 100000} {
		for _, d := range []convex.SetDeclaration{
			{Kind: "ball", Radius: 3}, {Kind: "nonnegative", Radius: 3}, {Kind: "box", Min: -0.5, Max: 0.5},
			{Kind: "simplex", Radius: 3}, {Kind: "l1", Radius: 3},
		} {
			b.Run(fmt.Sprintf("%s/d=%d", d.Kind, dim), func(b *testing.B) {
				s, err := d.New(dim)
				if err != nil {
					b.Fatal(err)
				}
				x, dst := make([]float64, dim), make([]float64, dim)
				for i := range x {
					x[i] = math.Cos(float64(i * i))
				}
				b.ReportAllocs()
				for b.Loop() {
					s.Project(dst, x)
				}
			})
		}
	}
}
