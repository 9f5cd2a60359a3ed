package planning_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// preconditioned is a9a with moments: 14 squares of norm sqrt(14), scaled vectors of norm 1.
func preconditioned() planning.Problem {
	p := a9a()
	p = p.ForLoss(convex.Logistic{}, 1, 1)
	p.Precondition, p.MomentUsers = &convex.Preconditioner{Dim: 123, Norm: math.Sqrt(14), Damping: 0.01, Bound: 1}, 2000
	return p
}

// The plan of the rest is the one for fewer users, and the cohort of the moments is charged by itself, for its own dimension.
func TestPlanOfMoments(t *testing.T) {
	q := preconditioned()
	p := plan(t, q)
	rest := q
	rest.Precondition, rest.MomentUsers, rest.Users = nil, 0, 30561
	alone := plan(t, rest)
	if !slices.EqualFunc(p.Plan.Phases[1:], alone.Plan.Phases, same) || !reflect.DeepEqual(p.Forecasts[1:], alone.Forecasts) || p.ExcessRisk != alone.ExcessRisk || manifest.Users(p.Plan) != 32561 {
		t.Errorf("the rest: %+v, want %+v", p.Plan.Phases[1:], alone.Plan.Phases)
	}
	first := p.Plan.Phases[0]
	want, err := accounting.Calibrate(accounting.Request{Users: 2000, Dim: 123, Epsilon: 1, Delta: 1e-6, HonestFraction: accounting.One, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if first.Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || first.Users != 2000 || first.Cohort != 2000 || first.Rounds != 1 || first.Minimum != 1800 || first.RoundsPerUser != 1 ||
		!reflect.DeepEqual(p.Forecasts[0].Privacy, want) || p.Plan.Epsilon > 1 {
		t.Errorf("the moments: %+v, want the privacy %+v", first, want)
	}
	if !reflect.DeepEqual(p.First(), alone.Forecasts[0]) || !reflect.DeepEqual(alone.First(), alone.Forecasts[0]) || manifest.Gradients(p.Plan) != p.Plan.Phases[1] {
		t.Errorf("first phase of the method: %+v", p.First())
	}
	if params, err := manifest.Params(p.Plan.Phases[0].Mechanism); err != nil || params.Dim != 123 || params.ClipNorm != math.Sqrt(14) {
		t.Errorf("params of the moments: %+v, %v", params, err)
	}
	if params, err := manifest.Params(p.Plan.Phases[1].Mechanism); err != nil || params.Dim != 124 || params.ClipNorm != 1 {
		t.Errorf("params of gradients: %+v, %v", params, err)
	}
	q.MaxRounds = 10
	if p := plan(t, q); manifest.Planned(p.Plan) != 10 {
		t.Errorf("%d rounds of at most 10", manifest.Planned(p.Plan))
	}
}

func same(a, b *wire.Phase) bool { return proto.Equal(a, b) }

func TestPlanOfMomentsRefuses(t *testing.T) {
	for want, change := range map[string]func(*planning.Problem){
		"moment users: 0": func(p *planning.Problem) { p.MomentUsers = 0 }, "moment users: 32561": func(p *planning.Problem) { p.MomentUsers = 32561 },
		"at least the minimum": func(p *planning.Problem) { p.Minimum = 2001 }, "leave no cohort": func(p *planning.Problem) { p.Cohort = 30562 },
		"max rounds": func(p *planning.Problem) { p.MaxRounds = 1 }, "without": func(p *planning.Problem) { p.Precondition = nil },
		"damping": func(p *planning.Problem) { p.Precondition.Damping = -1 },
	} {
		q := preconditioned()
		change(&q)
		if _, err := planning.MakePlan(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}

// Other ways to spend the budget estimate the moments too, with their own noise.
func TestBaselinesOfMoments(t *testing.T) {
	pl := planning.NewPlanner()
	q := preconditioned()
	std := map[string]float64{}
	for _, name := range []string{planning.BaselineCentral, planning.BaselineLocal} {
		b, err := pl.BaselinePlan(q, name, schedule.PAGD)
		if err != nil {
			t.Fatal(err)
		}
		if b.Plan.Phases[0].Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || manifest.Users(b.Plan) > q.Users {
			t.Errorf("%s: %+v", name, b.Plan.Phases[0])
		}
		std[name] = b.NoiseStd(0, 2000)
	}
	p := plan(t, q)
	own := p.Forecasts[0].Privacy.NoiseStd * q.Precondition.Norm
	if !(std[planning.BaselineCentral] < own && own < 1.1*std[planning.BaselineCentral] && std[planning.BaselineLocal] > 5*own) {
		t.Errorf("noise of a moment: %v, baselines %v", own, std)
	}
	if _, err := pl.Baselines(q, schedule.PAGD); err != nil {
		t.Error(err)
	}
	curve, err := pl.Curve(q, p)
	if err != nil {
		t.Fatal(err)
	}
	if got := curve.At(q.Users, q.Epsilon); math.Abs(got/p.ExcessRisk-1) > 0.05 || !math.IsInf(curve.At(2000, 1), 1) {
		t.Errorf("the curve says %v at the plan of %v", got, p.ExcessRisk)
	}
}
