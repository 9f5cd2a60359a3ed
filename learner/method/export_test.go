package method

import (
	"math"
	"testing"
)

// NewGuarded returns a guarded method.
func NewGuarded(c PAGDConfig, trust float64) (*Guarded, error) { return newGuarded(c, trust) }

// A View is the filters of a bank's weights, for tests of what they mix.
type View struct {
	bank    *Bank
	Weights []float64 // belief in each filter before the next observation
}

// Experts returns a view of the bank as it is.
func Experts(b *Bank) View { return View{b, b.weights.weight} }

// Densities returns the density that each filter gives an observation z whose known variance in each coordinate is r.
func (v View) Densities(z []float64, r float64) []float64 {
	f := &v.bank.weights
	out := make([]float64, len(f.walk))
	for j := range out {
		variance, square := f.variance[j]+f.noise[j]*r, 0.0
		for i, x := range f.point(j) {
			square += (z[i] - x) * (z[i] - x)
		}
		out[j] = math.Pow(2*math.Pi*variance, -float64(f.dim)/2) * math.Exp(-square/variance/2)
	}
	return out
}

// Step has the filters observe z with known variance r, of 250 users.
func (v View) Step(t *testing.T, z []float64, r float64) {
	t.Helper()
	f := &v.bank.weights
	at := f.mean()
	g := make([]float64, len(at))
	for i := range g {
		g[i] = at[i] - z[i]
	}
	next, _ := f.step(seen{at, g, 1, r, 250, 1})
	v.bank.weights = next
}
