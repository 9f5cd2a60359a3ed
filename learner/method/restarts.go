package method

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// restarts runs one method after another on disjoint users, each starting from the model of the one before:
// Theorem 4.8 of Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022, for
// strongly convex losses. A stage that ends at risk r is within sqrt(2r/lambda) of the optimum in the mean; the
// next stage is planned for that distance.
//
// The constraint set is the same in all stages. The theorem's bounds depend on the distance of a stage's start and not
// on the diameter of the set, so cutting the set down to a ball around the start would gain nothing in them, and could
// cut off the optimum, which is near in the mean alone.
//
// The model of Restarts is the current stage's.
type restarts struct {
	series series
	dim    int
	set    convex.Set
	first  []float64 // where the first stage starts
	config [sha256.Size]byte

	at    uint64 // finished stages, which is the index of the current one
	start []float64
	inner Method
}

// A Stage is the configuration of a method, to be run from any start: PSGDConfig, PAGDConfig, StreamConfig or
// EpochsConfig. The last two never end, so they come last. Start is used in the first stage alone.
type Stage interface {
	// Begin returns the method at a start; nil means the set's own.
	Begin(start []float64) (Method, error)
	length() uint64 // steps; 0: endless
}

// A series is the sequence of the stages of Restarts.
type series interface {
	count() uint64          // 0: endless
	stage(k uint64) Stage   // from 0
	before(k uint64) uint64 // steps of the stages before k
}

// RestartsConfig configures Restarts.
type RestartsConfig struct {
	Dim    int        // length of theta, of every stage
	Set    convex.Set // constraint set, of every stage
	Start  []float64  // in Set; nil means Set's own
	Stages []Stage
}

// NewRestarts returns the first stage at its start. The error names the stage and the field that does not fit.
func NewRestarts(c RestartsConfig) (*restarts, error) {
	var total uint64
	for k, s := range c.Stages {
		n := s.length()
		if n == 0 && k < len(c.Stages)-1 {
			return nil, fmt.Errorf("restarts: stage %d never ends, and is not the last", k+1)
		}
		if total += n; total > MaxSteps {
			return nil, fmt.Errorf("restarts: more than %d steps", uint64(MaxSteps))
		}
	}
	if len(c.Stages) == 0 {
		return nil, fmt.Errorf("restarts: no stages")
	}
	return newRestarts(c.Dim, c.Set, c.Start, listed(c.Stages), uint64(len(c.Stages)))
}

// newRestarts begins a series whose stages from distinct on are alike.
func newRestarts(dim int, set convex.Set, start []float64, s series, distinct uint64) (*restarts, error) {
	b, err := newBase(methodRestarts, settings{dim: dim, set: set, start: start, endless: true})
	if err != nil {
		return nil, fmt.Errorf("restarts: %w", err)
	}
	out := &restarts{series: s, dim: dim, set: set, first: b.start, start: b.start}
	h := sha256.New()
	h.Write(b.config[:])
	h.Write(binary.LittleEndian.AppendUint64(nil, s.count()))
	for k := range distinct {
		one, err := s.stage(k).Begin(b.start)
		if err != nil {
			return nil, fmt.Errorf("stage %d: %w", k+1, err)
		}
		if got := len(one.Query().Point); got != dim {
			return nil, fmt.Errorf("stage %d: dimension %d, want %d", k+1, got, dim)
		}
		f := one.fingerprint()
		h.Write(f[:])
		if k == 0 {
			out.inner = one
		}
	}
	h.Sum(out.config[:0])
	return out, nil
}

// Query returns the current stage's query, with steps counted over all stages.
func (r *restarts) Query() Query {
	q := r.inner.Query()
	q.Step += r.series.before(r.at)
	return q
}

// Done reports whether the last stage is done.
func (r *restarts) Done() bool { return r.at+1 == r.series.count() && r.inner.Done() }

// Model returns the current stage's model.
func (r *restarts) Model() []float64 { return r.inner.Model() }

// Step takes a step of the current stage. After the stage's last step the next stage begins.
func (r *restarts) Step(e Estimate) error {
	if r.position() >= MaxSteps {
		return errDone(MaxSteps)
	}
	if err := r.inner.Step(e); err != nil {
		return err
	}
	r.advance()
	return nil
}

// Skip uses up one step of the current stage without an estimate, see learner.Algorithm.
func (r *restarts) Skip() error {
	if r.position() >= MaxSteps {
		return errDone(MaxSteps)
	}
	if err := r.inner.Skip(); err != nil {
		return err
	}
	r.advance()
	return nil
}

func (r *restarts) advance() {
	if !r.inner.Done() || r.Done() {
		return
	}
	start := r.inner.Model()
	next, err := r.series.stage(r.at + 1).Begin(start)
	if err != nil { // every stage can begin from a point of the set, and a model is one
		panic(fmt.Sprintf("method: stage %d does not begin at the model of stage %d: %v", r.at+2, r.at+1, err))
	}
	r.at, r.start, r.inner = r.at+1, start, next
}

func (r *restarts) position() uint64 { return r.series.before(r.at) + r.inner.position() }

func (r *restarts) fingerprint() [sha256.Size]byte { return r.config }

func (r *restarts) header() header {
	return header{method: methodRestarts, dim: r.dim, count: r.at, config: r.config}
}

// MarshalBinary returns the state, see learner.Algorithm.
func (r *restarts) MarshalBinary() ([]byte, error) {
	inner, err := r.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return append(AppendFloats(r.header().append(nil), r.start...), inner...), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (r *restarts) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, r.header())
	if err != nil {
		return err
	}
	last := r.series.count() - 1 // far beyond MaxSteps if endless
	if h.count > min(last, MaxSteps) || h.other != 0 || r.series.before(h.count) >= MaxSteps || len(rest) < 8*r.dim {
		return fmt.Errorf("%w: stage %d is not one of the plan's, or the state is cut off", ErrState, h.count)
	}
	start := Floats(rest[:8*r.dim])
	if !r.set.Contains(start) || (h.count == 0 && !slices.Equal(start, r.first)) {
		return fmt.Errorf("%w: stage %d did not start where it says", ErrState, h.count+1)
	}
	inner, err := r.series.stage(h.count).Begin(start)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := inner.UnmarshalBinary(rest[8*r.dim:]); err != nil {
		return fmt.Errorf("stage %d: %w", h.count+1, err)
	}
	if inner.Done() && h.count != last {
		return fmt.Errorf("%w: stage %d is over and the next has not begun", ErrState, h.count+1)
	}
	r.at, r.start, r.inner = h.count, start, inner
	return nil
}

// listed is a series given one by one.
type listed []Stage

func (l listed) count() uint64        { return uint64(len(l)) }
func (l listed) stage(k uint64) Stage { return l[k] }

func (l listed) before(k uint64) (total uint64) {
	for _, s := range l[:k] {
		total += s.length()
	}
	return total
}
