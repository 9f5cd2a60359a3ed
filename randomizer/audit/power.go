package audit

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// refutable returns Report.RefutableShare for the points that are tested in a setting, each bound of which fails with
// probability alpha. Totals are taken for normal; the bounds of an audit whose runs come out at their means decide.
func (c Config) refutable(s setting, points []point, alpha float64) float64 {
	p := c.Params.Coin.Float()
	planned, rounding := float64(c.Params.Noise().Intruded(c.Together)), 0.0
	if !c.View.looked() {
		planned = float64(c.Params.Noise().Released(s.cohort - s.dishonest))
		if c.Params.Levels%2 == 1 { // a zero lies halfway between two grid points
			rounding = float64(s.honest-c.Together) / 4
		}
	}
	shift := float64(c.Together*c.Within) * float64(c.Params.Levels) / float64(max(c.Params.Units, 1)) * s.Distance
	n := float64(s.trials - s.trials/8) // as in observe
	z := -distuv.UnitNormal.Quantile(alpha)
	refuted := func(share float64) bool {
		mu := shift / math.Sqrt(share*planned*p*(1-p)+rounding)
		for _, pt := range points {
			hit, miss := distuv.UnitNormal.CDF(mu/2-pt.Epsilon/mu), distuv.UnitNormal.CDF(-mu/2-pt.Epsilon/mu)
			low := hit - z*math.Sqrt(hit*(1-hit)/n) - math.Exp(pt.Epsilon)*(miss+z*math.Sqrt(miss*(1-miss)/n))
			if low > pt.Claimed {
				return true
			}
		}
		return false
	}
	low, high := 0.0, 1.0
	for range 50 {
		if mid := (low + high) / 2; refuted(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
