package audits

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
)

// huge is a feature whose statistics are far beyond any clip.
const huge = 1e6

// A scene is a round of a phase in which two rows may be far apart: its query point and mechanism, and the rows that it
// is asked about. A unit has items rows, all alike, and within units change.
type scene struct {
	items  int
	within uint64
	of     report.Config
	params randomizer.Params
	point  []float64
	frame  *convex.Frame
	bound  float64 // of a row's features
}

// pairsOf returns rows of the task that the client's own encoder turns into vectors far apart in the ball, in a round
// of a phase that is chosen for it. The pole takes as few coordinates as come near to the largest distance; the
// spread is of rows far beyond the clip over several features, where an encoder that does not clip the whole vector
// is farther out than it may be. In a report about several units the others are zero, or, once more, of one end: what
// a unit moves must not depend on them.
func pairsOf(job run.Job, phase int, params randomizer.Params, within uint64) ([]audit.Pair, error) {
	all, err := foundFor(job, phase, params, within)
	if err != nil {
		return nil, err
	}
	pairs := []audit.Pair{all[0].pair(poleShare, most)}
	if pairs[0].Distance < poleShare {
		// No row of the statistic comes near: the randomizer is asked for the poles themselves.
		pairs[0].Part = 2
		pairs = append([]audit.Pair{audit.Pole("bare pole", params, 1, within)}, pairs...)
	}
	if params.Units > within {
		among := all[0]
		among.name, among.others = "pole among others", min(params.Units-within, most)
		pair := among.pair(poleShare, most)
		pair.Part = most
		pairs = append(pairs, pair)
	}
	for _, f := range all[1:] {
		pair := f.pair(1, most)
		pair.Part = most
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// foundFor searches for the pole, and for the spread where there is more than one feature.
func foundFor(job run.Job, phase int, params randomizer.Params, within uint64) ([]found, error) {
	of := report.Config{Features: job.Features.Dim(), Loss: job.Loss, ClipNorm: job.Plan.ClipNorm, Radius: job.Plan.Radius,
		Practical: manifest.Practical(job.Plan)}
	if of.Score = job.Score(); of.Score != nil {
		of.Scores = job.Problem.Validation.Dim()
	}
	f := job.Plan.Phases[phase]
	of, err := of.Phase(report.Statistic(f.Statistic), f.Smoothing)
	if err != nil {
		return nil, err
	}
	if x := f.GetProx(); x != nil {
		set, err := manifest.Set(job.Plan)
		if err != nil {
			return nil, err
		}
		of.Prox = &report.Prox{Weight: x.Weight, StepSize: x.StepSize, Steps: int(x.Steps), Set: set}
	}
	s := scene{of: of, params: params, frame: wideFrame(of), items: 1, within: within, bound: job.Features.Bound()}
	if job.Spec.Privacy.ByUser() && job.Spec.User != nil {
		s.items = job.Spec.User.Items
	}
	pole, err := s.search("pole", featuresOf(of, 1))
	if err != nil {
		return nil, err
	}
	out := []found{pole}
	if over := featuresOf(of, most); len(over) > 1 {
		spread, err := s.search("spread", over)
		if err != nil {
			return nil, err
		}
		out = append(out, spread)
	}
	return out, nil
}

const (
	// poleShare of the largest distance is enough for a pole of fewer coordinates.
	poleShare = 0.85
	most      = 4 // coordinates that run
)

// wideFrame returns a frame of the phase's kind in which features decide alone: nothing is moved, cut or weighed
// against them. It returns nil if a round has none.
func wideFrame(of report.Config) *convex.Frame {
	p := of.Practical
	if p == nil || of.Statistic == report.Moments {
		return nil
	}
	f := &convex.Frame{Center: make([]float64, p.Features), Scale: make([]float64, p.Features), Bound: convex.MaxScale,
		Clip: 1}
	for j := range f.Scale {
		f.Scale[j] = 1
	}
	if p.Intercept != 0 {
		f.Intercept = 1 / convex.MaxScale
	}
	if of.Statistic == report.MomentMatrix {
		f.LabelScale, f.LabelWeight = 1, convex.MaxScale // the label times a feature is all that can have either sign
	}
	return f
}

// featuresOf returns the indices of at most wide features, in order: indicators first, since they have no squares
// beside them, and never a practical plan's intercept.
func featuresOf(of report.Config, wide int) (out []int32) {
	p := of.Practical
	n, indicator := of.Features, func(int) bool { return false }
	if p != nil {
		n = p.Features
		if p.Indicators != nil {
			indicator = func(j int) bool { return p.Indicators[j] }
		}
	}
	for _, which := range []bool{true, false} {
		for j := range n {
			if indicator(j) == which && len(out) < wide {
				out = append(out, int32(j))
			}
		}
	}
	slices.Sort(out)
	return out
}

// A found is a pair of rows that search found, with the difference of their vectors.
type found struct {
	scene
	name  string
	rows  [3]convex.Example // by audit.Input
	along []float64         // from minus to plus
	// others is the number of units of the report that do not change and are not zero.
	others uint64
}

// search tries rows with one value in all of these features, opposite ones or the same, with any labels that the loss
// takes, at points that score them from not at all to beyond what is scored.
func (s scene) search(name string, features []int32) (best found, err error) {
	exact, err := report.NewExact(s.of)
	if err != nil {
		return best, err
	}
	row := func(value, label float64) convex.Example {
		x := convex.Example{Index: features, Label: label}
		for range features {
			x.Value = append(x.Value, value)
		}
		return x
	}
	values, margins := []float64{huge}, []float64{0}
	switch {
	case s.of.Prox != nil: // of which longer rows say zero
		values = []float64{s.bound / math.Sqrt(float64(len(features)))}
		margins = []float64{0, 1, 3, 10, -1, -3, -10}
	case s.of.Statistic == report.Moments && name == "spread":
		values = []float64{4} // beyond the clip; squares have one sign, and are more than all else where values are large
	case s.of.Statistic == report.Moments:
		values = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, huge}
	case s.of.Statistic == report.Gradient:
		margins = []float64{0, 1, 3, 10, -1, -3, -10}
	}
	farthest := 0.0
	for _, margin := range margins {
		var point []float64
		if s.of.Statistic == report.Gradient {
			point = make([]float64, s.of.Loss.Parameters(s.of.Features))
			for _, j := range features {
				point[j] = margin / slices.Max(values) / float64(len(features))
			}
		}
		if err := exact.At(point, s.frame); err != nil {
			return best, err
		}
		for _, value := range values {
			for _, sign := range []float64{-1, 1} {
				for _, labels := range s.labels() {
					if name == "spread" && labels[0] != labels[1] {
						continue // the features alone are to differ
					}
					plus, minus := row(value, labels[0]), row(sign*value, labels[1])
					along := slices.Clone(s.unitVector(exact, plus))
					for j, v := range s.unitVector(exact, minus) {
						along[j] -= v
					}
					if d := convex.Norm(along); d > farthest*(1+1e-6) {
						farthest = d
						best = found{scene: s, name: name, rows: [3]convex.Example{audit.Plus: plus, audit.Minus: minus}, along: along}
						best.point = point
					}
				}
			}
		}
	}
	if farthest == 0 {
		return best, fmt.Errorf("%v: no two rows are found that differ in a report", s.of.Statistic)
	}
	return best, nil
}

// unitVector returns the vector that a unit of copies of row adds to a report. For minimisers, where a report holds
// nothing else, it scales the minimiser to the length of one unit's own vector.
func (s scene) unitVector(exact *report.Exact, row convex.Example) []float64 {
	if s.of.Prox == nil {
		return exact.Unit(slices.Repeat([]convex.Example{row}, s.items)...)
	}
	units := max(s.params.Units, 1)
	out := exact.Minimiser(block.Of(slices.Repeat([]convex.Example{row}, int(s.within))...), units)
	for j := range out {
		out[j] *= float64(units) / float64(s.within)
	}
	return out
}

// labels returns pairs of labels that the loss accepts.
func (s scene) labels() (out [][2]float64) {
	var known []float64
	for _, y := range []float64{-1, 0, 1, -0.1, 0.1, -huge, huge} {
		if s.of.Loss.CheckLabel(y) == nil {
			known = append(known, y)
		}
	}
	for _, a := range known {
		for _, b := range known {
			out = append(out, [2]float64{a, b})
		}
	}
	return out
}

// pair returns the pair on the coordinates that differ most: as few as have the share of the distance, and no more
// than most.
func (f found) pair(share float64, most int) audit.Pair {
	order := make([]int, len(f.along))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(f.along[b]), math.Abs(f.along[a])) })
	along, all, kept := make([]float64, len(f.along)), convex.Norm(f.along), 0.0
	for i, j := range order {
		if i == most || kept >= share*all || math.Abs(f.along[j]) < 1e-3*all {
			break
		}
		along[j] = f.along[j]
		kept = convex.Norm(along)
	}
	return audit.Pair{Name: f.name, Along: along, Distance: min(1, kept/2/f.params.ClipNorm), Encoder: f.encoder}
}
