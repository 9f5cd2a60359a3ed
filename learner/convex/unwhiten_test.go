package convex_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestUnwhitenIsTheInverse of Whiten; a whitener with none is refused.
func TestUnwhitenIsTheInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for n := range 12 {
		f := convex.Frame{}
		a := make([]float64, n)
		for i := range a {
			a[i] = r.NormFloat64()
		}
		for i := range n {
			for j := range i + 1 {
				w := -0.9 * a[i] * a[j] / (1e-9 + norm2(a))
				if i == j {
					w++
				}
				f.Whitener = append(f.Whitener, w)
			}
		}
		x, y, back := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		f.Whiten(y, x)
		if err := f.Unwhiten(back, y); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if math.Abs(x[i]-back[i]) > 1e-12*(1+math.Abs(x[i])) {
				t.Errorf("%d of %d: %v, want %v", i, n, back[i], x[i])
			}
		}
	}
	f := convex.Frame{Whitener: []float64{1, 2, 1}}
	if err := f.Unwhiten(make([]float64, 2), make([]float64, 2)); err == nil {
		t.Error("a whitener without an inverse is taken")
	}
}

func norm2(a []float64) (sum float64) {
	for _, x := range a {
		sum += x * x
	}
	return sum
}
