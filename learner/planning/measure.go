package planning

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Limits of a simulation: it takes about a second for all methods, whatever the task. Where methods have many rounds
// there are fewer rows.
const (
	measureSeeds  = 6
	measureRows   = 2000
	fewestRows    = 40
	measureParams = 40     // largest number of simulated parameters, over which the noise of all coordinates is spread
	measureCost   = 4e6    // rows times parameters times rounds of a method and a seed
	measureRounds = 30_000 // of a plan that can be simulated
	classCost     = 600    // parameters that one class of a row counts as, where gradients of several scores are clipped
)

// A measurement is the result of simulating a plan on synthetic rows: the objective of its model for each seed. Rows
// and planted models are the same for all plans of a problem.
type measurement struct {
	objectives []float64
	mean       float64
}

// measure simulates plans of a problem on synthetic rows: labels come from a planted model, and features have the
// declared norm, half of its square along one common direction and the rest falling like 1/j along the others.
// Gradients are clipped and exact; rows are sampled like cohorts; privacy noise and rounding are Gaussian with the
// plans' variance. It also returns the objective of the start.
func (p Problem) measure(plans []Proposal) (out []measurement, start float64, err error) {
	if p.loss == nil {
		return nil, 0, fmt.Errorf("the loss is not known")
	}
	most := uint64(1)
	for _, one := range plans {
		most = max(most, manifest.Planned(one.Plan))
	}
	out = make([]measurement, len(plans))
	for seed := range uint64(measureSeeds) {
		t, err := p.newTrialRows(seed, most)
		if err != nil {
			return nil, 0, err
		}
		start += t.objective(t.start) / measureSeeds
		for i, one := range plans {
			model, err := t.run(p, one, rand.New(rand.NewPCG(seed, uint64(i)+1)))
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %w", one.Plan.Algorithm, err)
			}
			y := t.objective(model)
			out[i].objectives = append(out[i].objectives, y)
			out[i].mean += y / measureSeeds
		}
	}
	return out, start, nil
}

// A trialRows holds the rows of one seed, on which plans of one problem are simulated.
type trialRows struct {
	loss   convex.Loss
	ridge  float64
	params int
	start  []float64
	rows   []convex.Example
	norm   float64 // of every row

	at, slopes []float64 // scratch: a parameter and a slope for every score
}

func (p Problem) newTrialRows(seed, rounds uint64) (*trialRows, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	each := p.loss.Parameters(1)
	features := min(p.Dim/each, max(2, measureParams/each))
	t := &trialRows{loss: p.loss, ridge: p.Ridge, params: p.loss.Parameters(features)}
	set, err := p.Set.New(t.params)
	if err != nil {
		return nil, err
	}
	t.start, t.at, t.slopes = make([]float64, t.params), make([]float64, each), make([]float64, each)
	set.Start(t.start)
	cost := float64(t.params)
	if each > 1 {
		cost += float64(classCost * each)
	}
	n := int(min(max(measureCost/cost/float64(rounds), fewestRows), measureRows))
	// The mean over rows has half of a row's curvature, so rows are shortened if a smaller smoothness is declared.
	t.norm = p.norm
	if !math.IsInf(p.Smoothness, 1) {
		t.norm *= math.Sqrt(min(1, 2*p.meanSmoothness()/p.Smoothness))
	}
	x := make([]float64, features)
	for range n {
		for j := range x {
			x[j] = r.NormFloat64() / math.Sqrt(float64(j+1))
		}
		x[0] = 0
		if rest := convex.Norm(x); rest > 0 {
			for j := range x {
				x[j] *= t.norm / rest / math.Sqrt2
			}
		}
		x[0] = t.norm / math.Sqrt2
		t.rows = append(t.rows, convex.Example{Value: append([]float64(nil), x...)})
	}
	// The planted model has scores of root mean square 2, if the set contains it.
	truth := make([]float64, t.params)
	for i := range truth {
		truth[i] = r.NormFloat64()
	}
	scores, square := make([]float64, each), 0.0
	for _, e := range t.rows {
		square += math.Pow(t.scores(scores, truth, e)[0], 2) / float64(n)
	}
	for i := range truth {
		truth[i] *= 2 / math.Sqrt(square)
	}
	set.Project(truth, truth)
	for i, e := range t.rows {
		t.rows[i].Label = p.LossFacts.draw(r, t.scores(scores, truth, e))
		if err := p.loss.CheckLabel(t.rows[i].Label); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// scores writes the scores of a row: one for each class, or one.
func (t *trialRows) scores(dst, theta []float64, e convex.Example) []float64 {
	features := len(e.Value)
	for k := range dst {
		dst[k] = e.Dot(theta[k*features : (k+1)*features])
	}
	return dst
}

// draw returns a label for scores: a class with the probability that they encode, a count whose expectation has
// the score as its logarithm, or for numbers a value of the declared range around its middle.
func (f LossFacts) draw(r *rand.Rand, scores []float64) float64 {
	low, high := f.labels[0], f.labels[0]
	for _, y := range f.labels {
		low, high = min(low, y), max(high, y)
	}
	switch s := scores[0]; convex.TraitsOf(f.loss.Name()).Labels {
	case convex.TwoClasses:
		if r.Float64() < 1/(1+math.Exp(-s)) {
			return 1
		}
		return -1
	case convex.ManyClasses: // the largest after Gumbel noise
		best, at := math.Inf(-1), 0
		for k, s := range scores {
			if v := s - math.Log(r.ExpFloat64()); v > best {
				best, at = v, k
			}
		}
		return float64(at)
	case convex.Counts: // arrivals within e^s
		count, left := 0.0, math.Exp(min(s, 6))
		for left -= r.ExpFloat64(); left > 0 && count < high; left -= r.ExpFloat64() {
			count++
		}
		return count
	default:
		return min(max((low+high)/2+(high-low)*(s+r.NormFloat64()/2)/8, low), high)
	}
}

func (t *trialRows) objective(theta []float64) (sum float64) {
	for _, e := range t.rows {
		sum += t.loss.Value(theta, e) / float64(len(t.rows))
	}
	n := convex.Norm(theta)
	return sum + t.ridge*n*n/2
}

// run returns the model of a plan.
func (t *trialRows) run(p Problem, of Proposal, r *rand.Rand) ([]float64, error) {
	plan, forecasts := &wire.Plan{Ridge: p.Ridge, Set: of.Plan.Set}, of.Forecasts
	for _, f := range of.Plan.Phases {
		plan.Phases = append(plan.Phases, &wire.Phase{Users: f.Users, Rounds: f.Rounds, Cohort: f.Cohort, Minimum: f.Minimum,
			RoundsPerUser: f.RoundsPerUser, Again: f.Again,
			Smoothing: f.Smoothing, Constants: f.Constants, Mechanism: &wire.Mechanism{Dim: uint32(t.params)}})
	}
	a, err := learner.New(plan)
	if err != nil {
		return nil, err
	}
	weights, sum := make([]float64, len(t.rows)), make([]float64, t.params)
	for i, f := range plan.Phases {
		loss := t.loss
		if f.Smoothing > 0 {
			if loss, err = convex.NewEnvelope(loss, f.Smoothing); err != nil {
				return nil, err
			}
		}
		privacy := forecasts[i].Privacy
		sd := p.encodedNorm() * math.Hypot(privacy.NoiseStd,
			privacy.RoundingStd) * math.Sqrt(float64(p.Dim)/float64(t.params))
		for round := range f.Rounds {
			if round == 0 && !f.Again || manifest.Costliest(plan, i).Stint.Rounds == 1 {
				units := f.Cohort * forecasts[i].units()
				if manifest.Costliest(plan, i).Interactive() {
					units = f.Users * forecasts[i].units()
				}
				cohort(weights, units, r)
			}
			at := a.Query().Point
			for j := range sum {
				sum[j] = sd * r.NormFloat64()
			}
			for k, e := range t.rows {
				t.add(sum, weights[k], loss, at, e, p.ClipNorm)
			}
			if err := a.Step(method.Estimate{Gradient: sum, Users: f.Cohort}); err != nil {
				return nil, err
			}
		}
	}
	return a.Model(), nil
}

// add adds weight times the clipped gradient of a row to sum. It clips a loss of linear scores on a row with
// one feature, the row's norm, and the same scores.
func (t *trialRows) add(sum []float64, weight float64, loss convex.Loss, theta []float64, e convex.Example,
	limit float64) {
	features := len(e.Value)
	for k, s := range t.scores(t.at, theta, e) {
		t.at[k] = s / t.norm
	}
	convex.ClippedGradient(loss, t.slopes, t.at, convex.Example{Value: []float64{t.norm}, Label: e.Label}, limit)
	for k, g := range t.slopes {
		e.AddTo(sum[k*features:(k+1)*features], weight*g/t.norm)
	}
}

// cohort writes the shares of m users drawn from equally likely rows: Gaussian around 1/n, never negative.
func cohort(weights []float64, m uint64, r *rand.Rand) {
	spread, sum := math.Sqrt(float64(len(weights))/float64(m)), 0.0
	for i := range weights {
		weights[i] = max(0, 1+spread*r.NormFloat64())
		sum += weights[i]
	}
	for i := range weights {
		if sum > 0 {
			weights[i] /= sum
		}
	}
}
