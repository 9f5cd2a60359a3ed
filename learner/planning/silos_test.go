package planning

import (
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestAccountedPlansOfSilos: plans of silos by the accountant meet the budget, the randomizer can run them, and the
// window of trust local is even and has room for the noise of the smallest silo.
func TestAccountedPlansOfSilos(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Local} {
		for _, many := range []bool{false, true} {
			p := siloProblem(20, 1600, 20)
			p.Trust, p.Interactive, p.MaxRounds, p.Algorithm = trust, many, 60, "pagd"
			if many {
				p.Algorithm = "pgd"
			}
			if trust == accounting.Local {
				p.Silos.Least = 800
			}
			out, err := MakePlan(p)
			if err != nil {
				t.Fatal(err)
			}
			f, m := out.Plan.Phases[0], out.Plan.Phases[0].Mechanism
			if err := out.Runnable(); err != nil || out.Plan.Epsilon > 1 || out.Plan.Epsilon < 0.9 {
				t.Errorf("%v: epsilon %v, %v", trust, out.Plan.Epsilon, err)
			}
			if got := out.Forecasts[0].Privacy.Release().Units; got != m.Units {
				t.Errorf("%v: calibrated for blocks of %d, planned %d", trust, got, m.Units)
			}
			switch {
			case trust == accounting.Shuffle && m.Window != 0:
				t.Errorf("a window of %d under trust shuffle", m.Window)
			case trust == accounting.Local && out.Plan.Trust != wire.Trust_TRUST_LOCAL:
				t.Errorf("trust %v", out.Plan.Trust)
			case trust == accounting.Local && (m.Window%2 != 0 || float64(m.Window)*float64(m.Window) < 4*64*float64(m.Trials) ||
				m.Window > 4*m.Trials):
				// 8 of their standard deviations to each side
				t.Errorf("window %d of %d trials for silos of half the units", m.Window, m.Trials)
			}
			t.Logf("%v, many passes %v: %d rounds of %d reports of %d units, g %d, b %d, window %d, noise %.4g, risk %.4g",
				trust, many, f.Rounds, f.Cohort,
				m.Units, m.Levels, m.Trials, m.Window, out.Forecasts[0].Privacy.NoiseStd, out.ExcessRisk)
		}
	}
}
