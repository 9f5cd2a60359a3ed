package audits

import (
	"slices"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/audit"
)

func (f found) encoder(p randomizer.Params, entropy audit.Entropy) (audit.Encoder, error) {
	out := encoder{dim: p.Dim}
	for _, of := range []audit.Input{audit.Plus, audit.Minus} {
		out.blocks[of] = f.block(of)
	}
	var err error
	if out.one, err = f.maker(p, entropy); err != nil {
		return nil, err
	}
	c := f.crowd()
	p.Dim = c.of.Dim()
	out.crowdDim = p.Dim
	out.crowd, err = c.maker(p, entropy)
	return out, err
}

// block returns the block that the audited reporter holds on an input: f.within units that change together with the
// input, and f.others that are at Minus on each.
func (f found) block(of audit.Input) (b block.Block) {
	for i := range f.within + f.others {
		row := f.rows[of]
		if i >= f.within {
			row = f.rows[audit.Minus]
		}
		b.Rows = append(b.Rows, slices.Repeat([]convex.Example{row}, f.items)...)
		b.Ends = append(b.Ends, len(b.Rows))
	}
	return b
}

func (s scene) maker(p randomizer.Params, entropy audit.Entropy) (*report.Maker, error) {
	m, err := report.New(s.of, p, entropy)
	if err != nil {
		return nil, err
	}
	return m, m.At(s.point, s.frame)
}

// crowd returns the scene with many features and no scores, for users who report the zero vector.
func (s scene) crowd() scene {
	const features, triangle = 512, 32 // numbers of the same order
	s.of.Scores, s.of.Score, s.of.Features = 0, nil, features
	if s.of.Practical != nil {
		p := *s.of.Practical
		p.Features, p.Indicators = features, nil
		if s.of.Statistic == report.MomentMatrix {
			p.Features = triangle
		}
		s.of.Features, s.of.Practical = p.Features, &p
		if p.Intercept != 0 {
			s.of.Features++
		}
	}
	if s.of.Statistic == report.Gradient {
		s.point = make([]float64, s.of.Loss.Parameters(s.of.Features))
	}
	s.frame = wideFrame(s.of)
	return s
}

// An encoder is the client's. Nothing is a unit of a row that is none of the task's.
type encoder struct {
	one, crowd    *report.Maker
	dim, crowdDim int
	blocks        [3]block.Block
}

func (e encoder) Dim(of audit.Input) int {
	if of == audit.Nothing {
		return e.crowdDim
	}
	return e.dim
}

func (e encoder) Report(dst []byte, of audit.Input) []byte {
	if of == audit.Nothing {
		return e.crowd.Report(dst, block.Of(convex.Example{}))
	}
	return e.one.Report(dst, e.blocks[of])
}
