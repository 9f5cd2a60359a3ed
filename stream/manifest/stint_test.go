package manifest_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// siloTask has 20 silos that answer moments and then 7 rounds of gradients, all of them about the same records; nobody
// is trusted.
func siloTask() *wire.Task {
	task := practicalTask()
	p := task.Plan
	p.Trust, p.HonestFraction, p.Silos = wire.Trust_TRUST_LOCAL, "1", 20
	p.Phases = []*wire.Phase{p.Phases[0], p.Phases[2]}
	for i, f := range p.Phases {
		f.Users, f.Cohort, f.Minimum, f.Rounds, f.RoundsPerUser, f.Again = 20, 20, 10, 1, 1, i > 0
		f.Mechanism.Levels, f.Mechanism.Trials, f.Mechanism.Units, f.Mechanism.Window = 4000, 80_000, 1600, 3400
	}
	p.Phases[1].Rounds, p.Phases[1].RoundsPerUser = 7, 7
	return task
}

func TestStintOfSilos(t *testing.T) {
	task := siloTask()
	if err := manifest.CheckTask(task); err != nil {
		t.Fatal(err)
	}
	p := task.Plan
	want := manifest.Stint{Phases: 2, First: 1, Last: 8, Rounds: 8}
	var both accounting.Guarantee
	for step := uint64(1); step <= 8; step++ {
		at, found := manifest.PhaseOf(p, step)
		if !found || at.Stint != want || !at.Interactive() || manifest.Waiting(at, step) != 20 {
			t.Fatalf("step %d: %+v, %d wait", step, at.Stint, manifest.Waiting(at, step))
		}
		releases, err := at.Releases(accounting.One)
		if err != nil || len(releases) != 2 || releases[0].Rounds != 1 || releases[1].Rounds != 7 ||
			releases[1].Units != 1600 ||
			releases[0].Dim == releases[1].Dim || releases[0].Trust != accounting.Local {
			t.Fatalf("step %d: %+v, %v", step, releases, err)
		}
		g, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{releases}, p.Delta)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{releases[1:]}, p.Delta)
		if err != nil || !(g.Epsilon > alone.Epsilon) {
			t.Errorf("step %d: epsilon %v of all rounds, %v without the first: %v", step, g.Epsilon, alone.Epsilon, err)
		}
		if both.Epsilon != 0 && g != both {
			t.Errorf("step %d costs %+v, another one %+v", step, g, both)
		}
		both = g
		config, err := at.Mixer()
		if err != nil || config.Params.NoiseTrials(10, 20) != 10*80_000 {
			t.Errorf("step %d: %v; %d trials of 10 silos, which nobody tops up", step, err, config.Params.NoiseTrials(10, 20))
		}
	}
	if manifest.Users(p) != 20 || manifest.RoundsPerUser(p) != 8 {
		t.Errorf("%d users, %d rounds each: want 20 silos, 8", manifest.Users(p), manifest.RoundsPerUser(p))
	}
	again := phasedTask().Plan
	again.Phases[2] = proto.CloneOf(again.Phases[1])
	again.Phases[2].Again = true
	if at, _ := manifest.PhaseOf(again, 12); at.Stint != (manifest.Stint{Index: 1, Phases: 2, First: 11, Last: 20,
		Rounds: 10}) || manifest.Users(again) != 1203 {
		t.Errorf("%+v, %d users", at.Stint, manifest.Users(again))
	}
}

func TestSomeOfTheSilosAnswer(t *testing.T) {
	task := siloTask()
	for _, f := range task.Plan.Phases {
		f.Cohort = 12
		if err := manifest.CheckTask(task); err != nil {
			t.Error(err)
		}
	}
	for step := uint64(1); step <= 8; step++ {
		at, _ := manifest.PhaseOf(task.Plan, step)
		if at.Cohort != 12 || manifest.Waiting(at, step) != 20 {
			t.Errorf("round %d takes %d silos of %d, want 12 of 20 as all others", step, at.Cohort, manifest.Waiting(at, step))
		}
		releases, err := at.Releases(accounting.One) // each of all 20 is charged for all rounds
		if err != nil || releases[0].Rounds+releases[1].Rounds != 8 || releases[0].Users != 12 {
			t.Errorf("round %d is charged as %+v: %v", step, releases, err)
		}
	}
	// Under shuffle some of the 12 silos of a round are dishonest, whichever of the 20 they are.
	p := task.Plan
	p.Trust, p.HonestFraction = wire.Trust_TRUST_SHUFFLE, "11/12"
	for _, f := range p.Phases {
		f.Mechanism.Window = 0
	}
	honest, err := manifest.HonestFraction(p)
	if err := errors.Join(err, manifest.CheckTask(task)); err != nil ||
		honest.Floor(manifest.Costliest(p, 1).Cohort) != 11 {
		t.Errorf("%v; want 11 honest silos of 12", err)
	}
}

// onePass returns a phase of gradients in which each block takes part in one round.
func onePass(p *wire.Plan, rounds, users uint64) *wire.Phase {
	f := proto.CloneOf(p.Phases[1])
	p.Practical = nil
	f.Rounds, f.RoundsPerUser, f.Users, f.Again = rounds, 1, users, false
	return f
}

func TestRefusesPlansOfBlocks(t *testing.T) {
	for want, spoil := range map[string]func(*wire.Plan){
		"window 0":             func(p *wire.Plan) { p.Phases[1].Mechanism.Window = 0 },
		"Window = 3401 is odd": func(p *wire.Plan) { p.Phases[1].Mechanism.Window = 3401 },
		"window 3400":          func(p *wire.Plan) { p.Trust = wire.Trust_TRUST_SHUFFLE },
		"units 1599":           func(p *wire.Plan) { p.Phases[1].Mechanism.Units = 1599 },
		"want at most the 19":  func(p *wire.Plan) { p.Silos = 19 },
		"unit 2":               func(p *wire.Plan) { p.Unit = 2 },
		"radius 1.5":           func(p *wire.Plan) { p.Radius = 1.5 },
		"the last 23":          func(p *wire.Plan) { p.Phases = []*wire.Phase{onePass(p, 2, 43)} },
		"in every phase":       func(p *wire.Plan) { p.Phases[1].Again = false },
		"all 21 silos":         func(p *wire.Plan) { p.Silos = 21 },
		"4294967297 rounds of one user": func(p *wire.Plan) { // 1 in 32 bits
			p.Phases = append(p.Phases, proto.CloneOf(p.Phases[1]), proto.CloneOf(p.Phases[1]))
			for i, rounds := range []uint64{math.MaxInt32, math.MaxInt32, 2} {
				p.Phases[i+1].Rounds, p.Phases[i+1].RoundsPerUser = rounds, uint32(rounds)
			}
		},
		"honest fraction":        func(p *wire.Plan) { p.HonestFraction = "9/10" },
		"want a phase before it": func(p *wire.Plan) { p.Phases[0].Again = true },
		"of as many users":       func(p *wire.Plan) { p.Phases[1].Users = 40 },
		"want all 20 users": func(p *wire.Plan) {
			p.Phases[1].Cohort, p.Phases[1].Rounds,
				p.Phases[1].RoundsPerUser = 10, 1, 1
		},
		"want 1, or a user would": func(p *wire.Plan) { p.Continuous = wire.Continuous_CONTINUOUS_CONSTANT },
	} {
		task := siloTask()
		spoil(task.Plan)
		if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestWaitingSilos: however many blocks a plan takes, no more reports wait than there are silos, so that a round of
// all is opened with no lot.
func TestWaitingSilos(t *testing.T) {
	task := siloTask()
	p := task.Plan
	p.Phases = []*wire.Phase{onePass(p, 8, 160)}
	if err := manifest.CheckTask(task); err != nil {
		t.Fatal(err)
	}
	at, _ := manifest.PhaseOf(p, 3)
	if at.Interactive() || manifest.Waiting(at, 3) != 20 {
		t.Errorf("%d wait for a round of 20 silos", manifest.Waiting(at, 3))
	}
	p.Silos = 0
	if manifest.Waiting(at, 3) != 120 {
		t.Errorf("%d wait of 160 after two rounds of 20", manifest.Waiting(at, 3))
	}
}
