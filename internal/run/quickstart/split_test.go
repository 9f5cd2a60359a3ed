package quickstart

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestSplitRuns: a task of two operators runs from the device's shares to the snapshot, in one pass, proved, in many
// passes and over a relay: everybody with the outcome counted is in the totals, every batch has both floors, and the
// charge covers the worst adversary, an operator who sees every round over one floor.
func TestSplitRuns(t *testing.T) {
	for name, c := range map[string]struct {
		sets  []string
		relay bool
	}{
		"practical":   {},
		"proved":      {sets: []string{"schedule.plan=proved", "schedule.algorithm=psgd", "model.radius=5"}},
		"accelerated": {sets: []string{"schedule.plan=proved", "schedule.algorithm=pagd", "model.radius=5"}},
		"many passes": {sets: []string{"model.radius=5", "schedule.algorithm=" + schedule.PGD, "schedule.interactive=true",
			"schedule.rounds.max=4"}},
		"relay": {relay: true},
	} {
		if name != "practical" && name != "relay" && !longtest.Run(t, "trust split, "+name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			job := runtest.Job(t, runtest.Small(t, append(c.sets, "privacy.trust=split")...))
			dir := t.TempDir()
			var log bytes.Buffer
			r, err := Run(t.Context(), Config{Job: job, Dir: dir, Relay: c.relay, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "one operator runs both stages of this task") {
				t.Error("no device says that one operator runs both")
			}
			if r.Rounds != manifest.Planned(job.Plan) || len(r.Rejected) != 0 || r.Accepted < manifest.Users(job.Plan) {
				t.Errorf("%d accepted of %d in %d rounds, rejected %v", r.Accepted, manifest.Users(job.Plan), r.Rounds, r.Rejected)
			}
			p := job.Forecasts[0].Privacy
			release := p.Release()
			g, err := release.Epsilon(p.Delta)
			if err != nil {
				t.Fatal(err)
			}
			if alone := len(job.Plan.Phases) == 1; !g.HasOperator || !(g.Operator > g.Learner) || g.Epsilon != g.Operator ||
				r.Epsilon < g.Epsilon || alone && r.Epsilon != g.Epsilon || r.Epsilon > job.Problem.Epsilon {
				t.Errorf("charged epsilon %v of %v; the learner's is %v, an operator's %v", r.Epsilon, job.Problem.Epsilon,
					g.Learner, g.Operator)
			}
			if says := r.Snapshot.Privacy; says.Trust != accounting.Split.String() || says.NoiseKnown {
				t.Errorf("the snapshot says %+v", says)
			}
		})
	}
}
