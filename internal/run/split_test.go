package run_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/audits"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSplitIsPlanned: tasks of two operators are planned in one pass, in many, without an end, of organisations and of
// people; devices would take each unchanged once it names its operators, and its bundles fit a server with default
// limits.
func TestSplitIsPlanned(t *testing.T) {
	for name, sets := range map[string][]string{
		"practical":   nil,
		"proved":      {"schedule.plan=proved", "model.radius=5"},
		"many passes": {"schedule.interactive=true"},
		"no end":      {"schedule.continuous=adaptive"},
		"bits":        {"privacy.max_bits=12"},
		"silos":       {"silo={count: 20, units: 150}"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runtest.Job(t, runtest.Spec(t, "quickstart", append(sets, "schedule.users=3000", "privacy.trust=split")...))
			if job.Plan.Prio3 != "draft-14" || job.Plan.Trust != wire.Trust_TRUST_SPLIT || job.Plan.Epsilon > job.Problem.Epsilon {
				t.Errorf("prio3 %q, trust %v, epsilon %v", job.Plan.Prio3, job.Plan.Trust, job.Plan.Epsilon)
			}
			body := &wire.Task{Plan: job.Plan, Suite: wire.Suite_SUITE_MLKEM768_X25519, StageKey: make([]byte, 32),
				HelperKey: bytes.Repeat([]byte{1}, 32)}
			if err := manifest.CheckTask(body); err != nil {
				t.Error(err)
			}
			for i, f := range job.Plan.Phases {
				part := manifest.SharedPart(int(f.Mechanism.Dim), f.Mechanism.Levels)
				if g := f.Mechanism.Levels; g&(g+1) != 0 || f.Mechanism.Trials != 0 || f.Mechanism.FloorTrials == 0 {
					t.Errorf("phase %d: %+v", i+1, f.Mechanism)
				}
				if size := part.ReportSize(body.Suite, int(f.Mechanism.MaxBundle)); size > natsjs.DefaultMaxPayload {
					t.Errorf("phase %d: bundles of %d users have %d bytes", i+1, f.Mechanism.MaxBundle, size)
				}
				if got := job.Forecasts[i].Privacy; got.SentBytes() != uint64(part.Bytes()) || got.ReportBytes != uint64(part.Leader) ||
					got.HelperBytes != uint64(part.Helper) || part.Leader < part.Helper {
					t.Errorf("phase %d: shares of %d and %d bytes, %d in all, want %+v", i+1, got.ReportBytes, got.HelperBytes, got.SentBytes(), part)
				}
			}
		})
	}
}

// TestSharesTooLargeAreRefused: a plan whose report no broker takes, however it is configured, is refused with what
// would help.
func TestSharesTooLargeAreRefused(t *testing.T) {
	spec := runtest.Spec(t, "a9a", "privacy.trust=split", "schedule.plan=proved", "schedule.algorithm=psgd",
		"model.radius=5", "features={vector: {dimension: 1000000, min: -1, max: 1, max_nonzeros: 5}}")
	if _, err := run.NewJob(spec); err == nil || !strings.Contains(err.Error(), "lower privacy.max_bits or the dimension") {
		t.Errorf("%v, want a refusal of the dimension", err)
	}
}

// TestOperatorsAreNamed: a task of two operators that names none is planned, and has no body to run: nobody would know
// whom to trust. Named, it has the helper's key.
func TestOperatorsAreNamed(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "privacy.trust=split"))
	if _, err := job.Wire(); err == nil || !strings.Contains(err.Error(), "privacy.operators") {
		t.Errorf("without operators: %v", err)
	}
	leader, helper := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	job = runtest.Job(t, runtest.Small(t, "privacy.trust=split", "privacy.operators={leader: \""+leader+"\", helper: \""+helper+"\"}"))
	if body, err := job.Wire(); err != nil || hex.EncodeToString(body.HelperKey) != helper {
		t.Errorf("%v: helper %x", err, body.GetHelperKey())
	}
	if said := job.Assuming(); strings.Contains(said, "one operator runs both") {
		t.Errorf("two operators are called one:%s", said)
	}
	one := runtest.Job(t, runtest.Small(t, "privacy.trust=split",
		"privacy.operators={leader: \""+leader+"\", helper: \""+helper+"\", one: true}"))
	if said := one.Assuming(); !strings.Contains(said, "one operator runs both") {
		t.Errorf("one operator is not told:%s", said)
	}
	pan := runtest.Job(t, runtest.Small(t, "privacy.trust=pan"))
	if body, err := pan.Wire(); err != nil || len(body.HelperKey) != 0 {
		t.Errorf("pan: %v", err)
	}
}

// TestSplitIsAudited: a task of two operators is audited against the learner, who has both floors against it, and
// against one operator, who has one; each adversary has a claim of its own.
func TestSplitIsAudited(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "privacy.trust=split", "schedule.plan=proved", "schedule.algorithm=psgd",
		"model.radius=5"))
	all, err := audits.Of(job, 0)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[audit.View]float64{}
	for _, a := range all {
		if claims[a.Config.View], err = a.Config.Claim(0); err != nil {
			t.Fatal(err)
		}
	}
	if len(claims) != 2 || !(claims[audit.Operator] > claims[audit.Learner]) || claims[audit.Learner] <= 0 {
		t.Errorf("delta(0) by view %v: want one for the learner, and a larger one for an operator", claims)
	}
}
