package sim

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
)

// SyntheticConfig describes a synthetic population.
type SyntheticConfig struct {
	Dim       int     // features, each uniform in [-1, 1]
	Loss      string  // "logistic" or "squared"
	TruthNorm float64 // norm of theta*
	Noise     float64 // squared: labels are <theta*, x> plus noise uniform in [-Noise, Noise]
	Seed      uint64  // of theta* and of the examples
}

// Synthetic is a population whose risk has a known minimiser theta*: labels follow the logistic model, or the linear one with
// independent bounded noise. The risk is the loss's, without clipping.
type Synthetic struct {
	cfg   SyntheticConfig
	loss  convex.Loss
	truth []float64
	eval  []convex.Example // for ExcessRisk under the logistic loss: features, then the intercept's
}

// evaluationPoints for ExcessRisk: its relative standard error is below 2% for every theta.
const evaluationPoints = 20000

// NewSynthetic draws theta* from the seed.
func NewSynthetic(cfg SyntheticConfig) (*Synthetic, error) {
	if cfg.Dim < 1 {
		return nil, fmt.Errorf("synthetic: dim: %d, want at least 1", cfg.Dim)
	}
	for _, f := range [...]struct {
		name  string
		value float64
	}{{"truth norm", cfg.TruthNorm}, {"noise", cfg.Noise}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return nil, fmt.Errorf("synthetic: %s: %v, want a finite number of at least 0", f.name, f.value)
		}
	}
	loss, err := convex.NewLoss(cfg.Loss)
	if err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	if cfg.Loss != "logistic" && cfg.Loss != "squared" {
		return nil, fmt.Errorf("synthetic: loss %q, want logistic or squared: of others no minimiser is known", cfg.Loss)
	}
	s := &Synthetic{cfg: cfg, loss: loss, truth: make([]float64, cfg.Dim)}
	r := rand.New(Entropy(cfg.Seed, "truth"))
	for convex.Norm(s.truth) == 0 {
		for i := range s.truth {
			s.truth[i] = r.NormFloat64()
		}
	}
	scale := cfg.TruthNorm / convex.Norm(s.truth)
	for i := range s.truth {
		s.truth[i] *= scale
	}
	if cfg.Loss == "logistic" {
		r := rand.New(Entropy(cfg.Seed, "evaluation"))
		for range evaluationPoints {
			s.eval = append(s.eval, convex.Example{Value: append(s.features(r), 1)})
		}
	}
	return s, nil
}

// Loss returns the loss whose risk theta* minimises.
func (s *Synthetic) Loss() convex.Loss { return s.loss }

// Truth returns theta*. A copy.
func (s *Synthetic) Truth() []float64 { return append([]float64(nil), s.truth...) }

// FeatureBound returns sqrt(Dim), the largest norm of a feature vector.
func (s *Synthetic) FeatureBound() float64 { return math.Sqrt(float64(s.cfg.Dim)) }

// LabelBound returns the largest absolute label.
func (s *Synthetic) LabelBound() float64 {
	if s.cfg.Loss == "logistic" {
		return 1
	}
	bound := s.cfg.Noise
	for _, t := range s.truth {
		bound += math.Abs(t)
	}
	return bound
}

// Examples yields independent examples without end, the same ones in every iteration. Each is the receiver's to keep.
func (s *Synthetic) Examples() iter.Seq[convex.Example] { return s.stream(0) }

// Take returns the first n examples.
func (s *Synthetic) Take(n int) []convex.Example { return s.sample(0, n) }

// sample returns n examples of one of many independent streams.
func (s *Synthetic) sample(stream uint64, n int) []convex.Example {
	out := make([]convex.Example, 0, n)
	if n == 0 {
		return out
	}
	for e := range s.stream(stream) {
		if out = append(out, e); len(out) == n {
			break
		}
	}
	return out
}

func (s *Synthetic) stream(stream uint64) iter.Seq[convex.Example] {
	return func(yield func(convex.Example) bool) {
		r := rand.New(Entropy(s.cfg.Seed, "examples", stream))
		for {
			e := convex.Example{Value: s.features(r)}
			e.Label = s.label(r, e.Dot(s.truth))
			if !yield(e) {
				return
			}
		}
	}
}

func (s *Synthetic) features(r *rand.Rand) []float64 {
	x := make([]float64, s.cfg.Dim)
	for i := range x {
		x[i] = 2*r.Float64() - 1
	}
	return x
}

func (s *Synthetic) label(r *rand.Rand, score float64) float64 {
	if s.cfg.Loss == "squared" {
		return score + s.cfg.Noise*(2*r.Float64()-1)
	}
	if r.Float64() < 1/(1+math.Exp(-score)) {
		return 1
	}
	return -1
}

// ExcessRisk returns the population risk of theta less that of theta*. theta has Dim weights, and may have an intercept,
// of feature 1, after them; other lengths panic. For the squared loss the value is exact, ||theta - theta*||^2/6 + c^2/2 with
// the intercept c, as features have mean 0 and covariance 1/3; for the logistic loss it is the mean, over a fixed sample of
// features, of the exact conditional excess, which is the divergence of the two label distributions.
func (s *Synthetic) ExcessRisk(theta []float64) float64 {
	if n := len(theta); n != s.cfg.Dim && n != s.cfg.Dim+1 {
		panic(fmt.Sprintf("sim: excess risk of %d parameters, want %d or one more", n, s.cfg.Dim))
	}
	var sum float64
	if s.cfg.Loss == "squared" {
		for i, t := range s.truth {
			sum += (theta[i] - t) * (theta[i] - t) / 6
		}
		for _, c := range theta[s.cfg.Dim:] {
			sum += c * c / 2
		}
		return sum
	}
	for _, e := range s.eval {
		best, at := convex.Example{Value: e.Value[:s.cfg.Dim]}, convex.Example{Value: e.Value[:len(theta)]}
		p := 1 / (1 + math.Exp(best.Dot(s.truth))) // of label -1
		for _, label := range [...]float64{-1, 1} {
			best.Label, at.Label = label, label
			sum += p * (s.loss.Value(theta, at) - s.loss.Value(s.truth, best))
			p = 1 - p
		}
	}
	return sum / evaluationPoints
}
