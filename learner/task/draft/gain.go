package draft

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/draft/publicmodel"
)

// finish encodes the public model, bounds the norm of what it makes of the sample, and tells what to expect.
func (m *modeller) finish(b *beginning) error {
	var err error
	if b.file, err = b.public.Encode(); err != nil {
		return err
	}
	rows, err := m.mapped(b)
	if err != nil {
		return err
	}
	if m.sample.labels.Kind != publicmodel.Many {
		var norms []float64
		for _, row := range rows {
			norms = append(norms, convex.Norm(row))
		}
		slices.Sort(norms)
		b.bound = significant(quantile(norms, boundShare), 3)
	}
	m.expect(b, len(rows[0]))
	return nil
}

// mapped returns the rows of the sample as the task maps them, the intercept left out.
func (m *modeller) mapped(b *beginning) (out [][]float64, err error) {
	label := m.label
	if b.label != nil {
		label = b.label
	}
	var sets []string
	if b.file != nil {
		sets = append(sets, "features.public="+hashOf(b.file))
	}
	spec, err := task.Parse([]byte(m.bare(b, label, slices.Clone[entry])+"intercept: 0\n"), sets)
	if err != nil {
		return nil, err
	}
	if spec, err = spec.WithPublic(b.file); err != nil {
		return nil, err
	}
	features, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	err = m.eachRow(features, func(_ task.Row, x convex.Example) {
		row := make([]float64, features.Dim())
		x.AddTo(row, 1)
		out = append(out, row)
	})
	return out, err
}

// expect notes the gain that is to be expected of the users' rows: the loss that the model has because its sample is
// small, less the noise of as many parameters.
func (m *modeller) expect(b *beginning, parameters int) {
	l := &m.sample.labels
	n, rows := float64(m.users), float64(len(l.Y))
	gain, deviation := m.blend.Lacking(l)
	gain, deviation = gain*n/(n+rows), deviation*n/(n+rows)
	d := float64(parameters)
	// A gradient of norm sqrt(d), where that of each parameter has variance 1 as in the loss's own metric.
	noise := d / 2 * d * math.Pow(noiseFactor/(n*epsilon), 2)
	if gain -= noise; gain <= 0 {
		b.tell("%d users are too few to make it better: expect of the task what the public model has.", m.users)
		return
	}
	what := "a log loss"
	if l.Kind == publicmodel.Numbers { // half the square of the error, standardized
		mean, _ := l.Mean(m.blend.Scores)
		slope := m.sample.std / math.Sqrt(2*mean)
		what, gain, deviation = "an error", gain*slope, deviation*slope
	}
	if gain <= deviation {
		b.tell(
			"With as many rows as there are users it would hardly have %s that is lower (by %.2g +- %.2g, less the noise): "+
				"expect little of %d users.", what, gain, deviation, m.users)
		return
	}
	b.tell("With as many rows as there are users, less the noise of %d users, it would have %s lower by %.2g +- %.2g: "+
		"expect a part of that.", m.users, what, gain, deviation)
}

// noiseFactor is the standard deviation of a mean's noise under trust shuffle, in clips over users times epsilon.
const noiseFactor = 9

// describe notes the kind of the public model and its figures out of fold.
func (m *modeller) describe(b *beginning, of string) {
	s := m.sample
	what := of
	if t := m.blend.Trees; t != nil {
		trees := fmt.Sprintf("%s, %d of %d leaves", of, m.blend.How.Trees, m.blend.How.Leaves)
		what = fmt.Sprintf("%s, and a linear model with a share of %.0f %%", trees, 100*m.blend.Share)
		if m.blend.Share == 1 {
			what = "a linear model and, without a share so far, " + trees
		}
	}
	b.tell("The task begins with %s, made of %s of the sample with their labels.", what, plural(len(s.labels.Y), "row"))
	mean, deviation := s.labels.Mean(m.blend.Scores)
	var has string
	switch s.labels.Kind {
	case publicmodel.Numbers:
		root := math.Sqrt(2*mean) * s.std
		has = fmt.Sprintf("a root mean squared error of %.4g +- %.2g", root, deviation*s.std*s.std/root)
	default:
		has = fmt.Sprintf("a log loss of %.4f +- %.4f, an accuracy of %.4f", mean, deviation,
			s.labels.Accuracy(m.blend.Scores))
	}
	b.tell("On rows that it was not made of, this public model alone has %s.", has)
	if constant := s.labels.Constant(); mean >= constant {
		has := fmt.Sprintf("a log loss of %.4f", constant)
		if s.labels.Kind == publicmodel.Numbers {
			has = fmt.Sprintf("one of %.4g", math.Sqrt(2*constant)*s.std)
		}
		b.tell("That is no better than the best constant, which has %s.", has)
	}
}

// tell adds a sentence for the file and for the user.
func (b *beginning) tell(format string, args ...any) {
	b.words = append(b.words, fmt.Sprintf(format, args...))
}
