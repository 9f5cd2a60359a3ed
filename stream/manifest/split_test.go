package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// splitTask is a task of two operators, with one phase of new users and one of the same users.
func splitTask() *wire.Task {
	task := goodTask()
	task.Suite = wire.Suite_SUITE_MLKEM768_X25519
	task.HelperKey = bytes.Repeat([]byte{3}, 32)
	task.Plan.Trust, task.Plan.Prio3 = wire.Trust_TRUST_SPLIT, "draft-14"
	floored := manifest.Mechanism(randomizer.Params{Dim: 3, ClipNorm: 1, Levels: 15, FloorTrials: 4000,
		Coin: randomizer.Fair}, 4)
	task.Plan.Phases[0].Mechanism = floored
	task.Plan.Phases = append(task.Plan.Phases, &wire.Phase{Users: 200, Rounds: 5, Cohort: 200, Minimum: 150,
		RoundsPerUser: 5, Mechanism: floored})
	return task
}

// TestTasksOfTwoOperators: such a task names both by different keys, its Prio3 and the suite that hides a report from
// the broker, and its lattice is what its proofs let through; users may answer several rounds. No other task has any of
// this.
func TestTasksOfTwoOperators(t *testing.T) {
	if err := manifest.CheckTask(splitTask()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says   string
		change func(*wire.Task)
	}{
		{`prio3 "draft-18": this program shares reports by "draft-14"`, func(m *wire.Task) { m.Plan.Prio3 = "draft-18" }},
		{`prio3 ""`, func(m *wire.Task) { m.Plan.Prio3 = "" }},
		{"helper_key of 0 bytes", func(m *wire.Task) { m.HelperKey = nil }},
		{"want two operators", func(m *wire.Task) { m.HelperKey = m.StageKey }},
		{"suite SUITE_NONE", func(m *wire.Task) { m.Suite = wire.Suite_SUITE_NONE }},
		{"suite SUITE_X25519", func(m *wire.Task) { m.Suite = wire.Suite_SUITE_X25519 }},
		{"one less than a power of two", func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Levels = 16 }},
		{"p 0.25", func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Coin = 1 << 22 }},
		{"trials per user 5", func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Trials = 5 }},
		{"floor trials 0", func(m *wire.Task) { m.Plan.Phases[0].Mechanism.FloorTrials = 0 }},
		{"two operators share at most", func(m *wire.Task) {
			for _, f := range m.Plan.Phases {
				f.Mechanism.Dim, f.Mechanism.Levels = 1<<20, 1<<17-1
			}
		}},
		{`prio3 "draft-14": want none`, func(m *wire.Task) { m.Plan.Trust = wire.Trust_TRUST_PAN; m.Plan.Phases = m.Plan.Phases[:1] }},
		{"helper_key of 32 bytes", func(m *wire.Task) {
			m.Plan.Trust, m.Plan.Prio3 = wire.Trust_TRUST_PAN, ""
			m.Plan.Phases = m.Plan.Phases[:1]
		}},
	} {
		task := splitTask()
		c.change(task)
		if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want an error with %q", err, c.says)
		}
	}
}

// TestAttemptsOfTwoOperatorsAreNamedWhole: Claim, Batch and Close say the hashes of Open and Join where there are two,
// and only there; a void batch of no attempt says none.
func TestAttemptsOfTwoOperatorsAreNamedWhole(t *testing.T) {
	open, join := stream.Hash{1}, stream.Hash{2}
	split, plain := splitTask().Plan, goodTask().Plan
	full := &wire.Claim{Attempt: 1, OpenHash: open[:], JoinHash: join[:]}
	for _, c := range []struct {
		plan *wire.Plan
		m    *wire.Claim
		ok   bool
	}{
		{split, full, true}, {plain, full, false}, {plain, &wire.Claim{Attempt: 1}, true},
		{split, &wire.Claim{Attempt: 1}, false}, {split, &wire.Claim{Attempt: 1, OpenHash: open[:]}, false},
		{split, &wire.Claim{Attempt: 1, JoinHash: join[:]}, false}, {plain, &wire.Claim{Attempt: 1, JoinHash: join[:]}, false},
	} {
		if err := manifest.CheckAttempt(c.plan, c.m); (err == nil) != c.ok {
			t.Errorf("%v under trust %v: %v", c.m, c.plan.Trust, err)
		}
	}
	if err := manifest.CheckAttempt(split, &wire.Batch{Void: true}); err != nil {
		t.Error(err)
	}
}

// TestSharedPart compares what a user sends with the lengths of circl's Prio3SumVec, of two aggregators and the chunks of
// package shuffle/split.
func TestSharedPart(t *testing.T) {
	for _, c := range []struct{ dim, bits, leader int }{
		{1, 1, 128}, {1, 2, 176}, {2, 3, 368}, {10, 5, 1328}, {100, 5, 9616}, {785, 5, 67904}, {10000, 5, 816720},
		{3, 30, 2128}, {77, 7, 10304}, {1000, 1, 18096},
	} {
		got := manifest.SharedPart(c.dim, 1<<c.bits-1)
		if want := (manifest.Part{Leader: c.leader, Helper: 64, Public: 64}); got != want || got.Bytes() != c.leader+128 {
			t.Errorf("%d coordinates of %d bits: %+v, want %+v", c.dim, c.bits, got, want)
		}
	}
}

// TestSizesOfSharedReports: a task of two operators has the sizes that its messages have when they are encoded.
func TestSizesOfSharedReports(t *testing.T) {
	task := splitTask()
	sizes, err := manifest.SizesOf(task, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := func(users int) int {
		part := manifest.SharedPart(3, 15)
		r := &wire.Report{Version: 1, TaskHash: make([]byte, 32), Encapsulated: make([]byte, 1120),
			Ciphertext:         make([]byte, users*part.Leader+16),
			HelperEncapsulated: make([]byte, 1120), HelperCiphertext: make([]byte, users*part.Helper+16)}
		for range users {
			r.Ids, r.PublicShares = append(r.Ids, make([]byte, 16)), append(r.PublicShares, make([]byte, part.Public))
		}
		data, err := stream.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	if sizes.Report != report(4) || sizes.Single != report(1) {
		t.Errorf("%+v, want reports of %d and %d bytes", sizes, report(4), report(1))
	}
	all, err := manifest.ReportSizes(task)
	if err != nil || len(all) != 4 || all[0] != report(1) || all[3] != report(4) {
		t.Errorf("lengths %v, %v", all, err)
	}
	task.HelperKey = nil // as a task has it before the keys are known
	if before, err := manifest.SizesOf(task, nil); err != nil || before != sizes {
		t.Errorf("%+v without a helper's key, want %+v (%v)", before, sizes, err)
	}
}
