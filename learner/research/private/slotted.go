package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// slotted is Algorithm 4 with one slot a record, as it is charged: fixed before any data, whatever centre, strength
// and step length it will have.
type slotted struct {
	slots int             // m = That - 1
	rate  randomizer.Coin // q of a call: batch = q n / m
	kd    float64         // Lemma D, of the longest steps
	shift float64         // of a call in levels, and mu its Gaussian parameter
	mu    float64
	call  entry
}

// batch returns B, the expected number of records in a slot.
func (c slotted) batch(n int) float64 { return c.rate.Float() * float64(n) / float64(c.slots) }

// rounding bounds what floating point adds to the distance of two runs' means, relative to e L/B:
// docs/proofs/resque.md, "Evaluation".
func rounding(ph phase, d int, r, batch, lipschitz float64) float64 {
	return 2 * float64(ph.steps) * float64(d+64) * 0x1p-50 * (r*batch/(ph.e*lipschitz) + 4*batch + 4 +
		math.Sqrt(float64(d)))
}

// maxRounding refuses phases whose rounding would show.
const maxRounding = 0.01

// place returns the phases of steps from eta on, with the length of a level in each, in a ball of radius r:
// two runs' means are then within shift levels of each other, truncation included. It returns an error if
// rounding is too large, or the ball too large for the lattice.
func (c slotted) place(p Public, r, eta float64) ([]phase, error) {
	of, batch := phases(c.slots+1, eta), c.batch(p.N)
	for i, ph := range of {
		off := rounding(ph, p.Dim, r, batch, p.Lipschitz)
		if !(off <= maxRounding) {
			return nil, fmt.Errorf("phase %d: rounding of %.2g, want at most %v of what one record moves", i+1, off, maxRounding)
		}
		apart := c.kd * (1 + off) * ph.e * p.Lipschitz / batch
		of[i].scale = (c.shift*(1<<stepBits) - 2*math.Sqrt(float64(p.Dim))) / apart
		of[i].level = (1 << stepBits) / of[i].scale
		if !(r*of[i].scale < 1<<61) || of[i].scale <= 0 {
			return nil, fmt.Errorf("phase %d: a ball of %.3g steps, want at most 2^61", i+1, r*of[i].scale)
		}
	}
	return of, nil
}

// variance returns V of docs/proofs/resque.md, Lemma V, for steps of step r/L in the ball and an objective whose slope
// there is at most slope L; +Inf if the lemma does not apply. noise is the standard deviation of a coordinate of a
// phase's noise over e L/B.
func (c slotted) variance(p Public, m *moments, step, slope, noise float64) float64 {
	d, T, B, q := float64(p.Dim), float64(c.slots+1), c.batch(p.N), c.rate.Float()
	curvature := 1 - step*m.s/4 // eta L/(4 rho)
	of := phases(c.slots+1, step)
	var grown float64
	for _, ph := range of {
		grown += float64(ph.steps) * m.logGrowth(1, ph.e*m.s)
	}
	if !(curvature > 0.1) || !(q < 0.9) {
		return math.Inf(1)
	}
	drift := math.Exp(m.s*m.s/2 + grown/2)
	return (math.Exp(m.s*m.s)/B+q/(1-q))/(6*curvature) + float64(len(of))*(2+2*m.s)*q*drift*T/(T-1)/(7*B) +
		4*d*noise*noise/(B*B*T) + slope*math.Sqrt(d)*noise/(B*T*T)
}
