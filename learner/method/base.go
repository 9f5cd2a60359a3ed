package method

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// base holds the configuration and the progress that all methods have.
type base struct {
	method  byte
	set     convex.Set
	start   []float64
	steps   uint64 // planned; a limit if endless
	endless bool
	ridge   float64
	config  [sha256.Size]byte // of the configuration, the start included

	taken, skipped uint64 // steps with an estimate and without one, together at most steps
}

const (
	// MaxDim is the largest length of theta: it keeps a state under the 4 GiB that one value of a store may have.
	MaxDim = 1 << 27
	// MaxSteps is the largest number of steps: it keeps products of step counts exact in float64 comparisons.
	MaxSteps = 1 << 40
)

// settings are the fields that every configuration has.
type settings struct {
	dim     int
	set     convex.Set
	start   []float64 // nil: the set's
	steps   uint64
	endless bool
	ridge   float64
}

// newBase checks the settings; constants are the method's own numbers, which its state must agree on.
func newBase(method byte, s settings, constants ...float64) (base, error) {
	if s.dim < 1 || s.dim > MaxDim {
		return base{}, fmt.Errorf("dim: %d, want 1 to %d", s.dim, MaxDim)
	}
	if s.set == nil {
		return base{}, fmt.Errorf("set: missing, want a constraint set such as convex.Ball")
	}
	if r := s.set.Radius(); !(r > 0) || math.IsInf(r, 0) {
		return base{}, fmt.Errorf("radius: %v, want a finite number above 0", r)
	}
	if s.endless {
		s.steps = MaxSteps
	}
	if s.steps < 1 || s.steps > MaxSteps {
		return base{}, fmt.Errorf("steps: %d, want 1 to %d", s.steps, uint64(MaxSteps))
	}
	if !(s.ridge >= 0) || math.IsInf(s.ridge, 0) {
		return base{}, fmt.Errorf("ridge: %v, want a finite number of at least 0", s.ridge)
	}
	at := make([]float64, s.dim)
	s.set.Start(at)
	if s.start != nil {
		if len(s.start) != s.dim {
			return base{}, fmt.Errorf("start: dimension %d, want %d", len(s.start), s.dim)
		}
		copy(at, s.start)
	}
	if !s.set.Contains(at) {
		return base{}, fmt.Errorf("start: outside the constraint set of radius %v", s.set.Radius())
	}
	b := base{method: method, set: s.set, start: at, steps: s.steps, endless: s.endless, ridge: s.ridge}
	b.config = b.hash(constants)
	return b, nil
}

// hash returns a hash that binds a state to its configuration. The set is represented by the projections of a far point
// and its mirror image.
func (b *base) hash(constants []float64) (out [sha256.Size]byte) {
	h := sha256.New()
	word := func(w uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, w)) }
	vector := func(x ...float64) { h.Write(AppendFloats(make([]byte, 0, 8*len(x)), x...)) }
	h.Write([]byte{stateVersion, b.method, bit(b.endless)})
	word(uint64(len(b.start)))
	word(b.steps)
	word(uint64(len(constants)))
	vector(constants...)
	vector(b.ridge, b.set.Radius())
	far, at := make([]float64, len(b.start)), make([]float64, len(b.start))
	for _, sign := range [...]float64{1, -1} {
		for i := range far {
			far[i] = sign * b.set.Radius() * float64(1+i%3)
			sign = -sign
		}
		b.set.Project(at, far)
		vector(at...)
	}
	vector(b.start...)
	h.Sum(out[:0])
	return out
}

func bit(x bool) byte {
	if x {
		return 1
	}
	return 0
}

// Done reports whether all planned steps were taken or skipped. An endless method is never done.
func (b *base) Done() bool { return !b.endless && b.position() == b.steps }

// Skip uses up one step without an estimate, see learner.Algorithm.
func (b *base) Skip() error {
	if b.position() == b.steps {
		return errDone(b.steps)
	}
	b.skipped++
	return nil
}

func (b *base) position() uint64 { return b.taken + b.skipped }

func (b *base) fingerprint() [sha256.Size]byte { return b.config }

// query returns a query for the gradient at a point, whose memory it keeps.
func (b *base) query(point []float64) Query {
	return Query{Step: min(b.position()+1, b.steps), Point: point}
}

// validate refuses an estimate that cannot be used.
func (b *base) validate(e Estimate) error {
	if b.position() == b.steps {
		return errDone(b.steps)
	}
	return validateEstimate(e, len(b.start))
}

// gradient returns the estimate plus the gradient of the ridge at the queried point.
func (b *base) gradient(e Estimate, point []float64) []float64 {
	g := slices.Clone(e.Gradient)
	if b.ridge > 0 {
		for i, x := range point {
			g[i] += float64(b.ridge * x)
		}
	}
	return g
}

func errDone(steps uint64) error { return fmt.Errorf("step: all %d steps were taken", steps) }

func errOverflow() error {
	return fmt.Errorf("step: the update overflows; the estimate is far outside what the clip norm allows")
}

func finite(x []float64) bool {
	n := convex.Norm(x)
	return !math.IsNaN(n) && !math.IsInf(n, 0)
}
