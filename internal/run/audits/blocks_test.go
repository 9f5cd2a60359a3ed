package audits

import (
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
)

const items = 16 // of a person

// blocksJob returns the quickstart's job, planned for reports about blocks.
func blocksJob(t *testing.T, change func(*planning.Problem), sets ...string) run.Job {
	t.Helper()
	job := quickstartJob(t, sets...)
	p := job.Problem
	change(&p)
	proposal, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range proposal.Plan.Phases {
		f.Mechanism.MaxBundle = 1
	}
	job.Problem, job.Proposal = p, proposal
	if p.ByUser {
		spec := *job.Spec
		spec.Privacy.Unit, spec.User = task.UnitUser, &task.User{Items: items}
		job.Spec = &spec
	}
	return job
}

func silos(trust accounting.Trust, count, units uint64) func(*planning.Problem) {
	return func(p *planning.Problem) {
		p.Trust, p.Users, p.Silos = trust, count*units, planning.Silos{Count: count, Units: units, Reports: count,
			Least: units}
		if trust == accounting.Shuffle {
			p.HonestFraction, _ = accounting.ParseFraction("19/20")
		}
	}
}

func people(p *planning.Problem) { p.ByUser, p.Radius = true, 0.25 }

// Reports about blocks pass with the noise that was planned and the claim for one unit, or for the root of the rounds
// in one report, and fail with less noise; and where a person's rows go in as units of their own. Under trust local
// each report is seen alone. Seeds are fixed. With free ones an honest audit fails with probability below 1/1000, and
// one of a quarter of the noise passes below 1e-7: the true delta(0) is 0.14 and more, the claim below 0.095, and the
// bounds are 0.013 wide with standard errors of 0.0034.
func TestAuditOfBlocks(t *testing.T) {
	proved := []string{"schedule.plan=proved", "model.radius=5", "schedule.users=2000"}
	many := func(p *planning.Problem) { p.Interactive, p.MaxRounds, p.Algorithm = true, 64, "pgd" }
	all := func(changes ...func(*planning.Problem)) func(*planning.Problem) {
		return func(p *planning.Problem) {
			for _, c := range changes {
				c(p)
			}
		}
	}
	for name, c := range map[string]struct {
		change     func(*planning.Problem)
		sets       []string
		units      uint64
		mechanisms int
		long       bool
	}{
		"local, one pass":       {silos(accounting.Local, 20, 300), proved, 0, 1, false},
		"local, many passes":    {all(silos(accounting.Local, 20, 300), many), proved, 300, 1, false},
		"local, one row":        {silos(accounting.Local, 2000, 1), proved, 1, 1, true},
		"local, practical":      {silos(accounting.Local, 20, 300), []string{"schedule.users=2000"}, 0, 2, true},
		"shuffle":               {silos(accounting.Shuffle, 20, 300), proved, 0, 1, true},
		"shuffle, many passes":  {all(silos(accounting.Shuffle, 20, 300), many), proved, 300, 1, true},
		"people":                {people, []string{"schedule.users=2000", "schedule.cohort=200"}, 1, 2, true},
		"patients of hospitals": {all(silos(accounting.Local, 20, 300), many, people), proved, 300, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && !longtest.Run(t, "audits of blocks: "+name) {
				t.SkipNow()
			}
			job := blocksJob(t, c.change, c.sets...)
			audits := seededAudits(t, job, 0)
			if len(audits) != c.mechanisms {
				t.Fatalf("%d audits, want %d", len(audits), c.mechanisms)
			}
			for _, one := range audits {
				m := job.Plan.Phases[one.Phases[0]-1].Mechanism
				if one.Units != max(m.Units, 1) || c.units != 0 && one.Units != c.units || one.Config.Params.Units != m.Units ||
					one.Config.Params.Window != m.Window {
					t.Errorf("blocks of %d units, %+v: planned %v", one.Units, one.Config.Params, m)
				}
				if local := job.Problem.Trust == accounting.Local; local != (one.Config.View == audit.OneReport) || local &&
					one.Config.Users != 1 {
					t.Errorf("trust %v: %v of %d users", job.Problem.Trust, one.Config.View, one.Config.Users)
				}
				if k := one.UsersTogether * one.UnitsTogether; k*k > uint64(one.RoundsPerUser) ||
					(k+1)*(k+1) <= uint64(one.RoundsPerUser) && one.Units > k {
					t.Errorf("%d users, %d units together for %d rounds", one.UsersTogether, one.UnitsTogether, one.RoundsPerUser)
				}
				for _, share := range []uint32{1, 4} {
					cut := one
					cut.Config.Params.Trials = cut.Config.Params.Trials / share &^ 1
					if got, want := auditPasses(t, cut), share == 1; got != want {
						t.Errorf("1/%d of the noise: pass = %v, want %v", share, got, want)
					}
				}
				if job.Problem.ByUser && one.Units > items {
					apart := one
					apart.Config.Pairs = nil
					for _, pair := range one.Config.Pairs {
						honest := pair.Encoder
						pair.Encoder = func(p randomizer.Params, entropy rand.Source) (audit.Encoder, error) {
							e, err := honest(p, entropy)
							if of, ok := e.(encoder); ok {
								for i, b := range of.blocks {
									of.blocks[i] = block.Of(b.Rows[:min(len(b.Rows), int(p.Units))]...)
								}
								e = of
							}
							return e, err
						}
						apart.Config.Pairs = append(apart.Config.Pairs, pair)
					}
					if auditPasses(t, apart) {
						t.Error("rows of a person as units of their own pass")
					}
				}
			}
		})
	}
}

// A silo that is smaller than was planned for is audited with the noise of its own, and fails with that of the plan: a
// quarter of the units with a sixteenth of the noise that they need. The window has room for both. Seeds are fixed;
// with free ones as in TestAuditOfBlocks.
func TestAuditOfTheSmallestSilo(t *testing.T) {
	job := blocksJob(t, func(p *planning.Problem) {
		silos(accounting.Local, 20, 300)(p)
		p.Silos.Least, p.Interactive, p.MaxRounds, p.Algorithm = 75, true, 64, "pgd"
	}, "schedule.plan=proved", "model.radius=5", "schedule.users=2000")
	audits := seededAudits(t, job, 0)
	if len(audits) != 2 {
		t.Fatalf("%d audits, want 2: of silos as planned, and of the smallest", len(audits))
	}
	m, small := job.Plan.Phases[0].Mechanism, audits[1]
	if p := small.Config.Params; p.Units != 75 || small.Units != 75 || p.Window != m.Window || p.Trials <= m.Trials ||
		uint64(p.Trials) != small.Trials {
		t.Errorf("the smallest silo has %+v, the plan %v", p, m)
	}
	if !auditPasses(t, small) {
		t.Error("the smallest silo fails")
	}
	small.Config.Params.Trials = m.Trials
	if auditPasses(t, small) {
		t.Error("the smallest silo passes with the noise of one of 300 units")
	}
}
