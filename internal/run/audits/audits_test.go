package audits

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
)

func quickstartJob(t *testing.T, sets ...string) run.Job {
	t.Helper()
	spec, err := task.Load("../../../deploy/tasks/quickstart.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func seededAudits(t *testing.T, job run.Job, trials int) []Audit {
	t.Helper()
	out, err := Of(job, trials)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		src := dptest.Source(t, uint64(20+i))
		out[i].Config.Entropy = func() rand.Source { return rand.NewChaCha8(dptest.Seed(src.Uint64())) }
	}
	return out
}

func auditPasses(t *testing.T, one Audit) bool {
	t.Helper()
	rep, err := audit.Run(t.Context(), one.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("phases %v, %s, %s: delta(0) claimed %.4f, at least %.4f; refutable share %.2f", one.Phases, one.Statistic,
		one.Config.View,
		rep.Points[0].Claimed, rep.Points[0].Lower, rep.RefutableShare)
	return rep.Pass
}

// One round of a user who answers many is audited with the power of an audit of a user of one: noise that is cut to a
// quarter is refuted, however many rounds there are. Seeds are fixed; with free ones a quarter passes with probability
// below 1e-9, because the true delta(0) is 0.16 and more, that of the claim is below 0.095, and both bounds are 0.013
// wide with standard errors of 0.0034.
func TestAuditOfInteractiveTasks(t *testing.T) {
	shares := []uint32{1, 4}
	rounds := []string{"89"}
	if longtest.Run(t, "1, 4 and 20 rounds, and other shares of the noise") {
		shares, rounds = []uint32{1, 3, 4, 8}, []string{"1", "4", "20", "89"}
	}
	for _, max := range rounds {
		job := quickstartJob(t, "schedule.algorithm=pgd", "model.radius=5", "schedule.interactive=true", "schedule.users=250",
			"schedule.rounds.max="+max)
		audits := seededAudits(t, job, 0)
		if len(audits) != 1 {
			t.Fatalf("%d audits, want 1", len(audits))
		}
		one, T := audits[0], uint64(job.Plan.Phases[0].RoundsPerUser)
		if k := one.Config.Together; k*k > T || (k+1)*(k+1) <= T || one.RoundsPerUser != int(T) || one.UsersTogether != k {
			t.Errorf("%d users together for %d rounds", k, T)
		}
		checkAuditOf(t, job, 0, one)
		for _, share := range shares {
			cut := one
			cut.Config.Params.Trials /= share
			if got, want := auditPasses(t, cut), share == 1; got != want {
				t.Errorf("%d rounds, 1/%d of the noise: pass = %v, want %v", T, share, got, want)
			}
		}
	}
}

// Every mechanism of a plan is audited against every adversary, with its own parameters, the accountant's claim for one
// round, and a share of the false alarms; and a fault in any one of them is found.
func TestAuditsOfEveryMechanism(t *testing.T) {
	for name, c := range map[string]struct {
		sets       []string
		mechanisms int
		twice      bool // the last phase again
	}{
		"one phase": {[]string{"schedule.users=1000", "schedule.plan=proved", "model.radius=5"}, 1, false},
		"restarts": {[]string{"schedule.users=2000", "schedule.algorithm=pagd-restarts", "model.radius=5",
			"model.ridge=0.5"}, 4, false},
		"moments": {[]string{"schedule.users=800", "schedule.cohort=200"}, 2, true},
		"moments, shuffle+pan": {[]string{"schedule.users=300", "privacy.trust=shuffle+pan", "schedule.cohort=130"}, 2,
			false},
		"matrix": {[]string{"schedule.users=600", "schedule.cohort=100", "label={column: y, min: -1, max: 1}",
			"model.loss=squared"}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.mechanisms > 2 && !longtest.Run(t, "the audit of a plan of "+name) {
				return
			}
			job := quickstartJob(t, c.sets...)
			if c.twice {
				last := len(job.Forecasts) - 1
				job.Plan.Phases, job.Forecasts = append(job.Plan.Phases, job.Plan.Phases[last]),
					append(job.Forecasts, job.Forecasts[last])
			}
			views := viewsOf(job.Problem.Trust)
			audits := seededAudits(t, job, 0)
			if len(audits) != c.mechanisms*len(views) {
				t.Fatalf("%d audits, want %d of %d mechanisms", len(audits), c.mechanisms*len(views), c.mechanisms)
			}
			for i, phase := range job.Plan.Phases {
				for _, view := range views {
					at := slices.IndexFunc(audits, func(a Audit) bool {
						return a.Config.View == view &&
							slices.Contains(a.Phases, i+1)
					})
					if at < 0 {
						t.Fatalf("no audit of phase %d against the %s", i+1, view)
					}
					if audits[at].UsersTogether != 1 {
						t.Errorf("phase %d: %d users change together, want 1", i+1, audits[at].UsersTogether)
					}
					checkAuditOf(t, job, i, audits[at])
					if want := []string{"gradients", "moments",
						"second-moment matrices"}[phase.Statistic]; audits[at].Statistic != want {
						t.Errorf("phase %d: statistic %q, want %q", i+1, audits[at].Statistic, want)
					}
				}
			}
			together := 0.0
			for _, one := range audits {
				together += 1 - one.Config.Confidence
			}
			if math.Abs(together-(1-audit.DefaultConfidence)) > 1e-12 {
				t.Errorf("all audits together fail with probability %v", together)
			}
			for i, one := range audits {
				if one.Config.View == audit.Intruder {
					continue // package audit tests its power
				}
				one.Config.Params.Trials /= 4
				one.Config.Params.FloorTrials /= 4
				if auditPasses(t, one) {
					t.Errorf("audit %d: a quarter of the noise passes", i)
				}
			}
		})
	}
}

// checkAuditOf compares an audit with the phase that it is about.
func checkAuditOf(t *testing.T, job run.Job, phase int, one Audit) {
	t.Helper()
	params, err := manifest.Params(job.Plan.Phases[phase].Mechanism)
	if err != nil {
		t.Fatal(err)
	}
	release := job.Forecasts[phase].Privacy.Release()
	honest := release.HonestFraction.Floor(release.Users)
	if one.Config.Params != params || one.Config.Users-one.Config.Dishonest != honest ||
		one.Config.Minimum != job.Plan.Phases[phase].Minimum || params.FloorTrials != release.FloorTrials ||
		one.Cohort != job.Plan.Phases[phase].Cohort {
		t.Errorf("phase %d runs %+v with %d users and floors of %d trials: %+v", phase+1, params, honest, release.FloorTrials,
			one)
	}
	hidden := map[audit.View]uint64{audit.Learner: honest*release.Trials + 2*release.FloorTrials,
		audit.Intruder: release.Trials + release.FloorTrials}[one.Config.View]
	rounds := int(one.UsersTogether * one.UsersTogether)
	for _, eps := range []float64{0, 0.3} {
		want, err := accounting.Mechanism{Trials: hidden, P: release.P, Levels: release.Levels, Dim: release.Dim,
			Rounds: rounds}.Delta(eps)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := one.Config.Claim(eps); err != nil || got != want {
			t.Errorf("phase %d, %s, epsilon %v: claims %v, %v; that of %d rounds of one user is %v", phase+1, one.Config.View,
				eps, got, err, rounds, want)
		}
	}
}
