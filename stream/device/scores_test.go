package device_test

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// scoresWorld has two scores after a gradient of three coordinates, of norms 1 and 1/2.
func scoresWorld(t testing.TB) *world {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	with := bytes.Replace(fmt.Appendf(nil, declaration, "shuffle", "none", "1", 150), []byte("{off: true}"),
		[]byte("{weight: 0.5}"), 1)
	var err error
	w.spec, err = task.Parse(with, nil)
	must(t, err)
	w.task.Declaration, err = w.spec.Canonical()
	must(t, err)
	features, err := w.spec.Compile()
	must(t, err)
	card, err := w.spec.Scorecard(features)
	must(t, err)
	m := w.task.Plan.Phases[0].Mechanism
	m.Dim, m.Scores, m.ClipNorm, m.Trials = m.Dim+2, 2, card.Joined(1), 2*m.Trials
	w.hash = taskHash(t, w.task)
	return w
}

// A device reports scores where the declaration says so, as many and within the norm that it computes itself.
func TestScoresAreAsDeclared(t *testing.T) {
	w, plain := scoresWorld(t), newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	mechanism := func(change func(*wire.Mechanism)) func(*wire.Task) {
		return func(m *wire.Task) { change(m.Plan.Phases[0].Mechanism) }
	}
	for _, c := range []struct {
		name   string
		world  *world
		change func(*wire.Task)
		field  string // of the refusal; empty: agreed
	}{
		{"as planned", w, nil, ""},
		{"charged as a gradient alone", w, mechanism(func(m *wire.Mechanism) { m.ClipNorm = 1 }),
			"plan.phases[0].mechanism.clip_norm"},
		{"of a larger norm", w, mechanism(func(m *wire.Mechanism) { m.ClipNorm = 1.5 }),
			"plan.phases[0].mechanism.clip_norm"},
		{"charged in fewer coordinates", w, mechanism(func(m *wire.Mechanism) { m.Dim, m.Scores = 3, 0 }),
			"plan.phases[0].mechanism.dim"},
		{"taken for a gradient", w, mechanism(func(m *wire.Mechanism) { m.Scores = 0 }), "plan.phases[0].mechanism.scores"},
		{"one of them", w, mechanism(func(m *wire.Mechanism) { m.Scores = 1 }), "plan.phases[0].mechanism.scores"},
		{"more than a report has", w, mechanism(func(m *wire.Mechanism) { m.Scores = 5 }), "plan"},
		{"with less noise", w, mechanism(func(m *wire.Mechanism) { m.Trials /= 8 }), "plan.phases[0]: epsilon"},
		{"that nobody declared", plain, mechanism(func(m *wire.Mechanism) { m.Scores = 1 }),
			"plan.phases[0].mechanism.scores"},
		{"none declared", plain, nil, ""},
	} {
		m := proto.CloneOf(c.world.task)
		if c.change != nil {
			c.change(m)
		}
		agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, taskHash(t, m))
		if c.field != "" {
			refusal(t, c.name, err, c.field)
		} else if err != nil || (agreement.Phases[0].Reports.Scores > 0) != (c.world == w) {
			t.Errorf("%s: %+v, %v", c.name, agreement, err)
		}
	}
}

// The point of a round has the gradient's length.
func TestScoresAreNoPartOfThePoint(t *testing.T) {
	w := scoresWorld(t)
	agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
	must(t, err)
	for length, field := range map[int]string{3: "", 5: "parameters", 2: "parameters"} {
		round := manifest.RoundOf(w.hash, 1, 1, make([]float64, length), nil)
		err := agreement.CheckRound(round, stream.Hash{1}, nil)
		if field != "" {
			refusal(t, fmt.Sprint(length, " values"), err, field)
		} else if err != nil {
			t.Errorf("%d values: %v", length, err)
		}
	}
}
