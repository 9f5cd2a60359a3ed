package manifest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

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
			Algorithm: "psgd", Users: 1003, Rounds: 10, Cohort: 100, Minimum: 80, Trust: wire.Trust_TRUST_SHUFFLE,
			HonestFraction: "9/10", RoundsPerUser: 1, Epsilon: 1, Delta: 1e-6, DeadlineMs: 60_000, EpsilonBudget: 1, Loss: "logistic",
			Mechanism: manifest.Mechanism(randomizer.Params{
				Dim: 3, ClipNorm: 1, Levels: 19, Trials: 26, Coin: randomizer.Fair,
			}, 0, 4),
		},
	}
}

func goodRound(t testing.TB, task *wire.Task, r uint64) (stream.Hash, *wire.Round) {
	t.Helper()
	body, err := stream.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	hash := stream.HashOf(body)
	p := task.Plan
	return hash, &wire.Round{
		Version: stream.Version, TaskHash: hash[:], Round: r, Point: make([]float64, p.Mechanism.Dim),
		Mechanism: proto.CloneOf(p.Mechanism), Cohort: manifest.Cohort(p, r), Minimum: p.Minimum,
		DeadlineMs: p.DeadlineMs, Trust: p.Trust, Loss: p.Loss, Step: r,
	}
}

func TestParamsAndMechanismAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := randomizer.Params{
			Dim:      rapid.IntRange(1, 1000).Draw(t, "dim"),
			ClipNorm: rapid.Float64Range(1e-6, 1e6).Draw(t, "clip"),
			Levels:   rapid.Uint32Range(1, 1<<20).Draw(t, "levels"),
			Trials:   rapid.Uint32Range(0, 1<<20).Draw(t, "trials"),
			Coin:     randomizer.Coin(rapid.Uint32Range(1, 1<<24-1).Draw(t, "coin")),
		}
		got, err := manifest.Params(manifest.Mechanism(want, 7, 2))
		if err != nil || got != want {
			t.Fatalf("%+v, %v: want %+v", got, err, want)
		}
	})
}

func TestParamsRefusesOtherGrids(t *testing.T) {
	for name, spoil := range map[string]func(*wire.Mechanism){
		"coin_bits": func(m *wire.Mechanism) { m.CoinBits = 23 },
		"Coin":      func(m *wire.Mechanism) { m.Coin = 1 << 24 },
		"coin":      func(m *wire.Mechanism) { m.Coin = 0 },
		"dim":       func(m *wire.Mechanism) { m.Dim = math.MaxUint32 },
		"Dim":       func(m *wire.Mechanism) { m.Dim = 0 },
		"Levels":    func(m *wire.Mechanism) { m.Levels = 0 },
		"ClipNorm":  func(m *wire.Mechanism) { m.ClipNorm = math.NaN() },
	} {
		m := goodTask().Plan.Mechanism
		spoil(m)
		if _, err := manifest.Params(m); err == nil || !strings.Contains(err.Error(), strings.ToLower(name)) && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := manifest.Params(nil); err == nil {
		t.Error("a missing mechanism passed")
	}
}

func TestTrustRoundTrip(t *testing.T) {
	for _, want := range []wire.Trust{wire.Trust_TRUST_SHUFFLE, wire.Trust_TRUST_PAN, wire.Trust_TRUST_SHUFFLE_PAN} {
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
	for r := uint64(0); r <= plan.Rounds+1; r++ {
		sum += manifest.Cohort(plan, r)
	}
	if sum != plan.Users || manifest.Cohort(plan, 10) != 103 || manifest.Cohort(plan, 11) != 0 || manifest.Cohort(plan, 0) != 0 {
		t.Errorf("sum %d, last %d", sum, manifest.Cohort(plan, 10))
	}
}

func TestCheckTask(t *testing.T) {
	if err := manifest.CheckTask(goodTask()); err != nil {
		t.Fatal(err)
	}
	if manifest.CheckTask(nil) == nil || manifest.CheckTask(&wire.Task{}) == nil {
		t.Error("a task without a plan passed")
	}
	for want, spoil := range map[string]func(*wire.Plan){
		"users 999":       func(p *wire.Plan) { p.Users = 999 },
		"rounds":          func(p *wire.Plan) { p.Rounds = math.MaxUint64 },
		"rounds_per_user": func(p *wire.Plan) { p.RoundsPerUser = 0 },
		"deadline_ms":     func(p *wire.Plan) { p.DeadlineMs = math.MaxUint64 },
		"trust":           func(p *wire.Plan) { p.Trust = 9 },
		"honest_fraction": func(p *wire.Plan) { p.HonestFraction = "1.1" },
		"MaxBundle":       func(p *wire.Plan) { p.Mechanism.MaxBundle = 101 },
		"2^63":            func(p *wire.Plan) { p.Users, p.Cohort, p.Rounds = 1<<62, 1<<31, 2; p.Mechanism.Levels = 1 << 30 },
	} {
		task := goodTask()
		spoil(task.Plan)
		if err := manifest.CheckTask(task); err == nil {
			t.Errorf("%s passed", want)
		} else if want != "2^63" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestFollows(t *testing.T) {
	task := goodTask()
	for _, r := range []uint64{1, 9, 10} {
		hash, round := goodRound(t, task, r)
		if err := manifest.Follows(task, hash, round); err != nil {
			t.Errorf("round %d: %v", r, err)
		}
	}
	for want, spoil := range map[string]func(*wire.Round){
		"task_hash":   func(r *wire.Round) { r.TaskHash = make([]byte, 32) },
		"step 11":     func(r *wire.Round) { r.Round, r.Step = 11, 11 },
		"step 3":      func(r *wire.Round) { r.Step = 3 }, // ahead of its round
		"loss":        func(r *wire.Round) { r.Loss = "squared" },
		"cohort":      func(r *wire.Round) { r.Cohort-- },
		"minimum":     func(r *wire.Round) { r.Minimum = 1 },
		"deadline_ms": func(r *wire.Round) { r.DeadlineMs++ },
		"trust":       func(r *wire.Round) { r.Trust = wire.Trust_TRUST_PAN },
		"mechanism":   func(r *wire.Round) { r.Mechanism.Trials-- },
	} {
		hash, round := goodRound(t, task, 2)
		spoil(round)
		if err := manifest.Follows(task, hash, round); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	hash, late := goodRound(t, task, 10)
	late.Round += 2 // two void rounds came before
	if err := manifest.Follows(task, hash, late); err != nil {
		t.Errorf("a last step after void rounds: %v", err)
	}
	if manifest.Follows(nil, stream.Hash{}, nil) == nil {
		t.Error("nothing follows nothing")
	}
}

func TestMixerConfigAndRelease(t *testing.T) {
	task := goodTask()
	_, round := goodRound(t, task, 10)
	cfg, err := manifest.MixerConfig(round)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Cohort != 103 || cfg.Minimum != 80 || cfg.MaxBundle != 4 || cfg.FloorTrials != 0 || cfg.Entropy != nil || cfg.Params.Dim != 3 {
		t.Errorf("%+v", cfg)
	}
	if got := manifest.Deadline(round); got != time.Minute {
		t.Errorf("deadline %v", got)
	}
	honest, err := manifest.HonestFraction(task.Plan)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := manifest.Release(round, honest, task.Plan.RoundsPerUser)
	want := accounting.Release{Trust: accounting.Shuffle, Users: 103, Dim: 3, Levels: 19, Trials: 26, P: 0.5, HonestFraction: honest, Rounds: 1}
	if err != nil || rel != want {
		t.Errorf("%+v, %v: want %+v", rel, err, want)
	}
	for name, call := range map[string]func() error{
		"no round":       func() error { _, err := manifest.MixerConfig(nil); return err },
		"release of nil": func() error { _, err := manifest.Release(nil, honest, 1); return err },
		"rounds":         func() error { _, err := manifest.Release(round, honest, 0); return err },
		"honest":         func() error { _, err := manifest.Release(round, accounting.Fraction{}, 1); return err },
		"no mechanism":   func() error { _, err := manifest.MixerConfig(&wire.Round{}); return err },
	} {
		if call() == nil {
			t.Errorf("%s passed", name)
		}
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
