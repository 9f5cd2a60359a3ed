package device_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

func fraction(t testing.TB, s string) accounting.Fraction {
	t.Helper()
	f, err := accounting.ParseFraction(s)
	must(t, err)
	return f
}

// refusal checks that an error is a refusal of a field.
func refusal(t *testing.T, name string, err error, field string) {
	t.Helper()
	var refused *consent.RefusedError
	switch {
	case !errors.As(err, &refused):
		t.Errorf("%s: %v, want a refusal of %s", name, err, field)
	case !strings.Contains(refused.Field, field):
		t.Errorf("%s: refused %s, want %s (%v)", name, refused.Field, field, err)
	case strings.Contains(err.Error(), "\n"):
		t.Errorf("%s: the refusal has several lines: %q", name, err)
	}
}

func TestCheckTask(t *testing.T) {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	sealed := newWorld(t, plan{rounds: 3, cohort: 50, tight: true, sealed: true})
	pan := newWorld(t, plan{rounds: 3, cohort: 50, tight: true, trust: accounting.ShufflePan})
	half := newWorld(t, plan{rounds: 3, cohort: 50, tight: true, honest: "0.5"}) // noise for all honest, promised for half
	other := consent.Fingerprint(make([]byte, 32))
	lax := func(p consent.Policy) consent.Policy { p.AllowPlaintext = true; return p }
	for _, c := range []struct {
		name   string
		world  *world
		policy consent.Policy
		change func(*wire.Task)
		field  string // of the refusal; empty: agreed
	}{
		{"as planned", w, lax(consent.Policy{}), nil, ""},
		{"sealed, zero policy", sealed, consent.Policy{}, nil, ""},
		{"pan", pan, lax(consent.Policy{}), nil, ""},
		{"plaintext", w, consent.Policy{}, nil, "suite"},
		{"named", w, lax(consent.Policy{Tasks: []string{"x", "churn"}}), nil, ""},
		{"another name", w, lax(consent.Policy{Tasks: []string{"x"}}), nil, "task"},
		{"pinned", w, lax(consent.Policy{TaskHash: w.hash[:], LearnerKey: consent.Fingerprint(w.learner.Public()),
			StageKey: consent.Fingerprint(w.stage.Public())}), nil, ""},
		{"listed", w, lax(consent.Policy{TaskHashes: []consent.Fingerprint{other, w.hash[:]}}), nil, ""},
		{"not listed", w, lax(consent.Policy{TaskHashes: []consent.Fingerprint{other}}), nil, "task hash"},
		{"another hash", w, lax(consent.Policy{TaskHash: other}), nil, "task hash"},
		{"another learner", w, lax(consent.Policy{LearnerKey: other}), nil, "learner_key"},
		{"another stage", w, lax(consent.Policy{StageKey: other}), nil, "stage_key"},
		{"epsilon allowed", w, lax(consent.Policy{MaxEpsilon: 4.5}), nil, ""},
		{"epsilon too high", w, lax(consent.Policy{MaxEpsilon: 3}), nil, "epsilon"},
		{"delta too small for the budget", w, lax(consent.Policy{MaxDelta: 1e-9}), nil, "epsilon"},
		{"delta smaller, epsilon higher", w, lax(consent.Policy{MaxDelta: 1e-9, MaxEpsilon: 20}), nil, ""},
		{"own honest fraction", w, lax(consent.Policy{HonestFraction: fraction(t, "1/2")}), nil, "epsilon"},
		{"own honest fraction, higher limit", w, lax(consent.Policy{HonestFraction: fraction(t, "1/2"), MaxEpsilon: 12}), nil,
			""},
		// A plan cannot promise a share of honest users that its noise is not made for.
		{"a smaller honest fraction than declared", w, lax(consent.Policy{}),
			func(m *wire.Task) { m.Plan.HonestFraction = "0.5" }, "honest_fraction"},
		{"a promise that the noise does not keep", half, lax(consent.Policy{}), nil, "epsilon"},
		{"the same under a higher limit", half, lax(consent.Policy{MaxEpsilon: 12}), nil, ""},
		{"a plan for more than declared", half, lax(consent.Policy{MaxEpsilon: 12}),
			func(m *wire.Task) { m.Plan.HonestFraction = "1" }, "honest_fraction"},
		{"no honest fraction", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.HonestFraction = "0" }, "plan"},
		{"cohort allowed", w, lax(consent.Policy{MinCohort: 50}), nil, ""},
		{"cohort too small", w, lax(consent.Policy{MinCohort: 51}), nil, "minimum"},
		{"fewer trials", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Trials /= 2 }, "epsilon"},
		{"more levels", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Levels *= 2 }, "epsilon"},
		{"a smaller cohort", w, lax(consent.Policy{}), func(m *wire.Task) {
			m.Plan.Phases[0].Cohort,
				m.Plan.Phases[0].Minimum = 25, 25
		}, "epsilon"},
		{"a biased coin", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Coin = 1 << 18 },
			"epsilon"},
		{"more rounds a user, and users for one", w, lax(consent.Policy{}),
			func(m *wire.Task) { m.Plan.Phases[0].RoundsPerUser = 3 }, "plan"},
		{"more rounds a user", w, lax(consent.Policy{}), interactive, "plan.phases[0]: epsilon"},
		{"more rounds a user, within the policy's epsilon", w, lax(consent.Policy{MaxEpsilon: 9}), interactive, ""},
		{"more rounds a user than the policy takes", w, lax(consent.Policy{MaxEpsilon: 9, MaxRoundsPerUser: uint32p(2)}),
			interactive, "plan.phases[0].rounds_per_user"},
		{"as many rounds a user as the policy takes", w, lax(consent.Policy{MaxEpsilon: 9, MaxRoundsPerUser: uint32p(3)}),
			interactive, ""},
		{"a costly second phase", w, lax(consent.Policy{}), func(m *wire.Task) { secondPhase(m).Mechanism.Trials /= 2 },
			"plan.phases[1]: epsilon"},
		{"a small second phase", w, lax(consent.Policy{MinCohort: 41}), func(m *wire.Task) { secondPhase(m).Minimum = 40 },
			"plan.phases[1].minimum"},
		{"an envelope", w, lax(consent.Policy{}), func(m *wire.Task) { secondPhase(m).Smoothing = 2 }, ""},
		{"a second phase of another dimension", w, lax(consent.Policy{}),
			func(m *wire.Task) { secondPhase(m).Mechanism.Dim = 2 }, "plan"},
		{"smaller floors", pan, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.FloorTrials /= 4 },
			"epsilon"},
		{"a lie about epsilon", w, lax(consent.Policy{}), func(m *wire.Task) {
			m.Plan.Epsilon,
				m.Plan.Phases[0].Mechanism.Trials = 0.1, 1
		}, "epsilon"},
		{"a start that is not declared", w, lax(consent.Policy{}), func(m *wire.Task) {
			m.Plan.Set = &wire.Set{Radius: 1}
			m.Plan.Start, m.Plan.StartHash = make([]float64, m.Plan.Phases[0].Mechanism.Dim), make([]byte, 32)
		}, "start_hash"},
		{"another unit than declared", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Unit = wire.Unit_UNIT_USER },
			"plan.unit"},
		{"another radius than declared", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Radius = 0.5 }, "plan.radius"},
		{"a higher budget than declared", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.EpsilonBudget = 9 },
			"epsilon_budget"},
		{"a higher delta than declared", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Delta = 0.1 }, "plan.delta"},
		{"another clip norm", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.ClipNorm = 2 },
			"clip_norm"},
		{"another dimension", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Dim = 2 }, "dim"},
		{"plaintext of a sealed task", sealed, lax(consent.Policy{}), func(m *wire.Task) { m.Suite = wire.Suite_SUITE_NONE },
			"suite"},
		{"a suite that is not declared", sealed, lax(consent.Policy{}),
			func(m *wire.Task) { m.Suite = wire.Suite_SUITE_MLKEM768_X25519 }, "suite"},
		{"another name inside", w, lax(consent.Policy{}), func(m *wire.Task) { m.Name = "churn2" }, "declaration: name"},
		{"no declaration", w, lax(consent.Policy{}), func(m *wire.Task) { m.Declaration = nil }, "declaration"},
		{"no plan", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan = nil }, "task"},
		{"NaN clip norm", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.ClipNorm = math.NaN() },
			"plan"},
		{"no levels", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Mechanism.Levels = 0 }, "plan"},
		{"too few users", w, lax(consent.Policy{}), func(m *wire.Task) { m.Plan.Phases[0].Users = 100 }, "plan"},
	} {
		m := proto.CloneOf(c.world.task)
		if c.change != nil {
			c.change(m)
		}
		agreement, err := c.policy.CheckTask(m, taskHash(t, m))
		if c.field != "" {
			refusal(t, c.name, err, c.field)
			continue
		}
		if err != nil || !(agreement.Guarantee.Epsilon > 0) || math.IsInf(agreement.Guarantee.Epsilon, 0) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// secondPhase gives a task a second phase like the first.
func secondPhase(m *wire.Task) *wire.Phase {
	f := proto.CloneOf(m.Plan.Phases[0])
	m.Plan.Phases = append(m.Plan.Phases, f)
	return f
}

func uint32p(n uint32) *uint32 { return &n }

// interactive has the users of the first phase answer each of its rounds.
func interactive(m *wire.Task) {
	f := m.Plan.Phases[0]
	f.RoundsPerUser, f.Users = uint32(f.Rounds), f.Cohort
}

// TestAgreementIsOfTheCostliestPhase: what a task costs is what the phase costs that costs most, whichever comes first.
func TestAgreementIsOfTheCostliestPhase(t *testing.T) {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	policy := consent.Policy{AllowPlaintext: true, MaxEpsilon: 20}
	one, err := policy.CheckTask(w.task, w.hash)
	must(t, err)
	m := proto.CloneOf(w.task)
	secondPhase(m).Mechanism.Trials /= 2
	for range 2 {
		agreement, err := policy.CheckTask(m, taskHash(t, m))
		must(t, err)
		cheap, costly := agreement.Phases[0].Guarantee.Epsilon, agreement.Phases[1].Guarantee.Epsilon
		if max(cheap, costly) != agreement.Guarantee.Epsilon || min(cheap, costly) != one.Guarantee.Epsilon ||
			cheap == costly {
			t.Errorf("epsilon %v of phases of %v and %v; one phase alone costs %v", agreement.Guarantee.Epsilon, cheap, costly,
				one.Guarantee.Epsilon)
		}
		slices.Reverse(m.Plan.Phases)
	}
}

func TestCheckRound(t *testing.T) {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
	must(t, err)
	seen, err := manifest.RoundHash(w.round(2, 2))
	must(t, err)
	for _, c := range []struct {
		name   string
		known  *stream.Hash
		change func(*wire.Round)
		field  string
	}{
		{"as planned", nil, func(*wire.Round) {}, ""},
		{"seen before", &seen, func(*wire.Round) {}, ""},
		{"on the edge of the ball", nil, func(r *wire.Round) { r.Point = []float64{3, 4, 0} }, ""},
		{"outside the ball", nil, func(r *wire.Round) { r.Point = []float64{3, 4, 0.1} }, "point"},
		{"NaN", nil, func(r *wire.Round) { r.Point[1] = math.NaN() }, "message"},
		{"infinite", nil, func(r *wire.Round) { r.Point[1] = math.Inf(1) }, "message"},
		{"huge", nil, func(r *wire.Round) { r.Point = []float64{1e308, 1e308, 0} }, "point"},
		{"a short point", nil, func(r *wire.Round) { r.Point = r.Point[:2] }, "parameters"},
		{"repeated at another point", &seen, func(r *wire.Round) { r.Point[0] = 0 }, "manifest hash"},
		{"of another task", nil, func(r *wire.Round) { r.TaskHash = make([]byte, 32) }, "parameters"},
		{"beyond the plan", nil, func(r *wire.Round) { r.Round, r.Step = 9, 4 }, "parameters"},
	} {
		m := proto.CloneOf(w.round(2, 2))
		c.change(m)
		var hash stream.Hash
		if body, err := stream.Marshal(m); err == nil {
			hash = stream.HashOf(body)
		}
		err := agreement.CheckRound(m, hash, c.known)
		if c.field == "" {
			must(t, err)
			continue
		}
		refusal(t, c.name, err, c.field)
	}
}

func TestCheckDeclaration(t *testing.T) {
	w := newWorld(t, plan{rounds: 3, cohort: 50, tight: true})
	agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
	must(t, err)
	must(t, agreement.CheckDeclaration(w.spec))
	other := *w.spec
	other.Privacy.Epsilon = 2
	err = agreement.CheckDeclaration(&other)
	refusal(t, "another epsilon", err, "declaration")
	if want := fmt.Sprintf("privacy.epsilon: file says 2, task has %v",
		w.spec.Privacy.Epsilon); !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if err := agreement.CheckDeclaration(new(task.Spec)); err == nil {
		t.Error("an invalid declaration passed")
	}
}
