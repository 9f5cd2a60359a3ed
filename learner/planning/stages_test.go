package planning

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestStagesOfSilos: Restarts of silos: blocks of one size that fit, rounds that double, a bound that follows
// from the phases' own constants, and no number of stages, that of Theorem 4.8 and the one of pagd among them,
// with a smaller one.
func TestStagesOfSilos(t *testing.T) {
	counts := map[int]bool{}
	for _, c := range []struct{ count, units, reports uint64 }{{20, 1600, 20}, {20, 1600, 12}, {20, 1 << 20, 20},
		{3, 1 << 24, 3}, {20, 40, 20}} {
		p := siloProblem(c.count, c.units, c.reports)
		p.Ridge, p.Algorithm = 0.05, "pagd-restarts"
		from := gaussian{k: 1, mu: 0.3, local: true}
		d, err := newDraft(p, p.Algorithm, from)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.plan()
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		counts[len(out.Forecasts)] = true
		rounds, units := manifest.Planned(out.Plan), out.Forecasts[0].units()
		if rounds*c.reports > c.count*min(c.units/units, rounds) {
			t.Errorf("%+v: %d rounds of blocks of %d do not fit", c, rounds, units)
		}
		prior, reach := d.trivial, d.distance
		for i, f := range out.Plan.Phases {
			of, a := out.Forecasts[i], f.GetAcceleration()
			if of.units() != units || f.Cohort != c.reports || f.Users != f.Rounds*c.reports || f.RoundsPerUser != 1 || f.Again {
				t.Errorf("%+v: stage %d: %v", c, i+1, f)
			}
			if i > 0 && (f.Rounds < 2*out.Plan.Phases[i-1].Rounds || f.Rounds > 2*out.Plan.Phases[i-1].Rounds+
				2*uint64(len(out.Forecasts))) {
				t.Errorf("%+v: %d rounds after %d", c, f.Rounds, out.Plan.Phases[i-1].Rounds)
			}
			n := gaussian{k: float64(units), mu: 0.3, local: true}.model(c.reports, 1)
			v := OracleVariance(p.gradientNorm(), c.reports*units, p.Dim, n.privacy, 0) + p.Silos.heterogeneity(p.gradientNorm())
			prior = PAGDBound(min(reach, restartDistance(prior, p.Ridge)), v, a.V, p.Smoothness+p.Ridge, p.Ridge, f.Rounds)
			if reach = 2 * 5; math.Abs(prior/of.Risk-1) > 1e-9 {
				t.Errorf("%+v: stage %d ends at risk %v, its constants say %v", c, i+1, of.Risk, prior)
			}
		}
		for stages := 1; stages <= mostStages; stages++ {
			for rounds := uint64(1)<<stages - 1; rounds <= min(3000, c.count*c.units/c.reports); rounds += 1 + rounds/20 {
				k := p.Silos.Blocks(rounds)
				all, _ := d.staged(c.reports, k, stagesOf(rounds, stages), from.about(k).model(c.reports, 1), accounting.Plan{})
				if risk := all[stages-1].setting.risk; risk < 0.995*out.ExcessRisk {
					t.Errorf("%+v: %d stages in %d rounds have risk %v, planned %v in %d", c, stages, rounds, risk, out.ExcessRisk,
						len(out.Forecasts))
				}
			}
		}
		plain, err := newDraft(p, "pagd", from)
		if err != nil {
			t.Fatal(err)
		}
		if one, err := plain.plan(); err != nil || out.ExcessRisk > 1.005*one.ExcessRisk {
			t.Errorf("%+v: risk %v, with pagd %v: %v", c, out.ExcessRisk, one.ExcessRisk, err)
		}
		t.Logf("%+v: %d stages in %d rounds of blocks of %d, risk %.3g; the theorem's number is %d", c, len(out.Forecasts),
			rounds, units, out.ExcessRisk, restartPhases(p.Users))
	}
	if len(counts) < 2 {
		t.Errorf("all have as many stages: %v", counts)
	}
}

// TestAccountedStagesOfSilos: the plan of stages runs: within the budget, and as every plan is checked.
func TestAccountedStagesOfSilos(t *testing.T) {
	p := siloProblem(20, 1600, 20)
	p.Trust, p.Ridge, p.Algorithm = accounting.Local, 0.05, "pagd-restarts"
	out, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.CheckTask(&wire.Task{Plan: out.Plan}); err != nil || out.Plan.Epsilon > 1 ||
		out.Plan.Epsilon < 0.9 || len(out.Stints()) != len(out.Plan.Phases) {
		t.Errorf("epsilon %v in %d stages: %v", out.Plan.Epsilon, len(out.Plan.Phases), err)
	}
	if _, err := learner.New(out.Plan); err != nil {
		t.Error(err)
	}
	p.MaxRounds = 2
	if out, err = MakePlan(p); err != nil || manifest.Planned(out.Plan) > 2 {
		t.Errorf("%d rounds, want at most 2: %v", manifest.Planned(out.Plan), err)
	}
	p.Interactive, p.Algorithm = true, "pgd-restarts"
	if _, err := MakePlan(p); err == nil {
		t.Error("silos who answer all rounds are split into phases")
	}
}
