package manifest

import (
	"fmt"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/wire"
)

// Set is the constraint set of a plan.
func Set(plan *wire.Plan) (convex.Set, error) {
	s := plan.GetSet()
	set, err := convex.SetDeclaration{Kind: s.GetKind(), Radius: s.GetRadius(), Min: s.GetMin(), Max: s.GetMax()}.New(Dim(plan))
	if err != nil {
		return nil, fmt.Errorf("plan: set: %w", err)
	}
	return set, nil
}

// WireSet is the declaration of Set on the wire.
func WireSet(s convex.SetDeclaration) *wire.Set {
	return &wire.Set{Kind: s.Kind, Radius: s.Radius, Min: s.Min, Max: s.Max}
}

// Preconditioner says how second moments become scales; nil where a plan has none.
func Preconditioner(plan *wire.Plan) *convex.Preconditioner {
	p := plan.GetPreconditioner()
	if p == nil {
		return nil
	}
	return &convex.Preconditioner{Dim: int(p.Dim), Norm: p.Norm, Damping: p.Damping, Bound: p.Bound}
}

// WirePreconditioner is the inverse of Preconditioner.
func WirePreconditioner(p *convex.Preconditioner) *wire.Preconditioner {
	if p == nil {
		return nil
	}
	return &wire.Preconditioner{Dim: uint32(p.Dim), Norm: p.Norm, Damping: p.Damping, Bound: p.Bound}
}

// Scorecard says what the scores after a gradient say; nil where a plan has none.
func Scorecard(plan *wire.Plan) *convex.Scorecard {
	s := plan.GetScorecard()
	if s == nil {
		return nil
	}
	return &convex.Scorecard{Norm: s.Norm, Low: s.Low, High: s.High, Correctness: s.Correctness, LabelNoise: s.LabelNoise}
}

// WireScorecard is the inverse of Scorecard.
func WireScorecard(s *convex.Scorecard) *wire.Scorecard {
	if s == nil {
		return nil
	}
	return &wire.Scorecard{Norm: s.Norm, Low: s.Low, High: s.High, Correctness: s.Correctness, LabelNoise: s.LabelNoise}
}
