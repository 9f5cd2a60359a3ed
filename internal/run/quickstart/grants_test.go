package quickstart

import (
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestGrantsRun: a task whose reports have tokens runs from the issuer to the snapshot: with one operator over a relay, with
// two, and where the same users answer many rounds. Everybody is counted, and nobody's token is refused.
func TestGrantsRun(t *testing.T) {
	for name, c := range map[string]struct {
		sets  []string
		relay bool
	}{
		"relay": {relay: true},
		"split": {sets: []string{"privacy.trust=split"}},
		"pan":   {sets: []string{"privacy.trust=pan"}},
		"many passes": {sets: []string{"schedule.plan=proved", "model.radius=5", "schedule.algorithm=" + schedule.PGD,
			"schedule.interactive=true", "schedule.rounds.max=4"}},
	} {
		if name != "relay" && name != "many passes" && !longtest.Run(t, "tokens, "+name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			spec := runtest.Small(t, append(c.sets, "grants=pass")...)
			job := runtest.Job(t, spec)
			dir := t.TempDir()
			r, err := Run(t.Context(), Config{Job: job, Dir: dir, Relay: c.relay, Logger: runtest.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			if r.Rounds != manifest.Planned(job.Plan) || len(r.Rejected) != 0 {
				t.Errorf("%d rounds, rejected %v", r.Rounds, r.Rejected)
			}
			kept, err := grants.Open(grants.Path(filepath.Join(dir, "devices"), "quickstart"))
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			if n := uint64(kept.Len()); n < manifest.Users(job.Plan) {
				t.Errorf("%d people have a token, of %d", n, manifest.Users(job.Plan))
			}
		})
	}
}
