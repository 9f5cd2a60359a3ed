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
	Loss      string  // "logistic", "squared" or "absolute"
	TruthNorm float64 // norm of theta*
	Noise     float64 // squared and absolute: labels are <theta*, x> plus noise uniform in [-Noise, Noise]
	// lambda of the term (lambda/2)||theta||^2 of the objective; above 0 it moves the optimum away from theta*
	Ridge float64
	Seed  uint64 // of theta* and of the examples
}

// Synthetic is a population with a known minimiser of the objective, the risk and a ridge: labels follow the logistic
// model, or the linear one with independent bounded noise, and theta* minimises the risk. The risk is the loss's,
// without clipping.
type Synthetic struct {
	cfg     SyntheticConfig
	loss    convex.Loss
	truth   []float64        // theta*
	optimum []float64        // of the objective; truth without a ridge
	least   float64          // of the objective on eval, at the optimum
	eval    []convex.Example // for ExcessRisk under losses other than the squared one: features, then the intercept's
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
	}{{"truth norm", cfg.TruthNorm}, {"noise", cfg.Noise}, {"ridge", cfg.Ridge}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return nil, fmt.Errorf("synthetic: %s: %v, want a finite number of at least 0", f.name, f.value)
		}
	}
	loss, err := convex.NewLoss(cfg.Loss)
	if err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	// The population is of these three by name: labels, risk and minimiser of each are formulas of its own.
	if cfg.Loss != "logistic" && cfg.Loss != "squared" && cfg.Loss != "absolute" {
		return nil, fmt.Errorf("synthetic: loss %q, want logistic, squared or absolute: of others no minimiser is known",
			cfg.Loss)
	}
	if cfg.Loss == "absolute" && cfg.Ridge > 0 && cfg.Noise == 0 {
		return nil,
			fmt.Errorf(
				"synthetic: noise 0 with a ridge, want noise above 0: the optimum of the absolute loss is computed on its smooth risk")
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
	if cfg.Loss != "squared" {
		r := rand.New(Entropy(cfg.Seed, "evaluation"))
		for range evaluationPoints {
			s.eval = append(s.eval, convex.Example{Value: append(s.features(r), 1)})
		}
	}
	s.optimum = s.minimise()
	s.least = s.objective(s.optimum)
	return s, nil
}

// Loss returns the loss of the risk that theta* minimises.
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
	if s.cfg.Loss != "logistic" {
		return score + s.cfg.Noise*(2*r.Float64()-1)
	}
	if r.Float64() < 1/(1+math.Exp(-score)) {
		return 1
	}
	return -1
}
