package sim

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// Kinds of drift of a synthetic population.
const (
	NoDrift      = "none"
	DriftJump    = "jump"    // half-way theta* becomes another one, of the same norm
	DriftTurn    = "turn"    // theta* turns towards the other one, from the first event to the last
	DriftSeasons = "seasons" // theta* swings between the two, twice
	DriftShares  = "shares"  // scores fall by 3 half-way: one class becomes rare, or numbers smaller
)

// drifts lists the kinds of drift.
func drifts() []string { return []string{NoDrift, DriftJump, DriftTurn, DriftSeasons, DriftShares} }

// Drifting yields n examples of a population that changes; with NoDrift those that Examples begins with. It refuses a
// kind that is none of Drifts.
func (s *Synthetic) Drifting(kind string, n int) (iter.Seq[convex.Example], error) {
	at, known := map[string]func(t float64) (turn, offset float64){
		NoDrift:      func(float64) (float64, float64) { return 0, 0 },
		DriftJump:    func(t float64) (float64, float64) { return math.Floor(2 * t), 0 },
		DriftTurn:    func(t float64) (float64, float64) { return t, 0 },
		DriftSeasons: func(t float64) (float64, float64) { return 0.5 - 0.5*math.Cos(4*math.Pi*t), 0 },
		DriftShares:  func(t float64) (float64, float64) { return 0, -3 * math.Floor(2*t) },
	}[kind]
	if !known {
		return nil, fmt.Errorf("drift: %q, want one of %s", kind, strings.Join(drifts(), ", "))
	}
	other := s.other()
	return func(yield func(convex.Example) bool) {
		r := rand.New(Entropy(s.cfg.Seed, "examples", 0))
		for i := range n {
			turn, offset := at(float64(i) / float64(n))
			e := convex.Example{Value: s.features(r)}
			e.Label = s.label(r, (1-turn)*e.Dot(s.truth)+turn*e.Dot(other)+offset)
			if !yield(e) {
				return
			}
		}
	}, nil
}

// First yields the first n examples.
func (s *Synthetic) First(n int) iter.Seq[convex.Example] {
	out, err := s.Drifting(NoDrift, n)
	if err != nil {
		panic(err) // a kind that is known
	}
	return out
}

// other returns the parameter that a population drifts to.
func (s *Synthetic) other() []float64 {
	r := rand.New(Entropy(s.cfg.Seed, "other truth"))
	out := make([]float64, s.cfg.Dim)
	for convex.Norm(out) == 0 {
		for i := range out {
			out[i] = r.NormFloat64()
		}
	}
	scale := s.cfg.TruthNorm / convex.Norm(out)
	for i := range out {
		out[i] *= scale
	}
	return out
}
