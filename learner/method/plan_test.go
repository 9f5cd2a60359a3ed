package method_test

import (
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// series returns a plan of phases of gradients in a dimension, over a set.
func series(dim int, set convex.SetDeclaration, ridge float64, phases ...*wire.Phase) *wire.Plan {
	for _, f := range phases {
		f.Mechanism = &wire.Mechanism{Dim: uint32(dim)}
	}
	return &wire.Plan{Set: manifest.WireSet(set), Ridge: ridge, Phases: phases}
}

// forever returns a series whose last phase goes on.
func forever(how wire.Continuous, plan *wire.Plan) *wire.Plan {
	plan.Continuous = how
	return plan
}

// descent returns a phase of PSGD.
func descent(rounds uint64, eta float64) *wire.Phase {
	return &wire.Phase{Rounds: rounds, Cohort: 5, Users: 5 * rounds, RoundsPerUser: 1,
		Constants: &wire.Phase_Descent{Descent: &wire.Descent{StepSize: eta}}}
}

// weighted returns a phase of PSGD or PGD whose average has the weights of strongly convex losses.
func weighted(f *wire.Phase, mu float64) *wire.Phase {
	f.GetDescent().Mu = mu
	return f
}

// interactive returns a phase of PGD.
func interactive(rounds uint64, eta float64) *wire.Phase {
	f := descent(rounds, eta)
	f.Users, f.RoundsPerUser = 5, uint32(rounds)
	return f
}

// accelerated returns a phase of PAGD.
func accelerated(rounds uint64, v, mu, beta float64) *wire.Phase {
	return &wire.Phase{Rounds: rounds, Cohort: 5, Users: 5 * rounds, RoundsPerUser: 1,
		Constants: &wire.Phase_Acceleration{Acceleration: &wire.Acceleration{V: v, Mu: mu, Smoothness: beta}}}
}

// smoothed returns a phase whose users report the gradient of the envelope.
func smoothed(f *wire.Phase, by float64) *wire.Phase {
	f.Smoothing = by
	return f
}

func begin(t rapid.TB, p *wire.Plan) learner.Algorithm {
	a, err := learner.New(p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return a
}

// alone returns a plan of PSGD on two parameters.
func alone() *wire.Plan { return series(2, convex.SetDeclaration{Radius: 2}, 0, descent(3, 0.3)) }
