package quickstart

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestPanTrustsRun, both methods under both trusts with floors, from the device's encoder to the snapshot: with a
// report that carries no noise under pan, with both floors in every batch, and charged for the worst adversary, who is
// the intruder.
func TestPanTrustsRun(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Pan, accounting.ShufflePan} {
		for _, method := range []string{"psgd", "pagd"} {
			if short := trust.HasReportNoise() == (method == "pagd"); !short &&
				!longtest.Run(t, fmt.Sprintf("%v by %s", trust, method)) {
				continue
			}
			t.Run(trust.String()+" "+method, func(t *testing.T) {
				job := runtest.Job(t, runtest.Small(t, "model.radius=5", "privacy.trust="+trust.String(), "schedule.algorithm="+
					method))
				p := job.Forecasts[0].Privacy
				if (p.Trials == 0) != (trust == accounting.Pan) || p.FloorTrials == 0 {
					t.Fatalf("b = %d, floors of %d trials", p.Trials, p.FloorTrials)
				}
				dir := t.TempDir()
				r, err := Run(t.Context(), Config{Job: job, Dir: dir, Seed: 3, Seeded: true, Logger: runtest.Discard()})
				if err != nil {
					t.Fatal(err)
				}
				if r.Events != job.Problem.Users || r.Accepted != r.Events || r.Rounds != manifest.Planned(job.Plan) {
					t.Errorf("%d events, %d accepted, %d rounds: want %d in %d", r.Events, r.Accepted, r.Rounds, job.Problem.Users,
						manifest.Planned(job.Plan))
				}
				release := p.Release()
				g, err := release.Epsilon(p.Delta)
				if err != nil {
					t.Fatal(err)
				}
				if !(g.Intruder > g.Learner) || g.Epsilon != g.Intruder || r.Epsilon != g.Epsilon ||
					r.Epsilon > job.Problem.Epsilon {
					t.Errorf("charged epsilon %v of %v; the learner's is %v, the intruder's %v", r.Epsilon, job.Problem.Epsilon,
						g.Learner, g.Intruder)
				}
				if r.Snapshot.Privacy.Trust != trust.String() || !r.Snapshot.Privacy.NoiseKnown || r.Snapshot.Privacy.Epsilon != 0 {
					t.Errorf("the snapshot says %+v", r.Snapshot.Privacy)
				}
				checkPanLedger(t, job, filepath.Join(dir, "state"))
			})
		}
	}
}

// checkPanLedger: every batch holds the noise of all its users and both floors.
func checkPanLedger(t *testing.T, job run.Job, dir string) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{Logger: runtest.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	view, err := statedir.Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	status, err := view.Status()
	if err != nil {
		t.Fatal(err)
	}
	report, err := view.LedgerReport()
	if err != nil {
		t.Fatal(err)
	}
	g, err := job.Forecasts[0].Privacy.Release().Epsilon(job.Forecasts[0].Privacy.Delta)
	if err != nil {
		t.Fatal(err)
	}
	for what, a := range map[string]statedir.Adversaries{"status": status.Adversaries, "ledger": report.Adversaries} {
		if a.Trust != job.Problem.Trust.String() || a.EpsilonLearner != g.Learner || a.EpsilonIntruder == nil ||
			*a.EpsilonIntruder != g.Intruder {
			t.Errorf("%s: %+v, want %+v", what, a, g)
		}
	}
	var charged []state.Entry
	for e, err := range state.Charged(store.Ledger(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		charged = append(charged, e)
	}
	if uint64(len(charged)) != manifest.Planned(job.Plan) {
		t.Fatalf("%d rounds are charged, want %d", len(charged), manifest.Planned(job.Plan))
	}
	p := job.Forecasts[0].Privacy
	for _, e := range charged {
		if want := e.Users*p.Trials + 2*p.FloorTrials; e.Kind != state.Spent || e.NoiseTrials != want || e.Attempt != 1 {
			t.Errorf("round %d: %v, attempt %d, %d noise trials, want %d", e.Round, e.Kind, e.Attempt, e.NoiseTrials, want)
		}
	}
}
