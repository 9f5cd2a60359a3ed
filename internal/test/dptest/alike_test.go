package dptest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// P-values of samples that have one law are below a level about as often as it says; of others they are small.
func TestSameLaw(t *testing.T) {
	r := rand.New(Source(t, 1))
	sample := func(n int, shift float64) (out []float64) {
		for range n {
			out = append(out, r.NormFloat64()+shift)
		}
		return out
	}
	const runs = 20_000
	below := 0
	for range runs {
		if SameLaw(sample(40, 0), sample(60, 0)) < 0.05 {
			below++
		}
	}
	if share := float64(below) / runs; share > 0.06 || share < 0.02 {
		t.Errorf("of samples with one law %.3f have p < .05", share)
	}
	if p := SameLaw(sample(100, 0), sample(100, 1.5)); p > 1e-6 {
		t.Errorf("samples far apart: p = %g", p)
	}
	if p := SameLaw([]float64{1, 1, 2}, []float64{1, 2, 1}); p != 1 {
		t.Errorf("the same numbers: p = %g", p)
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("adjusted p-values %v", got)
		}
	}
	if got := holm([]float64{0.5, 0.9}); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("adjusted p-values %v", got)
	}
}

// What differs once is drawn again, and what differs always fails.
func TestAlike(t *testing.T) {
	r := rand.New(Source(t, 2))
	for differs, want := range map[int]struct {
		draws  int
		failed bool
	}{0: {2, false}, 1: {3, false}, 4: {6, false}, 5: {6, true}} {
		t.Run(fmt.Sprint(differs), func(t *testing.T) {
			var rec recorder
			draws := 0
			Alike(&rec, []string{"same", "other"}, func(name string, pass int) (a, b []float64) {
				draws++
				for range 100 {
					x, y := r.Float64(), r.Float64()
					if name == "other" && pass < differs {
						y++
					}
					a, b = append(a, x), append(b, y)
				}
				return a, b
			})
			if draws != want.draws || rec.failed != want.failed {
				t.Errorf("%d draws, failed %t, want %+v", draws, rec.failed, want)
			}
		})
	}
}
