package run_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/run/runtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestStoredPlanOfMoments: the algorithm is built from a plan whose first phase is of the moments that it makes scales of.
func TestStoredPlanOfMoments(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "features.precondition={users: 200, damping: 0.05, norm: 2}", "norm_bound=1", "schedule.rounds.max=3"))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	first := body.Plan.Phases[0]
	if first.Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || first.Mechanism.Dim != 8 || first.Mechanism.ClipNorm != 2 || first.Rounds != 1 {
		t.Errorf("first phase %v", first)
	}
	if _, err := learner.New(body.Plan); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*wire.Plan){
		"second moments": func(p *wire.Plan) { p.Phases[0].Statistic = 0 },
		"want 1 of 8":    func(p *wire.Plan) { p.Phases[0].Mechanism.Dim = 9 },
		"phases":         func(p *wire.Plan) { p.Phases = slices.Delete(p.Phases, 0, 1) },
	} {
		plan := proto.CloneOf(body.Plan)
		spoil(plan)
		if _, err := learner.New(plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
	data, err := stream.Marshal(&wire.Phase{Statistic: first.Statistic})
	if err != nil || len(data) != 2 {
		t.Errorf("a statistic takes %d bytes, %v", len(data), err)
	}
}
