package method

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// Practical is the method of a practical plan: first cohorts release moments, which determine the coordinates and the
// steps of the other rounds, see package practical. All of that is post-processing of released batches. Devices clip in
// the announced coordinates and report in units of the clip, so a user's influence on a round, and its privacy cost, do
// not depend on the moments.
//
// A void round of moments is no step: the next cohort is asked. It is a step only if the same users answer all rounds.
// The model is in the declared coordinates.
type Practical struct {
	PracticalConfig
	config [sha256.Size]byte

	looks   int               // number of released looks at moments
	learned practical.Learned // from the looks; the zero value before the first
	inner   Method            // in the coordinates of learned; nil before the last look
}

// PracticalConfig configures Practical.
type PracticalConfig struct {
	Problem    practical.Problem
	Layout     practical.Layout
	Continuous string // schedule.Adaptive; "" ends
}

// NewPractical returns the method before its first look. The error names the field that does not fit.
func NewPractical(c PracticalConfig) (*Practical, error) {
	if err := c.Problem.Check(); err != nil {
		return nil, err
	}
	if c.Layout.Rounds < 1 || c.Layout.Rounds > MaxSteps {
		return nil, fmt.Errorf("practical: %d rounds, want 1 to %d", c.Layout.Rounds, uint64(MaxSteps))
	}
	out := &Practical{PracticalConfig: c}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("practical: %w", err)
	}
	h := sha256.New()
	h.Write(header{method: methodPractical}.append(nil))
	h.Write(text)
	h.Sum(out.config[:0])
	return out, nil
}

// wanted returns the number of looks before the gradients.
func (p *Practical) wanted() int {
	if p.Layout.MatrixUsers > 0 {
		return 2
	}
	return 1
}

// Query returns queries for moments first, then the inner method's, with its steps counted after the looks.
func (p *Practical) Query() Query {
	q := Query{Step: uint64(p.looks) + 1}
	if p.looks > 0 {
		frame := p.learned.Frame // a copy: the clip may change with the next step
		q.Frame = &frame
	}
	if p.inner != nil {
		of := p.inner.Query()
		q.Step, q.Point, q.Cohort = of.Step+uint64(p.looks), p.learned.Point(of.Point), of.Cohort
	}
	return q
}

// Learned returns the result of the looks; nil before the first. The caller must not change it.
func (p *Practical) Learned() *practical.Learned {
	if p.looks == 0 {
		return nil
	}
	return &p.learned
}

// Baseline returns the first look's scores of the best constant; nil before it.
func (p *Practical) Baseline() *practical.Baseline {
	if p.looks == 0 {
		return nil
	}
	out := p.Problem.Baseline(&p.learned)
	return &out
}

// Step consumes an estimate of moments, or gives the estimate of a gradient to the inner method.
func (p *Practical) Step(e Estimate) error {
	if p.inner != nil {
		return p.descend(e)
	}
	if err := validateEstimate(e, len(e.Gradient)); err != nil {
		return err
	}
	var learned practical.Learned
	var err error
	if sd := math.Sqrt(e.PrivacyVariance + e.RoundingVariance); p.looks == 0 {
		learned, err = p.Problem.First(p.Layout, e.Gradient, sd)
	} else {
		unit, mean := p.learned.Frame.Clip, slices.Clone(e.Gradient)
		for i := range mean {
			mean[i] *= unit
		}
		learned, err = p.Problem.Second(p.learned, mean, sd*unit)
	}
	if err != nil {
		return fmt.Errorf("step: %w", err)
	}
	var inner Method
	if p.looks+1 == p.wanted() {
		if inner, err = p.begin(&learned); err != nil {
			return fmt.Errorf("step: %w", err)
		}
	}
	p.learned, p.inner = learned, inner
	p.looks++
	return nil
}

// descend converts a reported gradient into the inner method's coordinates and steps.
func (p *Practical) descend(e Estimate) error {
	at := p.inner.Query().Point
	if err := validateEstimate(e, len(at)); err != nil {
		return err
	}
	e.Gradient = p.learned.Gradient(e.Gradient, at, p.Problem.Ridge, p.Problem.Intercept)
	unit := p.learned.Frame.Clip * p.learned.Weight
	e.PrivacyVariance *= unit * unit
	e.RoundingVariance *= unit * unit
	p.learned.Shrink(e.Gradient, e.PrivacyVariance+e.RoundingVariance)
	if err := p.inner.Step(e); err != nil {
		return err
	}
	if b, adapts := p.inner.(*Bank); adapts {
		p.reclip(&p.learned, b)
	}
	return nil
}

// reclip sets the clip of a bank's next rounds.
func (p *Practical) reclip(l *practical.Learned, b *Bank) {
	l.Frame.Clip = p.Problem.StreamClip(p.Layout, l, b.cohort*max(1, p.Layout.Units), b.residual)
}

// Announce sets the cohort of a bank's next round, and the clip for that cohort. It does nothing for other methods.
func (p *Practical) Announce(cohort uint64) {
	if b, adapts := p.inner.(*Bank); adapts {
		b.announce(cohort)
		p.reclip(&p.learned, b)
	}
}

// Tracking returns how a bank follows its stream; nil for other methods, and before its first round.
func (p *Practical) Tracking() *Tracking {
	if b, adapts := p.inner.(*Bank); adapts {
		return b.Tracking()
	}
	return nil
}

// begin returns the inner method, which consumes gradients.
func (p *Practical) begin(l *practical.Learned) (Method, error) {
	dim, set := len(l.Start), convex.Set(convex.Ball{R: convex.MaxScale})
	if l.Set.Kind != "" {
		var err error
		if set, err = l.Set.New(dim); err != nil {
			return nil, err
		}
	}
	start := make([]float64, dim)
	set.Project(start, l.Start)
	if l.Stream != nil {
		known := 0.0
		if p.Problem.Start != nil {
			known = p.Problem.StartVariance(l)
		}
		b, err := NewBank(BankConfig{Dim: dim, Blocks: p.Problem.Blocks(), Lone: p.Problem.Intercept == 0, Set: set,
			Start: start, Stream: *l.Stream,
			Layout: p.Layout, Users: p.Problem.Users, Known: known})
		if err == nil {
			p.reclip(l, b)
		}
		return b, err
	}
	steps := p.Layout.Rounds
	step, v := l.Step, 2/l.Step
	if p.Layout.Method == practical.Acceleration {
		step, v = 1/l.Curvature, l.Curvature
	}
	if p.Layout.Method == practical.Acceleration {
		return newGuarded(PAGDConfig{Dim: dim, Set: set, Start: start, Steps: steps, V: v}, l.Trust)
	}
	return newTail(tailConfig{dim: dim, set: set, start: start, steps: steps, stepSize: step, average: min(2, steps)})
}

// Skip skips a void round. It refuses to skip moments of users who answer nothing else, because other users can be
// asked. If the same users answer all rounds, a void look counts as one with infinite noise: all features keep one
// scale, and the method learns little.
func (p *Practical) Skip() error {
	if p.inner != nil {
		return p.inner.Skip()
	}
	if !p.Problem.Even || !p.Problem.Interactive {
		return fmt.Errorf("step: moments cannot be passed over")
	}
	dim := p.Problem.MomentsDim()
	if p.looks > 0 {
		dim = p.Problem.MatrixDim()
	}
	return p.Step(Estimate{Gradient: make([]float64, dim), Users: 1, PrivacyVariance: convex.MaxScale * convex.MaxScale})
}

// Done reports whether the method is done.
func (p *Practical) Done() bool { return p.inner != nil && p.inner.Done() }

// Model returns the inner method's model in the declared coordinates. Before the last look it returns the declared
// start, or else the set's.
func (p *Practical) Model() []float64 {
	if p.inner != nil {
		return p.learned.Model(p.inner.Model(), p.Problem.Intercept)
	}
	if p.Problem.Start != nil {
		return slices.Clone(p.Problem.Start)
	}
	out := make([]float64, p.Problem.Parameters())
	if set, err := p.Problem.Set.New(len(out)); err == nil {
		set.Start(out)
	}
	return out
}

func (p *Practical) position() uint64 {
	if p.inner == nil {
		return uint64(p.looks)
	}
	return uint64(p.looks) + p.inner.position()
}

func (p *Practical) fingerprint() [sha256.Size]byte { return p.config }

func (p *Practical) header() header {
	return header{method: methodPractical, dim: p.Problem.Parameters(), count: uint64(p.looks), config: p.config}
}

// MarshalBinary returns the state, see learner.Algorithm. After the first look the header is followed by the length of
// the learned values in 4 bytes and their JSON, and after the last look by the state of the inner method.
func (p *Practical) MarshalBinary() ([]byte, error) {
	out := p.header().append(nil)
	if p.looks == 0 {
		return out, nil
	}
	text, err := json.Marshal(p.learned)
	if err != nil {
		return nil, err
	}
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...)
	if p.inner == nil {
		return out, nil
	}
	inner, err := p.inner.MarshalBinary()
	return append(out, inner...), err
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *Practical) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, p.header())
	if err != nil {
		return err
	}
	if h.count > uint64(p.wanted()) || h.other != 0 {
		return fmt.Errorf("%w: %d rounds of moments, %d passed over", ErrState, h.count, h.other)
	}
	out := Practical{looks: int(h.count)}
	if out.looks > 0 {
		if out.learned, rest, err = p.readLearned(rest); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if out.looks < p.wanted() {
		if len(rest) > 0 {
			return fmt.Errorf("%w: %d bytes too many", ErrState, len(rest))
		}
	} else {
		clip := out.learned.Frame.Clip
		if out.inner, err = p.begin(&out.learned); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
		if err := out.inner.UnmarshalBinary(rest); err != nil {
			return err
		}
		if b, adapts := out.inner.(*Bank); adapts {
			if p.reclip(&out.learned, b); out.learned.Frame.Clip != clip {
				return fmt.Errorf("%w: clip %v, which does not follow", ErrState, clip)
			}
		}
	}
	p.looks, p.learned, p.inner = out.looks, out.learned, out.inner
	return nil
}

// readLearned reads the learned values that MarshalBinary wrote, and returns the remaining bytes.
func (p *Practical) readLearned(data []byte) (l practical.Learned, rest []byte, err error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return l, nil, fmt.Errorf("%d bytes do not hold what was learned", len(data))
	}
	n := binary.LittleEndian.Uint32(data)
	text, rest := data[4:4+n], data[4+n:]
	if err := json.Unmarshal(text, &l); err != nil {
		return l, nil, fmt.Errorf("what was learned: %w", err)
	}
	again, err := json.Marshal(l)
	if err != nil || !bytes.Equal(again, text) {
		return l, nil, fmt.Errorf("what was learned is not written as this program writes it")
	}
	return l, rest, p.Problem.CheckLearned(&l)
}
