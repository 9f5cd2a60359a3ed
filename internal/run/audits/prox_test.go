package audits

import (
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// proxJob returns blocksJob of many passes under trust local, with one phase, of minimisers, and the least noise for
// the budget.
func proxJob(t *testing.T, rounds int) run.Job {
	t.Helper()
	job := blocksJob(t, func(p *planning.Problem) {
		silos(accounting.Local, 20, 300)(p)
		p.Interactive, p.MaxRounds, p.Algorithm, p.ClipNorm = true, uint64(rounds), "pgd", 0.3
	}, "schedule.plan=proved", "model.radius=5", "schedule.users=2000", "model.clip_norm=0.3", "validation={off: true}")
	const weight = 0.5
	f := job.Plan.Phases[0]
	c, err := accounting.Calibrate(accounting.Request{Users: 20, Dim: job.Features.Dim(), Epsilon: job.Problem.Epsilon,
		Delta: job.Problem.Delta, Trust: accounting.Local,
		HonestFraction: accounting.One, Rounds: rounds, Units: 300, Minimizer: true})
	if err != nil {
		t.Fatal(err)
	}
	f.Rounds, f.RoundsPerUser = uint64(rounds), uint32(rounds)
	f.Mechanism = manifest.Mechanism(randomizer.Params{Dim: c.Dim, ClipNorm: job.Plan.ClipNorm / weight,
		Levels: uint32(c.Levels), Trials: uint32(c.Trials), Units: 300,
		Minimizer: true, Window: uint32(randomizer.WindowOf(c.Trials, 1)), Coin: randomizer.Fair}, 1)
	x := job.Features.Bound()
	f.Constants = &wire.Phase_Prox{Prox: &wire.Prox{Weight: weight, Steps: 20, StepSize: 1 / (job.Loss.Smoothness(x) +
		weight)}}
	job.Forecasts[0].Privacy = c
	return job
}

// Minimisers pass with the noise that was planned and fail with half of it, on rows of the task that move them nearly
// as far as is charged for; and fail where twice as many rows change. Seeds are fixed; with free ones an honest audit
// fails with probability below 1/1000, and one of half of the noise passes about once in ten: RefutableShare is 0.56.
func TestAuditOfMinimisers(t *testing.T) {
	job := proxJob(t, 9)
	audits := seededAudits(t, job, 0)
	if len(audits) != 1 {
		t.Fatalf("%d audits, want 1", len(audits))
	}
	one := audits[0]
	if m := one.Mechanism; m.Statistic != "minimisers" || m.Units != 300 || m.UnitsTogether != 3 ||
		one.Config.View != audit.OneReport {
		t.Errorf("%+v", m)
	}
	for _, pair := range one.Config.Pairs {
		t.Logf("%s: %.3f of the distance that is charged for, in 1/%d of the trials", pair.Name, pair.Distance,
			max(1, pair.Part))
	}
	if pair := one.Config.Pairs[0]; pair.Name != "pole" || pair.Distance < 0.95 {
		t.Errorf("%s: %v of the distance that is charged for; want the client's own rows, 0.95", pair.Name, pair.Distance)
	}
	for _, share := range []uint32{1, 2} {
		cut := one
		cut.Config.Params.Trials = cut.Config.Params.Trials / share &^ 1
		if got, want := auditPasses(t, cut), share == 1; got != want {
			t.Errorf("1/%d of the noise: pass = %v, want %v", share, got, want)
		}
	}
	heavier := one
	heavier.Config.Pairs = nil
	for _, pair := range one.Config.Pairs {
		honest := pair.Encoder
		pair.Encoder = func(p randomizer.Params, entropy rand.Source) (audit.Encoder, error) {
			e, err := honest(p, entropy)
			if of, ok := e.(encoder); ok {
				for i, b := range of.blocks {
					of.blocks[i] = block.Of(append(b.Rows, b.Rows...)...)
				}
				e = of
			}
			return e, err
		}
		heavier.Config.Pairs = append(heavier.Config.Pairs, pair)
	}
	if auditPasses(t, heavier) {
		t.Error("twice as many rows change as is claimed, and pass")
	}
}
