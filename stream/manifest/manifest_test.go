package manifest_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

func goodTask() *wire.Task {
	return &wire.Task{
		Life:    make([]byte, stream.LifeSize),
		Version: stream.Version, Name: "churn", LearnerKey: make([]byte, 32), StageKey: make([]byte, 32),
		Suite: wire.Suite_SUITE_X25519,
		Plan: &wire.Plan{
			Algorithm: "psgd", Trust: wire.Trust_TRUST_SHUFFLE,
			HonestFraction: "9/10", Epsilon: 1, Delta: 1e-6, DeadlineMs: 60_000, EpsilonBudget: 1,
			Phases: []*wire.Phase{{Users: 1003, Rounds: 10, Cohort: 100, Minimum: 80, RoundsPerUser: 1,
				Mechanism: mechanism(26)}},
		},
	}
}

func mechanism(trials uint32) *wire.Mechanism {
	return manifest.Mechanism(randomizer.Params{Dim: 3, ClipNorm: 1, Levels: 19, Trials: trials, Coin: randomizer.Fair}, 4)
}

// phasedTask has three phases after each other: 10 rounds of new users, then 5 of the same 200 users, then 2 of new
// ones.
func phasedTask() *wire.Task {
	task := goodTask()
	p := task.Plan
	p.Phases[0].Smoothing = 0.5
	p.Phases = append(p.Phases,
		&wire.Phase{Users: 200, Rounds: 5, Cohort: 200, Minimum: 150, RoundsPerUser: 5, Mechanism: mechanism(60),
			Smoothing: 2},
		&wire.Phase{Users: 77, Rounds: 2, Cohort: 30, Minimum: 20, RoundsPerUser: 1, Mechanism: mechanism(90)})
	return task
}

// practicalTask has a first round of 50 users, of moments of two features, one of their matrix, and then what goodTask
// has.
func practicalTask() *wire.Task {
	task := goodTask()
	how := &practical.Problem{Loss: convex.Declaration{Name: "squared"}, Features: 2, Bound: 1, Intercept: 1, LabelLow: -1,
		LabelHigh: 1, Users: 2000}
	task.Plan.Practical = manifest.WirePractical(how)
	for s, dim := range []int{how.MomentsDim(), how.MatrixDim()} {
		f := &wire.Phase{Users: 50, Rounds: 1, Cohort: 50, Minimum: 40, RoundsPerUser: 1, Mechanism: mechanism(60),
			Statistic: wire.Statistic(s + 1)}
		f.Mechanism.Dim, f.Mechanism.ClipNorm = uint32(dim), 0.5
		task.Plan.Phases = slices.Insert(task.Plan.Phases, s, f)
	}
	return task
}

func goodRound(t testing.TB, task *wire.Task, r uint64) (stream.Hash, *wire.Round) {
	t.Helper()
	body, err := stream.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	hash := stream.HashOf(body)
	at, _ := manifest.PhaseOf(task.Plan, r)
	round := manifest.RoundOf(hash, r, r, make([]float64, at.Point()), nil)
	if at.Framed() {
		round.Frame = &wire.Frame{Clip: 1}
	}
	return hash, round
}

func TestParamsAndMechanismAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := randomizer.Params{
			Dim:         rapid.IntRange(1, 1000).Draw(t, "dim"),
			ClipNorm:    rapid.Float64Range(1e-6, 1e6).Draw(t, "clip"),
			Levels:      rapid.Uint32Range(1, 1<<20).Draw(t, "levels"),
			Trials:      rapid.Uint32Range(0, 1<<20).Draw(t, "trials"),
			FloorTrials: rapid.Uint64Range(0, 1<<40).Draw(t, "floor trials"),
			Coin:        randomizer.Coin(rapid.Uint32Range(1, 1<<24-1).Draw(t, "coin")),
		}
		got, err := manifest.Params(manifest.Mechanism(want, 2))
		if err != nil || got != want {
			t.Fatalf("%+v, %v: want %+v", got, err, want)
		}
	})
}

func TestParamsRefusesOtherGrids(t *testing.T) {
	for name, spoil := range map[string]func(*wire.Mechanism){
		"coin_bits":  func(m *wire.Mechanism) { m.CoinBits = 23 },
		"Coin":       func(m *wire.Mechanism) { m.Coin = 1 << 24 },
		"coin":       func(m *wire.Mechanism) { m.Coin = 0 },
		"dim":        func(m *wire.Mechanism) { m.Dim = math.MaxUint32 },
		"Dim":        func(m *wire.Mechanism) { m.Dim = 0 },
		"Levels":     func(m *wire.Mechanism) { m.Levels = 0 },
		"ClipNorm":   func(m *wire.Mechanism) { m.ClipNorm = math.NaN() },
		"scores":     func(m *wire.Mechanism) { m.Scores = m.Dim },
		"max_bundle": func(m *wire.Mechanism) { m.MaxBundle = 0 },
		"Max_bundle": func(m *wire.Mechanism) { m.MaxBundle = stream.MaxBundle + 1 },
	} {
		m := mechanism(26)
		spoil(m)
		if _, err := manifest.Params(m); err == nil || !strings.Contains(err.Error(), strings.ToLower(name)) &&
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := manifest.Params(nil); err == nil {
		t.Error("a missing mechanism passed")
	}
}

// TestTrustSaysWhereNoiseIs: floors and report noise are there exactly where the trust model puts them.
func TestTrustSaysWhereNoiseIs(t *testing.T) {
	for _, test := range []struct {
		trust          wire.Trust
		trials, floors bool
	}{{wire.Trust_TRUST_SHUFFLE, true, false}, {wire.Trust_TRUST_PAN, false, true}, {wire.Trust_TRUST_SHUFFLE_PAN, true,
		true}} {
		for _, trials := range []bool{false, true} {
			for _, floors := range []bool{false, true} {
				task := goodTask()
				m := task.Plan.Phases[0].Mechanism
				task.Plan.Trust, m.Trials, m.FloorTrials = test.trust, 0, 0
				if trials {
					m.Trials = 7
				}
				if floors {
					m.FloorTrials = 7
				}
				want := trials == test.trials && floors == test.floors
				if err := manifest.CheckTask(task); (err == nil) != want {
					t.Errorf("%v with trials %t, floors %t: %v", test.trust, trials, floors, err)
				}
			}
		}
	}
}

func TestTrustRoundTrip(t *testing.T) {
	for _, want := range []wire.Trust{wire.Trust_TRUST_SHUFFLE, wire.Trust_TRUST_PAN, wire.Trust_TRUST_SHUFFLE_PAN,
		wire.Trust_TRUST_LOCAL} {
		a, err := manifest.Trust(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := manifest.WireTrust(a); err != nil || got != want {
			t.Errorf("%v -> %v -> %v, %v", want, a, got, err)
		}
	}
	if _, err := manifest.Trust(0); err == nil {
		t.Error("the unspecified trust passed")
	}
	if _, err := manifest.WireTrust(accounting.Trust(99)); err == nil {
		t.Error("trust 99 passed")
	}
}

func TestCohortTakesTheRestLast(t *testing.T) {
	plan := goodTask().Plan
	var sum uint64
	for r := uint64(0); r <= 11; r++ {
		sum += manifest.Cohort(plan, r)
	}
	if sum != 1003 || manifest.Users(plan) != sum || manifest.Cohort(plan, 10) != 103 || manifest.Cohort(plan, 11) != 0 ||
		manifest.Cohort(plan, 0) != 0 {
		t.Errorf("sum %d, last %d", sum, manifest.Cohort(plan, 10))
	}
}

// TestStepsOfPhases: each step has its phase and that phase's cohort; an interactive phase asks all its users each
// time.
func TestStepsOfPhases(t *testing.T) {
	task := phasedTask()
	plan := task.Plan
	if err := manifest.CheckTask(task); err != nil {
		t.Fatal(err)
	}
	if manifest.Steps(plan) != 17 || manifest.Planned(plan) != 17 {
		t.Errorf("%d steps, %d planned", manifest.Steps(plan), manifest.Planned(plan))
	}
	for _, c := range []struct {
		step, cohort uint64
		index        int
		first, last  uint64
		interactive  bool
	}{
		{1, 100, 0, 1, 10, false}, {9, 100, 0, 1, 10, false}, {10, 103, 0, 1, 10, false},
		{11, 200, 1, 11, 15, true}, {15, 200, 1, 11, 15, true},
		{16, 30, 2, 16, 17, false}, {17, 47, 2, 16, 17, false},
	} {
		at, found := manifest.PhaseOf(plan, c.step)
		if !found || at.Index != c.index || at.First != c.first || at.Last() != c.last || at.Interactive() != c.interactive ||
			at.Phase != plan.Phases[c.index] {
			t.Errorf("step %d: %+v, %v", c.step, at, found)
		}
		if got := manifest.Cohort(plan, c.step); got != c.cohort {
			t.Errorf("step %d: a cohort of %d, want %d", c.step, got, c.cohort)
		}
	}
	for _, step := range []uint64{0, 18, math.MaxUint64} {
		if at, found := manifest.PhaseOf(plan, step); found || manifest.Cohort(plan, step) != 0 {
			t.Errorf("step %d: %+v", step, at)
		}
	}
}

// TestEndlessPlan: the last phase goes on for ever, its cohort always the same.
func TestEndlessPlan(t *testing.T) {
	task := phasedTask()
	task.Plan.Continuous = wire.Continuous_CONTINUOUS_CONSTANT
	if err := manifest.CheckTask(task); err != nil {
		t.Fatal(err)
	}
	if manifest.Steps(task.Plan) != math.MaxUint64 || manifest.Planned(task.Plan) != 17 {
		t.Errorf("%d steps, %d planned", manifest.Steps(task.Plan), manifest.Planned(task.Plan))
	}
	for step, want := range map[uint64]uint64{10: 103, 15: 200, 16: 30, 17: 30, 18: 30, 1 << 60: 30, math.MaxUint64: 30,
		0: 0} {
		if got := manifest.Cohort(task.Plan, step); got != want {
			t.Errorf("step %d: a cohort of %d, want %d", step, got, want)
		}
	}
	hash, late := goodRound(t, task, 1<<40)
	if _, err := manifest.Follows(task, hash, late); err != nil {
		t.Error(err)
	}
	task.Plan.Phases = task.Plan.Phases[:2]
	if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), "endless") {
		t.Errorf("an interactive phase without end: %v", err)
	}
}

func TestCheckTask(t *testing.T) {
	if err := manifest.CheckTask(goodTask()); err != nil {
		t.Fatal(err)
	}
	if manifest.CheckTask(nil) == nil || manifest.CheckTask(&wire.Task{}) == nil {
		t.Error("a task without a plan passed")
	}
	for _, c := range []struct {
		want  string
		spoil func(*wire.Plan)
	}{
		{"users 999", func(p *wire.Plan) { p.Phases[0].Users = 999 }},
		{"rounds", func(p *wire.Plan) { p.Phases[0].Rounds = math.MaxUint64 }},
		{"rounds 0", func(p *wire.Plan) { p.Phases[1].Rounds = 0 }},
		{"rounds_per_user 0", func(p *wire.Plan) { p.Phases[0].RoundsPerUser = 0 }},
		{"rounds_per_user 4: want 1, or all 5", func(p *wire.Plan) { p.Phases[1].RoundsPerUser = 4 }},
		{"rounds_per_user 6: want 1, or all 5", func(p *wire.Plan) { p.Phases[1].RoundsPerUser = 6 }},
		{"cohort 199: want all 200", func(p *wire.Plan) { p.Phases[1].Cohort = 199 }},
		{"want 1 under floors", func(p *wire.Plan) {
			p.Trust = wire.Trust_TRUST_SHUFFLE_PAN
			for _, f := range p.Phases {
				f.Mechanism.FloorTrials = 7
			}
		}},
		{"want 0 under pan", func(p *wire.Plan) { p.Trust = wire.Trust_TRUST_PAN }},
		{"floor trials 0", func(p *wire.Plan) { p.Trust = wire.Trust_TRUST_SHUFFLE_PAN }},
		{"deadline_ms", func(p *wire.Plan) { p.DeadlineMs = math.MaxUint64 }},
		{"retention_ms", func(p *wire.Plan) { p.RetentionMs = 3_599_999 }},
		{"retention_ms", func(p *wire.Plan) { p.RetentionMs = math.MaxUint64 }},
		{"trust", func(p *wire.Plan) { p.Trust = 9 }},
		{"honest_fraction", func(p *wire.Plan) { p.HonestFraction = "1.1" }},
		{"phase 3: a round of 30 users", func(p *wire.Plan) { p.Phases[2].Mechanism.MaxBundle = 31 }},
		{"dim 4", func(p *wire.Plan) { p.Phases[1].Mechanism.Dim = 4 }},
		{"clip_norm 2", func(p *wire.Plan) { p.Phases[2].Mechanism.ClipNorm = 2 }},
		{"no mechanism", func(p *wire.Plan) { p.Phases[2].Mechanism = nil }},
		{"phase 3: no mechanism", func(p *wire.Plan) { p.Phases[2] = nil }},
		{"0 phases", func(p *wire.Plan) { p.Phases = nil }},
		{"65 phases", func(p *wire.Plan) { p.Phases = slices.Repeat(p.Phases[:1], 65) }},
		{"more users or rounds than can be counted", func(p *wire.Plan) {
			for _, f := range []*wire.Phase{p.Phases[0], p.Phases[2]} {
				f.Users, f.Rounds, f.Cohort = 1<<63, 1<<33, 1<<30
			}
		}},
		{"window 0: want one under trust local", func(p *wire.Plan) {
			p.Trust, p.HonestFraction = wire.Trust_TRUST_LOCAL,
				"1"
		}},
		{"honest fraction 0.9", func(p *wire.Plan) { p.Trust, p.HonestFraction = wire.Trust_TRUST_LOCAL, "0.9" }},
		{"window 8: want one under trust local, and 0 elsewhere", func(p *wire.Plan) { p.Phases[0].Mechanism.Window = 8 }},
		{"phase 2: units 3: want those of all phases, 0", func(p *wire.Plan) { p.Phases[1].Mechanism.Units = 3 }},
		{"Units", func(p *wire.Plan) { p.Phases[2].Mechanism.Units = math.MaxUint64 }},
		{"unit 7: unknown", func(p *wire.Plan) { p.Unit = 7 }},
		{"phase 1: again", func(p *wire.Plan) { p.Phases[0].Again = true }},
		{"phase 3: again: want a phase before it, of as many users", func(p *wire.Plan) { p.Phases[2].Again = true }},
		{"phase 1: cohort 100: want all 1003 users, who answer each of the 6 rounds",
			func(p *wire.Plan) { p.Phases[1].Again = true }},
		{"phase 1: rounds_per_user 1: want all 10", func(p *wire.Plan) {
			p.Silos, p.Phases[0].Users, p.Phases[0].Cohort = 10_000, 10_000, 1000
			p.Phases[1].Users, p.Phases[1].Cohort, p.Phases[1].Again = 10_000, 10_000, true
		}},
		{"phase 1: a round of", func(p *wire.Plan) {
			p.Phases[0].Users, p.Phases[0].Cohort, p.Phases[0].Rounds = 1<<62, 1<<31, 2
			p.Phases[0].Mechanism.Levels = 1 << 30
		}},
	} {
		task := phasedTask()
		c.spoil(task.Plan)
		if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

func TestFollows(t *testing.T) {
	task := phasedTask()
	for _, r := range []uint64{1, 9, 10, 11, 15, 16, 17} {
		hash, round := goodRound(t, task, r)
		if _, err := manifest.Follows(task, hash, round); err != nil {
			t.Errorf("round %d: %v", r, err)
		}
	}
	for want, spoil := range map[string]func(*wire.Round){
		"task_hash": func(r *wire.Round) { r.TaskHash = make([]byte, 32) },
		"step 18":   func(r *wire.Round) { r.Round, r.Step = 18, 18 },
		"step 13":   func(r *wire.Round) { r.Step = 13 }, // ahead of its round
		"step 0":    func(r *wire.Round) { r.Step = 0 },
		"point 4":   func(r *wire.Round) { r.Point = make([]float64, 4) },
		"frame":     func(r *wire.Round) { r.Frame = &wire.Frame{Clip: 1} },
	} {
		hash, round := goodRound(t, task, 12)
		spoil(round)
		if _, err := manifest.Follows(task, hash, round); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	hash, late := goodRound(t, task, 17)
	late.Round += 2 // two void rounds came before
	if _, err := manifest.Follows(task, hash, late); err != nil {
		t.Errorf("a last step after void rounds: %v", err)
	}
	if _, err := manifest.Follows(nil, stream.Hash{}, nil); err == nil {
		t.Error("nothing follows nothing")
	}
}

// Moments come first and once, their matrix may follow, and gradients after them; all but the first announce a frame.
func TestMomentsComeFirst(t *testing.T) {
	task := practicalTask()
	if err := errors.Join(manifest.CheckTask(task), stream.Check(task)); err != nil {
		t.Fatal(err)
	}
	for r := range uint64(12) {
		hash, round := goodRound(t, task, r+1)
		at, _ := manifest.PhaseOf(task.Plan, r+1)
		if (at.Point() == 0) != (r < 2) || at.Framed() != (r > 0) {
			t.Errorf("round %d: a point of %d values, framed %v", r+1, at.Point(), at.Framed())
		}
		if _, err := manifest.Follows(task, hash, round); err != nil {
			t.Errorf("round %d: %v", r+1, err)
		}
		other := proto.CloneOf(round)
		if other.Frame == nil {
			other.Frame = new(wire.Frame)
		} else {
			other.Frame = nil
		}
		if _, err := manifest.Follows(task, hash, other); err == nil || !strings.Contains(err.Error(), "frame") {
			t.Errorf("round %d with frame %v: %v", r+1, other.Frame, err)
		}
		round.Point = make([]float64, 3-at.Point())
		if _, err := manifest.Follows(task, hash, round); err == nil || !strings.Contains(err.Error(), "point") {
			t.Errorf("round %d with a point of %d values: %v", r+1, len(round.Point), err)
		}
	}
	for name, spoil := range map[string]func(p *wire.Plan){
		"alone":               func(p *wire.Plan) { p.Phases = p.Phases[:1] },
		"second":              func(p *wire.Plan) { p.Phases[0], p.Phases[1] = p.Phases[1], p.Phases[0] },
		"twice":               func(p *wire.Plan) { p.Phases = append(p.Phases[:1:1], p.Phases...) },
		"two rounds":          func(p *wire.Plan) { p.Phases[0].Rounds, p.Phases[0].Cohort, p.Phases[0].Minimum = 2, 25, 20 },
		"interactive":         func(p *wire.Plan) { p.Phases[0].RoundsPerUser = 2 },
		"proved":              func(p *wire.Plan) { p.Practical = nil },
		"missing":             func(p *wire.Plan) { p.Phases = p.Phases[2:] },
		"of more features":    func(p *wire.Plan) { p.Phases[0].Mechanism.Dim++ },
		"of a larger matrix":  func(p *wire.Plan) { p.Phases[1].Mechanism.Dim++ },
		"and other gradients": func(p *wire.Plan) { p.Phases[2].Mechanism.Dim++ },
		"with scores":         func(p *wire.Plan) { p.Phases[0].Mechanism.Dim++; p.Phases[0].Mechanism.Scores++ },
		"of too many":         func(p *wire.Plan) { p.Practical.Features = stream.MaxDim },
		"of no loss":          func(p *wire.Plan) { p.Practical.Loss = nil },
		"without a unit":      func(p *wire.Plan) { p.Practical.Unit = math.NaN() },
	} {
		task := practicalTask()
		spoil(task.Plan)
		if err := manifest.CheckTask(task); err == nil {
			t.Errorf("moments %s: accepted", name)
		}
	}
	sizes, err := manifest.SizesOf(practicalTask(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, last := goodRound(t, task, 5)
	last.Round, last.Step, last.DeadlineMs = math.MaxUint64, math.MaxUint64, task.Plan.StaleMs
	last.Point = []float64{1, 1, 1}
	last.Frame = &wire.Frame{Center: []float64{1, 1}, Scale: []float64{1, 1}, Intercept: 1, Bound: 1, Clip: 1,
		Smoothing: 1, Whitener: slices.Repeat([]float64{1}, 6)}
	body, err := stream.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := stream.Marshal(&wire.Signed{Version: stream.Version, Kind: wire.Kind_KIND_ROUND, Body: body,
		Key: make([]byte, stream.KeySize), Signature: make([]byte, stream.SignatureLen)})
	if err != nil || len(signed) > sizes.Round {
		t.Errorf("a round of %d bytes, at most %d: %v", len(signed), sizes.Round, err)
	}
}

func TestRoundHashIsOfTheCanonicalBody(t *testing.T) {
	_, round := goodRound(t, goodTask(), 1)
	body, err := stream.Marshal(round)
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.RoundHash(round)
	if err != nil || got != stream.HashOf(body) {
		t.Errorf("%x, %v", got, err)
	}
}
