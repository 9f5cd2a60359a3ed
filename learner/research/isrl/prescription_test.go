package isrl

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// 20 silos of 160 records in 124 dimensions, epsilon 1: which theorem covers what, and the order in which its
// parameters follow from each other.
func TestPrescribe(t *testing.T) {
	f := Federation{Silos: 20, Available: 20, Records: 160, Dim: 124, Lipschitz: 2, Smoothness: 3.75, Diameter: 10,
		Deviation: 2, Spread: 2, Gap: 0.7,
		Epsilon: 1, Delta: 1e-6}
	strong, rough, many := f, f, f
	strong.Convexity, rough.Smoothness = 0.01, math.Inf(1)
	many.Silos, many.Available = 4000, 4000
	for _, c := range []struct {
		f                           Federation
		accelerated, many, shuffled bool
		want                        string // the theorem, or what the refusal says
		met                         bool
	}{
		{f, false, false, false, "2.1", true}, {f, false, true, false, "2.1", true}, {strong, false, true, false, "2.1",
			true}, {rough, false, true, false, "2.1", true},
		{f, true, false, false, "3.1", true}, {strong, true, false, false, "3.1", true}, {rough, true, false, false,
			"asks for a smooth loss", false},
		{f, true, true, false, "4.1", true}, {strong, true, true, false, "4.1", true}, {rough, true, true, false, "4.1",
			true},
		{f, false, true, true, "5.1", false}, {many, false, true, true, "5.1", true}, {rough, false, true, true,
			"smooth loss", false},
		{f, true, false, true, "5.2", true}, {strong, true, false, true, "5.2", true}, {f, true, true, true, "no theorem",
			false},
		{Federation{}, false, false, false, "silos", false},
	} {
		p, err := c.f.Prescribe(c.accelerated, c.many, c.shuffled)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.want, err)
			}
			continue
		}
		met := !slices.ContainsFunc(p.Conditions, func(c condition) bool { return !c.Met })
		if p.Theorem != c.want || met != c.met || p.Rounds < 1 || p.Batch < 1 || float64(p.Batch) > c.f.Records {
			t.Errorf("%s: %+v", c.want, p)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		if (p.ReportNoise != nil) != c.met {
			t.Errorf("%s: noise %v though conditions are met: %v", c.want, p.ReportNoise, c.met)
			continue
		}
		if !c.met {
			continue
		}
		here := one[float64](t)(c.f.At(p.Theorem, p.Rounds, p.Batch))
		near(t, p.Theorem+" in its own rounds", here, *p.ReportNoise, 1e-12)
		near(t, p.Theorem+" of the mean", *p.ReportNoise / *p.MeanNoise, math.Sqrt(c.f.Available), 1e-12)
		if e := p.Epsilon; e != nil && !(e.Upper < c.f.Epsilon && e.Lower <= e.Upper) {
			t.Errorf("%s: its rounds cost %+v", p.Theorem, *e)
		}
	}
}
