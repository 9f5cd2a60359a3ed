package manifest

import (
	"fmt"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/wire"
)

// Set returns the constraint set of a plan.
func Set(plan *wire.Plan) (convex.Set, error) {
	set, err := setDeclaration(plan).New(Dim(plan))
	if err != nil {
		return nil, fmt.Errorf("plan: set: %w", err)
	}
	return set, nil
}

func setDeclaration(plan *wire.Plan) convex.SetDeclaration {
	s := plan.GetSet()
	return convex.SetDeclaration{Kind: s.GetKind(), Radius: s.GetRadius(), Min: s.GetMin(), Max: s.GetMax()}
}

// WireSet returns the declaration of Set on the wire.
func WireSet(s convex.SetDeclaration) *wire.Set {
	return &wire.Set{Kind: s.Kind, Radius: s.Radius, Min: s.Min, Max: s.Max}
}

// validateStart refuses a start that is no point of the plan's set.
func validateStart(plan *wire.Plan) error {
	if len(plan.Start) == 0 {
		return nil
	}
	if dim := Dim(plan); len(plan.Start) != dim {
		return fmt.Errorf("start of %d values: want %d", len(plan.Start), dim)
	}
	set, err := Set(plan)
	if err == nil && !set.Contains(plan.Start) {
		err = fmt.Errorf("start: outside the set, of radius %v", set.Radius())
	}
	return err
}

// Frame returns the coordinates of a round; nil for the declared ones.
func Frame(f *wire.Frame) *convex.Frame {
	if f == nil {
		return nil
	}
	return &convex.Frame{Center: f.Center, Scale: f.Scale, Intercept: f.Intercept, Bound: f.Bound, Clip: f.Clip,
		Smoothing: f.Smoothing,
		Whitener:  f.Whitener, LabelCenter: f.LabelCenter, LabelScale: f.LabelScale, LabelWeight: f.LabelWeight}
}

// WireFrame is the inverse of Frame.
func WireFrame(f *convex.Frame) *wire.Frame {
	if f == nil {
		return nil
	}
	return &wire.Frame{Center: f.Center, Scale: f.Scale, Intercept: f.Intercept, Bound: f.Bound, Clip: f.Clip,
		Smoothing: f.Smoothing,
		Whitener:  f.Whitener, LabelCenter: f.LabelCenter, LabelScale: f.LabelScale, LabelWeight: f.LabelWeight}
}

// Practical returns the problem from which a practical plan's frame and steps are made; nil for a proved plan.
func Practical(plan *wire.Plan) *practical.Problem {
	p := plan.GetPractical()
	if p == nil {
		return nil
	}
	l := p.GetLoss()
	out := &practical.Problem{
		Loss: convex.Declaration{Name: l.GetName(), Classes: int(l.GetClasses()), Level: l.GetLevel(), Width: l.GetWidth(),
			ScoreBound: l.GetScoreBound(),
			MaxCount:   l.GetMaxCount(), ClassWeights: l.GetClassWeights(), LabelNoise: l.GetLabelNoise()},
		Features: int(p.Features), Bound: p.Bound, Intercept: p.Intercept, LabelLow: p.LabelLow, LabelHigh: p.LabelHigh,
		Clip: p.Clip, Ridge: plan.Ridge,
		Set: setDeclaration(plan), Users: p.Users, Continuous: Endless(plan), Interactive: RoundsPerUser(plan) > 1,
		Even: plan.Silos > 0 || stintOf(plan, 0).Phases > 1, Radius: plan.Radius,
	}
	if len(plan.Start) > 0 {
		out.Start = plan.Start
	}
	if of := plan.StartPrivacy; out.Continuous && out.Start != nil && of.GetUsers() > 0 {
		out.StartUsers = min(float64(of.Users), convex.MaxScale)
		if of.Epsilon > 0 { // noise falls about as epsilon grows
			out.StartNoise = min(p.Unit*plan.EpsilonBudget/of.Epsilon, convex.MaxScale)
		}
	}
	if len(p.Indicators) > 0 {
		out.Indicators = make([]bool, min(out.Features, 8*len(p.Indicators)))
		for j := range out.Indicators {
			out.Indicators[j] = p.Indicators[j/8]>>(j%8)&1 == 1
		}
	}
	return out
}

// WirePractical is the inverse of Practical, without the fields that the plan holds elsewhere.
func WirePractical(p *practical.Problem) *wire.Practical {
	if p == nil {
		return nil
	}
	l := p.Loss
	out := &wire.Practical{
		Loss: &wire.Loss{Name: l.Name, Classes: uint32(l.Classes), Level: l.Level, Width: l.Width, ScoreBound: l.ScoreBound,
			MaxCount:     l.MaxCount,
			ClassWeights: l.ClassWeights, LabelNoise: l.LabelNoise},
		Features: uint32(p.Features), Bound: p.Bound, Intercept: p.Intercept, LabelLow: p.LabelLow, LabelHigh: p.LabelHigh,
		Users: p.Users, Clip: p.Clip,
	}
	for j, is := range p.Indicators {
		if is {
			if out.Indicators == nil {
				out.Indicators = make([]byte, (len(p.Indicators)+7)/8)
			}
			out.Indicators[j/8] |= 1 << (j % 8)
		}
	}
	return out
}

// Scorecard returns the meaning of the scores after a gradient; nil if the plan has none.
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
