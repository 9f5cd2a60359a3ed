package manifest_test

import (
	"testing"

	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Users to spare wait for rounds as all others do, so that no round is asked for by more than it has places; a plan of
// before has none.
func TestSpareUsersWait(t *testing.T) {
	plan := &wire.Plan{Practical: &wire.Practical{Users: 100}, Phases: []*wire.Phase{
		{Users: 30, Rounds: 1, Cohort: 30, RoundsPerUser: 1}, {Users: 69, Rounds: 1, Cohort: 69, RoundsPerUser: 1}}}
	for i, want := range []uint64{100, 70} {
		at, ok := manifest.PhaseOf(plan, uint64(i+1))
		if got := manifest.Waiting(at, uint64(i+1)); !ok || got != want {
			t.Errorf("%d users wait for round %d, want %d", got, i+1, want)
		}
	}
	if n := manifest.Spare(plan); n != 1 {
		t.Errorf("%d to spare, want 1", n)
	}
	for name, change := range map[string]func(p *wire.Plan){
		"before":  func(p *wire.Plan) { p.Phases[1].Users = 70 },
		"proved":  func(p *wire.Plan) { p.Practical = nil },
		"silos":   func(p *wire.Plan) { p.Silos = 10 },
		"endless": func(p *wire.Plan) { p.Continuous = wire.Continuous_CONTINUOUS_ADAPTIVE },
	} {
		p := &wire.Plan{Practical: &wire.Practical{Users: 100}, Phases: []*wire.Phase{{Users: 30, Cohort: 30},
			{Users: 69, Cohort: 69}}}
		change(p)
		if n := manifest.Spare(p); n != 0 {
			t.Errorf("%s: %d to spare", name, n)
		}
	}
}
