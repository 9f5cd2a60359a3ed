package run_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestShippedTasks: every task file of the repository is planned within its budget, and can be run.
func TestShippedTasks(t *testing.T) {
	files, err := deploy.Tasks.ReadDir("tasks")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d task files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			job := runtest.Job(t, runtest.Spec(t, strings.TrimSuffix(file.Name(), ".yaml")))
			p := job.Plan.Phases[0]
			last := manifest.LastCohort(p)
			takePart := (p.Rounds-1)*p.Cohort + last
			if p.RoundsPerUser > 1 { // the same users in every round
				takePart = last
			}
			if (p.Rounds < 2 && len(job.Plan.Phases) == 1) || p.Cohort < 2 || p.Minimum < 1 || p.Minimum > p.Cohort ||
				last < p.Cohort || takePart > job.Problem.Users ||
				takePart != p.Users || (p.RoundsPerUser != 1 && uint64(p.RoundsPerUser) != p.Rounds) {
				t.Errorf("%d rounds of %d, at least %d, the last %d, of %d users", p.Rounds, p.Cohort, p.Minimum, last,
					job.Problem.Users)
			}
			if e := job.Forecasts[0].Privacy.ProvedEpsilon; e == nil || !(*e > 0) || *e > job.Problem.Epsilon {
				t.Errorf("epsilon %v, want one in (0, %v]", e, job.Problem.Epsilon)
			}
			if !job.Plan.Places {
				t.Error("the plan has no places")
			}
			body, err := job.Wire()
			if err != nil {
				t.Fatal(err)
			}
			body.Name = job.Spec.Name
			if err := manifest.CheckTask(body); err != nil {
				t.Error(err)
			}
			sizes, err := manifest.SizesOf(body, stage.ReasonNames())
			if err != nil {
				t.Fatal(err)
			}
			if err := sizes.Fit(stream.Limits{MaxPayload: natsjs.DefaultMaxPayload - 4<<10}); err != nil {
				t.Errorf("a server as it comes: %v", err)
			}
			t.Logf("m = %d, T = %d, g = %d, b = %d, bundle %d, sizes %+v", p.Cohort, p.Rounds, job.Forecasts[0].Privacy.Levels,
				job.Forecasts[0].Privacy.Trials,
				body.Plan.Phases[0].Mechanism.MaxBundle, sizes)
		})
	}
}

// TestA9A pins the plan that the documentation shows.
func TestA9A(t *testing.T) {
	plan := runtest.Job(t, runtest.Spec(t, "a9a")).Plan
	if first := manifest.Gradients(plan); len(plan.Phases) != 9 || plan.Phases[0].Cohort != 3256 || first.Cohort != 1797 {
		t.Errorf("%d rounds, of %d and then %d, want 9, of 3256 and then 1797", len(plan.Phases), plan.Phases[0].Cohort,
			first.Cohort)
	}
	if p := runtest.Job(t, runtest.Spec(t, "a9a", "schedule.algorithm=pagd",
		"model.radius=20")).Plan.Phases[0]; p.Cohort != 440 || p.Rounds != 74 {
		t.Errorf("proved: m = %d, T = %d, want 440 and 74", p.Cohort, p.Rounds)
	}
}

// TestRoundTrip: a Task carries what is needed to build the algorithm that was planned.
func TestRoundTrip(t *testing.T) {
	for _, method := range []string{schedule.PAGD, schedule.PSGD} {
		job := runtest.Job(t, runtest.Small(t, "model.radius=5", "schedule.algorithm="+method))
		body, err := job.Wire()
		if err != nil {
			t.Fatal(err)
		}
		data, err := proto.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		back := &wire.Task{}
		if err := proto.Unmarshal(data, back); err != nil {
			t.Fatal(err)
		}
		built, err := learner.New(back.Plan)
		if err != nil {
			t.Fatal(err)
		}
		planned, err := learner.New(job.Plan)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := built.MarshalBinary()
		b, _ := planned.MarshalBinary()
		if string(a) != string(b) || len(a) == 0 {
			t.Errorf("%s: another algorithm is built than was planned", method)
		}
	}
}

// TestSizesAreUpperBounds checks that sizes bound what is really sent, and are not far from it.
func TestSizesAreUpperBounds(t *testing.T) {
	body, err := runtest.Job(t, runtest.Small(t)).Wire()
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := manifest.SizesOf(body, stage.ReasonNames())
	if err != nil {
		t.Fatal(err)
	}
	id := runtest.Identity(t)
	task := proto.CloneOf(body)
	task.Version, task.Name, task.LearnerKey, task.StageKey = stream.Version, "quickstart", id.Public(), id.Public()
	task.Life = make([]byte, stream.LifeSize)
	hash := stream.Hash{1}
	round := manifest.RoundOf(hash, 1, 1,
		make([]float64, body.Plan.Phases[0].Mechanism.Dim-body.Plan.Phases[0].Mechanism.Scores), nil)
	for what, one := range map[string]struct {
		m    proto.Message
		size int
	}{"task": {task, sizes.Task}, "round": {round, sizes.Round}, "batch": {runtest.ZeroBatch(t, body.Plan, round, hash),
		sizes.Batch}} {
		data, err := id.Sign(one.m)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > one.size || len(data)+600 < one.size {
			t.Errorf("%s: %d bytes, the bound is %d", what, len(data), one.size)
		}
	}
	over := sizes.Fit(stream.Limits{MaxPayload: sizes.Round - 1})
	if over == nil || !strings.Contains(over.Error(), "a round of this plan takes up to") {
		t.Errorf("a round too large: %v", over)
	}
	most := max(sizes.Task, sizes.Round, sizes.Batch, sizes.Report)
	if err := sizes.Fit(stream.Limits{MaxPayload: most}); err != nil {
		t.Error(err)
	}
	if err := sizes.Fit(stream.Limits{}); err != nil {
		t.Errorf("a limit that is not known: %v", err)
	}
}
