package quickstart

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestQuickstart runs all roles over a real broker and a real store: every user is counted once, and with a seed the
// model is a function of it.
func TestQuickstart(t *testing.T) {
	job := runtest.Job(t, runtest.Spec(t, "quickstart", "schedule.users=600", "schedule.rounds.max=2"))
	run := func(seed uint64, seeded bool) (Report, []byte) {
		var last Learned
		r, err := Run(t.Context(), Config{Job: job, Dir: t.TempDir(), Seed: seed, Seeded: seeded, Logger: runtest.Discard(),
			Model: func(m Learned) { last = m }})
		if err != nil {
			t.Fatal(err)
		}
		if last.Accuracy != r.TestAccuracy || last.ExcessRisk != r.ExcessRisk {
			t.Errorf("after the last round accuracy %v and risk %v, in the report %v and %v", last.Accuracy, last.ExcessRisk,
				r.TestAccuracy, r.ExcessRisk)
		}
		model, err := json.Marshal([]any{r.Snapshot.Weights, r.Snapshot.Intercept})
		if err != nil {
			t.Fatal(err)
		}
		if r.Events != job.Problem.Users || r.Accepted+r.Spare != r.Events || r.Rounds != manifest.Planned(job.Plan) ||
			r.ModelVersion != manifest.Planned(job.Plan) {
			t.Errorf("%d events, %d accepted, %d rounds, version %d: want %d events in %d rounds", r.Events, r.Accepted,
				r.Rounds,
				r.ModelVersion, job.Problem.Users, manifest.Planned(job.Plan))
		}
		if !(r.Epsilon > 0 && r.Epsilon <= job.Problem.Epsilon) || r.Delta != job.Problem.Delta || len(r.Rejected) != 0 ||
			r.Rejected == nil {
			t.Errorf("epsilon %v, delta %v, rejected %v", r.Epsilon, r.Delta, r.Rejected)
		}
		if !(r.EventsPerSecond > 0) || math.IsInf(r.EventsPerSecond, 0) || !(r.TestAccuracy > 0.3) {
			t.Errorf("%v events/s, accuracy %v", r.EventsPerSecond, r.TestAccuracy)
		}
		return r, model
	}
	_, first := run(5, true)
	_, second := run(5, true)
	_, third := run(5, false)
	if !bytes.Equal(first, second) {
		t.Error("the same seed gives two models")
	}
	if bytes.Equal(first, third) {
		t.Error("without a seed the devices' noise is that of the seed")
	}
}

// TestContractFields pins the names that scripts of users rely on.
func TestContractFields(t *testing.T) {
	doc, err := json.Marshal(Report{HonestFraction: accounting.One})
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(doc, &fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(slices.Sorted(maps.Keys(fields)),
		" "); got != "accepted delta epsilon events events_per_second excess_risk"+
		" honest_fraction model_version noise_known noise_std non_private_accuracy non_private_excess_risk optimum_accuracy paper_noise_std rejected rounds spare test_accuracy validation" {
		t.Errorf("the quickstart's report has the fields %q", got)
	}
}
