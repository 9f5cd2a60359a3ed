package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// momentsWorld has a first phase of 50 users' second moments, of squares of norm sqrt(3), and scales of at most 2 after it.
func momentsWorld(t testing.TB) *world {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	var err error
	declared := `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}, precondition: {users: 50, damping: 0.25, norm: 1.5}}
intercept: 0
norm_bound: 1
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, seal: none}
schedule: {users: 200}
validation: {off: true}
`
	w.spec, err = task.Parse([]byte(declared), nil)
	must(t, err)
	w.task.Declaration, err = w.spec.Canonical()
	must(t, err)
	first := proto.CloneOf(w.task.Plan.Phases[0])
	first.Users, first.Rounds, first.Statistic, first.Mechanism.ClipNorm = 50, 1, wire.Statistic_STATISTIC_SECOND_MOMENTS, 1.5
	w.task.Plan.Phases = append([]*wire.Phase{first}, w.task.Plan.Phases...)
	w.hash = taskHash(t, w.task)
	return w
}

// momentsRound is round r at its step, with scales that the first phase could have given.
func (w *world) momentsRound(r stream.Round) *wire.Round {
	if r == 1 {
		return manifest.RoundOf(w.hash, 1, 1, nil, nil)
	}
	m := w.round(r, stream.Step(r))
	m.Scales = []float64{2, 1, 0.5}
	return m
}

// A device answers for second moments where the declaration says so, of whom and within which norm.
func TestMomentsAreAsDeclared(t *testing.T) {
	w, plain := momentsWorld(t), newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	for _, c := range []struct {
		name   string
		world  *world
		change func(*wire.Task)
		field  string // of the refusal; empty: agreed
	}{
		{"as planned", w, nil, ""},
		{"moments that nobody declared", plain, func(m *wire.Task) {
			secondPhase(m)
			m.Plan.Phases[0].Statistic, m.Plan.Phases[0].Rounds = wire.Statistic_STATISTIC_SECOND_MOMENTS, 1
		}, "plan.phases[0].statistic"},
		{"none, though declared", w, func(m *wire.Task) { m.Plan.Phases = m.Plan.Phases[1:] }, "plan.phases[0].statistic"},
		{"gradients in their place", w, func(m *wire.Task) { m.Plan.Phases[0].Statistic, m.Plan.Phases[0].Mechanism.ClipNorm = 0, 1 }, "plan.phases[0].statistic"},
		{"an unknown statistic", w, func(m *wire.Task) { m.Plan.Phases[0].Statistic = 2 }, "task"},
		{"of more users", w, func(m *wire.Task) { m.Plan.Phases[0].Users = 51 }, "plan.phases[0].users"},
		{"a second time", w, func(m *wire.Task) { m.Plan.Phases[1].Statistic = m.Plan.Phases[0].Statistic }, "plan"},
		{"within a larger norm", w, func(m *wire.Task) { m.Plan.Phases[0].Mechanism.ClipNorm = 2 }, "plan.phases[0].mechanism.clip_norm"},
		{"of fewer coordinates", w, func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Dim = 2 }, "plan.phases[0].mechanism.dim"},
		{"with less noise", w, func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Trials /= 2 }, "plan.phases[0]: epsilon"},
		{"gradients of another norm", w, func(m *wire.Task) { m.Plan.Phases[1].Mechanism.ClipNorm = 1.5 }, "plan.phases[1].mechanism.clip_norm"},
	} {
		m := proto.CloneOf(c.world.task)
		if c.change != nil {
			c.change(m)
		}
		agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, taskHash(t, m))
		if c.field != "" {
			refusal(t, c.name, err, c.field)
		} else if err != nil || agreement.Phases[0].Reports.Statistic != report.SecondMoments || agreement.Phases[1].Reports.Statistic != report.Gradient || *agreement.Scaling != *w.spec.Preconditioner() {
			t.Errorf("%s: %+v, %v", c.name, agreement, err)
		}
	}
}

func TestScalesAreChecked(t *testing.T) {
	w := momentsWorld(t)
	agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
	must(t, err)
	for _, c := range []struct {
		name   string
		round  stream.Round
		change func(*wire.Round)
		field  string // of the refusal; empty: agreed
	}{
		{"moments", 1, nil, ""},
		{"moments at a point", 1, func(r *wire.Round) { r.Point = []float64{0, 0, 0} }, "parameters"},
		{"moments of scaled features", 1, func(r *wire.Round) { r.Scales = []float64{1, 1, 1} }, "parameters"},
		{"gradients", 2, nil, ""},
		{"no scales", 2, func(r *wire.Round) { r.Scales = nil }, "parameters"},
		{"two scales", 2, func(r *wire.Round) { r.Scales = r.Scales[:2] }, "parameters"},
		{"a scale above what the damping allows", 2, func(r *wire.Round) { r.Scales[0] = 2.001 }, "scales"},
		{"a tiny scale", 2, func(r *wire.Round) { r.Scales[0] = 1e-13 }, "scales"},
		{"a negative scale", 2, func(r *wire.Round) { r.Scales[0] = -1 }, "message"},
		{"no point", 2, func(r *wire.Round) { r.Point = nil }, "parameters"},
	} {
		m := w.momentsRound(c.round)
		if c.change != nil {
			c.change(m)
		}
		err := agreement.CheckRound(m, stream.Hash{}, nil)
		if c.field != "" {
			refusal(t, c.name, err, c.field)
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A device goes from moments to gradients with the learner, and away from one whose scales change.
func TestScalesStayAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := momentsWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cl := w.client(w.config(participation.NewMemoryStore()))
		w.put(ctx, w.name.Task(), w.learner, w.task)
		outcome := make(chan error, 1)
		go func() { _, err := cl.Run(ctx, rows(1, false)); outcome <- err }()
		for r := stream.Round(1); r <= 4; r++ {
			m := w.momentsRound(r)
			if r == 4 {
				m.Scales[2] = 0.25
			}
			w.put(ctx, w.name.Round(r), w.learner, m)
			time.Sleep(time.Minute)
			select {
			case err := <-outcome:
				if r < 4 {
					t.Fatalf("round %d: %v", r, err)
				}
				refusal(t, "other scales", err, "scales")
				return
			default:
			}
		}
		t.Error("the scales changed and the device goes on")
	})
}
