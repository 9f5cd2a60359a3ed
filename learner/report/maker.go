package report

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// A Maker draws the reports of a phase. It owns scratch memory and an entropy source; one goroutine uses it.
type Maker struct {
	exact  *Exact
	params randomizer.Params
	sum    *randomizer.VectorSum
	counts []uint32
}

// New returns the Maker of a phase whose reports have the parameters p. A nil entropy is the system's, which is
// required for serving users.
func New(c Config, p randomizer.Params, entropy rand.Source) (*Maker, error) {
	exact, err := NewExact(c)
	if err != nil {
		return nil, err
	}
	if p.Dim != c.Dim() {
		return nil, fmt.Errorf("report: randomizer of %d coordinates: want %d", p.Dim, c.Dim())
	}
	if p.Minimizer != (c.Prox != nil) {
		return nil, fmt.Errorf("report: minimizer %t: want it of a prox, and of nothing else", p.Minimizer)
	}
	if c.Prox != nil && p.ClipNorm != c.Norm() {
		return nil, fmt.Errorf("report: clip norm %v of a minimiser: want %v", p.ClipNorm, c.Norm())
	}
	sum, err := randomizer.NewVectorSum(p, entropy)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return &Maker{exact: exact, params: p, sum: sum}, nil
}

// At moves to the point and the frame of a round, like Exact.At. It returns the errors of CheckProx.
func (m *Maker) At(point []float64, frame *convex.Frame) error {
	if c := m.exact.c; c.Prox != nil {
		if err := c.CheckProx(max(1, m.params.Units), convex.Norm(point)); err != nil {
			return err
		}
	}
	return m.exact.At(point, frame)
}

// Reseed takes a fresh seed from the system, if the entropy is the system's. A caller that serves users reseeds before
// each chunk of reports: copies of the process, such as machines cloned from one snapshot, then share no noise.
func (m *Maker) Reseed() { m.sum.Reseed() }

// Report appends the report of a block in the round, packed: always Params.ReportBytes bytes. Its units are placed on
// the lattice one by one, and noise is drawn once; units that it lacks of Params.Units contribute zero. It panics if
// the block has more units. Each call is a new draw, so call it once for each user and round.
func (m *Maker) Report(dst []byte, b block.Block) []byte {
	dst, err := m.ReportUntil(context.Background(), dst, b)
	if err != nil {
		panic(fmt.Sprintf("report: %v: want at most the units and the dimension of the parameters", err))
	}
	return dst
}

// ReportUntil works like Report, but draws nothing and returns ctx's error if ctx ends during the computation of a
// minimiser, which may take minutes.
func (m *Maker) ReportUntil(ctx context.Context, dst []byte, b block.Block) ([]byte, error) {
	defer m.exact.forget()
	if err := m.add(ctx, b); err != nil {
		return nil, err
	}
	m.counts = m.sum.Draw(m.counts)
	dst = m.params.Pack(dst, m.counts)
	clear(m.counts)
	return dst, nil
}

// add places the vectors of a block on the lattice.
func (m *Maker) add(ctx context.Context, b block.Block) error {
	if m.exact.c.Prox != nil {
		if units := max(1, m.params.Units); uint64(b.Units()) > units {
			return fmt.Errorf("unit %d of a report of %d", b.Units(), units)
		}
		z, err := m.exact.minimiser(ctx, b, m.params.Units)
		if err != nil {
			return err
		}
		return m.sum.Add(z)
	}
	for i := range b.Units() {
		index, x := m.exact.unitAt(b.Unit(i)...)
		var err error
		if index == nil {
			err = m.sum.Add(x)
		} else {
			err = m.sum.AddAt(index, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
