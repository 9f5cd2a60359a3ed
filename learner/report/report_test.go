package report_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream/wire"
)

const plainTask = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 3, clip_norm: 2}
privacy: {epsilon: 1, delta: 1e-3, trust: shuffle}
schedule: {users: 100, plan: proved}
validation: {weight: 0.5}
`

// A declared task, compiled.
type declared struct {
	*task.Spec
	features *task.FeatureMap
	card     *convex.Scorecard
}

func declare(t *testing.T, sets ...string) (d declared) {
	t.Helper()
	var err error
	if d.Spec, err = task.Parse([]byte(plainTask), sets); err != nil {
		t.Fatal(err)
	}
	if d.features, err = d.Compile(); err != nil {
		t.Fatal(err)
	}
	if d.card, err = d.Scorecard(d.features); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d declared) gradient(loss convex.Loss) report.Config {
	return report.Config{Features: d.features.Dim(), Loss: loss, ClipNorm: d.Model.ClipNorm,
		Scores: d.card.Dim(), Score: report.NewScorer(d.features, *d.card, convex.Logistic{}).Score}
}

// zeros is an entropy source without noise: fair coins are zero, and rounding goes up.
type zeros struct{}

func (zeros) Uint64() uint64 { return 0 }

// said returns the report of a row, drawn without noise.
func said(t *testing.T, c report.Config, norm float64, point []float64, frame *convex.Frame,
	row convex.Example) []float64 {
	t.Helper()
	return reported(t, c, norm, 1, point, frame, block.Of(row))
}

// reported returns the report of a block of that many units, drawn without noise.
func reported(t *testing.T, c report.Config, norm float64, units uint64, point []float64, frame *convex.Frame,
	b block.Block) []float64 {
	t.Helper()
	p := randomizer.Params{Dim: c.Dim(), ClipNorm: norm, Levels: 1 << 20, Trials: 4, Units: units, Coin: randomizer.Fair}
	m, err := report.New(c, p, zeros{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.At(point, frame); err != nil {
		t.Fatal(err)
	}
	packed := m.Report([]byte("before"), b)
	if string(packed[:6]) != "before" || len(packed) != 6+p.ReportBytes() {
		t.Fatalf("a report of %d bytes, want %d after what was there", len(packed)-6, p.ReportBytes())
	}
	counts, err := p.Unpack(nil, packed[6:])
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, p.Dim)
	for i, n := range counts {
		out[i] = (2*float64(n)/float64(p.Levels) - 1) * p.ClipNorm
	}
	return out
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-4 })
}

// TestGradientThenScores: a report is the gradient, clipped to L, and the scores of the announced point after
// it, of norm at most w: what the accountant charges as one vector of norm sqrt(L^2 + w^2). The scores are of
// the loss also where the gradient is of its envelope.
func TestGradientThenScores(t *testing.T) {
	d := declare(t, "model.clip_norm=0.6")
	loss := convex.Logistic{}
	envelope, err := convex.NewEnvelope(loss, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	point := []float64{0.5, 1, -2}
	var last [2][]float64
	for i, of := range []convex.Loss{loss, envelope} {
		for _, x := range []convex.Example{
			{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: -1}, // wrong by far: the gradient is clipped
			{Index: []int32{1}, Value: []float64{-0.1}, Label: 1},
			{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: 1},
		} {
			want := make([]float64, 3, 5)
			of.Gradient(want, point, x)
			convex.Clip(want, 0.6)
			card := want[3:5]
			d.card.Write(card, loss.Value(point, x), (x.Dot(point) > 0) == (x.Label > 0))
			last[i] = said(t, d.gradient(of), d.card.Joined(0.6), point, nil, x)
			if !near(last[i], want[:5]) {
				t.Errorf("loss %d, label %v: reported %v, want %v", i, x.Label, last[i], want[:5])
			}
		}
	}
	if math.Abs(last[0][0]-last[1][0]) < 0.01 {
		t.Errorf("%v and %v do not tell the loss from its envelope", last[0], last[1])
	}
}

// inPractice returns the task with a practical plan.
func inPractice(t *testing.T, sets ...string) declared {
	t.Helper()
	return declare(t, append([]string{"schedule.plan=practical", "schedule.algorithm=auto", "intercept=1"}, sets...)...)
}

// framed returns the configuration of reports of gradients in a practical plan.
func (d declared) framed(loss convex.Loss) report.Config {
	return report.Config{Features: d.features.Dim(), Loss: loss, ClipNorm: 1, Practical: d.Practical(d.features),
		Scores: d.card.Dim(), Score: report.NewScorer(d.features, *d.card, convex.Logistic{}).Score}
}

// TestMomentsAndFrames: a device of a practical plan reports features, squares and label, clipped together; and
// then the gradient in the round's frame, whitened, clipped, in units of the clip, and the scores there.
func TestMomentsAndFrames(t *testing.T) {
	d := inPractice(t, "model.clip_norm=0")
	row := func(values ...float64) (x convex.Example) {
		if err := d.features.Map(task.Row{Index: []int32{0, 1, 2}, Value: values, Label: "1"}, &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	base := d.framed(convex.Logistic{})
	moments, err := base.Phase(report.Moments, 0)
	if err != nil {
		t.Fatal(err)
	}
	norm := d.Practical(d.features).MomentsNorm()
	if moments.ClipNorm != norm || moments.Dim() != 7 {
		t.Errorf("moments of %d numbers within %v, want 7 within %v", moments.Dim(), moments.ClipNorm, norm)
	}
	for _, want := range [][]float64{{0.5, -1, 0.1, 0.25, 1, 0.01, 1}, {1, 1, 1, 1, 1, 1, 1}} {
		x := row(want[:3]...)
		if cut := norm / convex.Norm(want); cut < 1 {
			for i := range want {
				want[i] *= cut
			}
		}
		if got := said(t, moments, norm, nil, nil, x); !near(got, want) {
			t.Errorf("moments %v, want %v", got, want)
		}
	}
	point, loss := []float64{0.5, 1, -2, 0.25}, convex.Logistic{}
	numbers := *base.Practical
	numbers.Loss, numbers.LabelLow, numbers.LabelHigh = convex.Declaration{Name: "squared"}, -1, 1
	for _, f := range []convex.Frame{
		{Center: []float64{0.1, 0, -0.2}, Scale: []float64{2, 0.5, 10}, Intercept: 0.5, Bound: 100, Clip: 100},
		{Center: []float64{0.1, 0, -0.2}, Scale: []float64{2, 0.5, 10}, Intercept: 0.5, Bound: 1, Clip: 0.1},
		{Center: []float64{0, 0, 0}, Scale: []float64{1, 1, 1}, Intercept: 1, Bound: 1, Clip: 0.5, Whitener: []float64{1, 0,
			1, 0.5, 0, 2, 0, 0, 0, 1}},
	} {
		var u convex.Example
		f.Apply(&u, row(0.5, -1, 0.1))
		plain, want := make([]float64, 4), make([]float64, 6)
		c := base
		if f.Whitener != nil { // only numbers have one
			c.Loss, c.Practical = convex.Squared{}, &numbers
		}
		c.Loss.Gradient(plain, point, u)
		f.Whiten(want[:4], plain)
		convex.Clip(want[:4], f.Clip)
		for i := range want[:4] {
			want[i] /= f.Clip
		}
		d.card.Write(want[4:], loss.Value(point, u), u.Dot(point) > 0)
		if got := said(t, c, d.card.Joined(1), point, &f, row(0.5, -1, 0.1)); !near(got, want) {
			t.Errorf("frame %+v: reported %v, want %v", f, got, want)
		}
	}
}

// TestSmoothedInTheFrame checks that a frame smooths the loss whose slope is reported: within c of its corner
// the slope of |z - y| is (z
// - y)/c.
func TestSmoothedInTheFrame(t *testing.T) {
	d := inPractice(t, "model.clip_norm=0", "validation={off: true}")
	how := d.Practical(d.features)
	how.Loss, how.LabelLow, how.LabelHigh = convex.Declaration{Name: "absolute"}, -1, 1
	c := report.Config{Features: 4, Loss: convex.Absolute{}, ClipNorm: 1, Practical: how}
	f := convex.Frame{Center: make([]float64, 3), Scale: []float64{1, 1, 1}, Intercept: 0.5, Bound: 100, Clip: 4}
	x, point := convex.Example{Value: []float64{0.3, -0.5, 0.2, 1}, Label: 0.7}, []float64{1, 0, 0, 1}
	for _, slope := range []float64{1, 0.1 / 0.4} { // the score is 0.8
		if got, want := said(t, c, 1, point, &f, x), []float64{0.3 * slope / 4, -0.5 * slope / 4, 0.2 * slope / 4,
			0.5 * slope / 4}; !near(got, want) {
			t.Errorf("smoothed by %v: reported %v, want %v", f.Smoothing, got, want)
		}
		f.Smoothing = 0.4
	}
}

// TestMatrixInTheFrame: a report of the matrix is of the row in its frame, in units of the frame's clip.
func TestMatrixInTheFrame(t *testing.T) {
	d := inPractice(t, "model.clip_norm=0", "validation={off: true}")
	how := d.Practical(d.features)
	how.Loss, how.LabelLow, how.LabelHigh = convex.Declaration{Name: "squared"}, -1, 1
	c, err := report.Config{Features: 4, Loss: convex.Squared{}, ClipNorm: 1, Practical: how}.Phase(report.MomentMatrix, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := convex.Frame{Center: []float64{0.1, 0, 0}, Scale: []float64{2, 1, 1}, Intercept: 0.5, Bound: 100, Clip: 3,
		LabelCenter: 0.2, LabelScale: 0.5, LabelWeight: 1.5}
	x := convex.Example{Value: []float64{0.3, -0.5, 0.2, 1}, Label: 0.7}
	var u convex.Example
	f.Apply(&u, x)
	want := make([]float64, how.MatrixDim())
	how.Matrix(want, &f, u, x.Label)
	if n := convex.Norm(want); n > 3 {
		t.Fatalf("norm %v: this row was not to be clipped", n)
	}
	for i := range want {
		want[i] /= 3
	}
	if got := said(t, c, 1, nil, &f, x); !near(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// TestEveryRowIsWithinTheNorm: the encoding of any row is within the norms that are charged, and a row that is
// no event of the task is zero.
func TestEveryRowIsWithinTheNorm(t *testing.T) {
	plain, framed := declare(t), inPractice(t, "intercept=0", "model.clip_norm=0")
	base := framed.framed(convex.Logistic{})
	numbers := *base.Practical
	numbers.Loss, numbers.LabelLow, numbers.LabelHigh = convex.Declaration{Name: "squared"}, -1, 1
	regression := base
	regression.Loss, regression.Practical = convex.Squared{}, &numbers
	configs := []report.Config{plain.gradient(convex.Logistic{}), base, regression,
		{Statistic: report.Moments, Features: 3, Loss: convex.Logistic{}, ClipNorm: base.Practical.MomentsNorm(),
			Practical: base.Practical},
		{Statistic: report.MomentMatrix, Features: 3, Loss: convex.Squared{}, ClipNorm: 1, Practical: &numbers}}
	frame := convex.Frame{Center: make([]float64, 3), Scale: []float64{0.1, 10, 1}, Bound: 2, Clip: 0.7}
	whitened, matrix := frame, frame
	whitened.Whitener = []float64{1, -2, 3, 0, 5, 1e6}
	matrix.LabelScale, matrix.LabelWeight = 0.01, 2
	frames := []*convex.Frame{nil, &frame, &whitened, nil, &matrix}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.Float64Range(-1e300, 1e300),
			rapid.SampledFrom([]float64{0, 1e-300, 1e160, math.NaN(), math.Inf(1)}))
		whole := rapid.SliceOfN(number, 3, 3) // drawn often, or hardly any row would be one that is clipped
		values := rapid.OneOf(whole, whole, rapid.SliceOfN(number, 0, 4))
		i := rapid.IntRange(0, len(configs)-1).Draw(t, "reports")
		c := configs[i]
		e, err := report.NewExact(c)
		if err != nil {
			t.Fatal(err)
		}
		point := rapid.SliceOfN(rapid.Float64Range(-5, 5), 3, 3).Draw(t, "point")
		if c.Statistic != report.Gradient {
			point = nil
		}
		if err := e.At(point, frames[i]); err != nil {
			t.Fatal(err)
		}
		x := convex.Example{Value: values.Draw(t, "x"), Label: rapid.SampledFrom([]float64{-1, 1, -1, 1, -1, 1, 0,
			math.NaN()}).Draw(t, "label")}
		if rapid.Bool().Draw(t, "sparse") {
			x.Index = rapid.OneOf(rapid.Just([]int32{0, 1, 2}), rapid.SliceOfN(rapid.Int32Range(-1, 4), 0, 4)).Draw(t, "index")
		}
		got := e.Unit(x)
		at := len(got) - c.Scores
		if len(got) != c.Dim() || !(convex.Norm(got[:at]) <= c.ClipNorm) ||
			(c.Scores > 0 && !(convex.Norm(got[at:]) <= plain.card.Norm)) {
			t.Fatalf("a report of %d coordinates, norms %v and %v", len(got), convex.Norm(got[:at]), convex.Norm(got[at:]))
		}
		if c.Check(x) != nil && convex.Norm(got) != 0 {
			t.Fatalf("a row that is none says %v", got)
		}
	})
}

// TestRefuses: a configuration without sense is refused, and so is a round of other dimensions.
func TestRefuses(t *testing.T) {
	good := inPractice(t, "intercept=0", "model.clip_norm=0").framed(convex.Logistic{})
	for name, change := range map[string]func(*report.Config){
		"features":  func(c *report.Config) { c.Features = 0 },
		"loss":      func(c *report.Config) { c.Loss = nil },
		"clip norm": func(c *report.Config) { c.ClipNorm = math.NaN() },
		"statistic": func(c *report.Config) { c.Statistic = 3 },
		"scores":    func(c *report.Config) { c.Scores = 0 },
		"moments":   func(c *report.Config) { c.Statistic = report.Moments }, // with scores
		"proved":    func(c *report.Config) { c.Statistic, c.Scores, c.Score, c.Practical = report.Moments, 0, nil, nil },
		"unit":      func(c *report.Config) { c.ClipNorm = 2 },
	} {
		c := good
		change(&c)
		if _, err := report.NewExact(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	p := randomizer.Params{Dim: 4, ClipNorm: 1, Levels: 4, Trials: 4, Coin: randomizer.Fair}
	if _, err := report.New(good, p, nil); err == nil {
		t.Error("a randomizer of another dimension: accepted")
	}
	e, err := report.NewExact(good)
	if err != nil {
		t.Fatal(err)
	}
	frame := convex.Frame{Center: make([]float64, 3), Scale: []float64{1, 1, 1}, Bound: 2, Clip: 1}
	unclipped, labelled := frame, frame
	unclipped.Clip, labelled.LabelScale, labelled.LabelWeight = 0, 1, 1
	for name, at := range map[string]struct {
		point []float64
		frame *convex.Frame
	}{"no frame": {make([]float64, 3), nil}, "a short point": {make([]float64, 2), &frame}, "no clip": {make([]float64, 3),
		&unclipped},
		"a frame of the matrix": {make([]float64, 3), &labelled}} {
		if e.At(at.point, at.frame) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := e.At(make([]float64, 3), &frame); err != nil {
		t.Error(err)
	}
}

func BenchmarkReport(b *testing.B) {
	const dim = 123
	c := report.Config{Features: dim, Loss: convex.Logistic{}, ClipNorm: 1}
	m, err := report.New(c, randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 64, Trials: 40, Coin: randomizer.Fair}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := m.At(make([]float64, dim), nil); err != nil {
		b.Fatal(err)
	}
	row := convex.Example{Value: []float64{1, 1, 1, 1}, Index: []int32{1, 20, 40, 100}, Label: 1}
	for name, x := range map[string]convex.Example{"a row": row, "none": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var packed []byte
			for b.Loop() {
				packed = m.Report(packed[:0], block.Of(x))
			}
		})
	}
}

// TestStatisticsAreThoseOfThePlan: a phase's statistic travels as a number: every one that a plan may name has
// its row, and no other has.
func TestStatisticsAreThoseOfThePlan(t *testing.T) {
	base := report.Config{Features: 3, Loss: convex.Logistic{}, ClipNorm: 1,
		Practical: &practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: 3, Bound: 1, LabelLow: -1,
			LabelHigh: 1, Users: 100}}
	names := map[string]bool{}
	for n, word := range wire.Statistic_name {
		s := report.Statistic(n)
		c, err := base.Phase(s, 0)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		if _, err := report.NewExact(c); err != nil || c.Statistic != s {
			t.Errorf("%s: a phase of %v: %v", word, c.Statistic, err)
		}
		names[s.String()] = true
	}
	if want := map[string]bool{"gradients": true, "moments": true, "second-moment matrices": true}; !maps.Equal(names,
		want) {
		t.Errorf("statistics %v: want %v", names, want)
	}
	if _, err := base.Phase(report.Statistic(len(wire.Statistic_name)), 0); err == nil {
		t.Error("a phase of a statistic that no plan can name")
	}
	base.Practical = nil
	if _, err := base.Phase(report.Moments, 0); err == nil {
		t.Error("a phase of moments in a proved plan")
	}
}

// A counted loss counts what is asked of it.
type counted struct {
	convex.Loss
	gradients *int
}

func (c counted) Gradient(dst, theta []float64, e convex.Example) {
	*c.gradients++
	c.Loss.Gradient(dst, theta, e)
}

// TestRowsThatAreNoneTakeARowsWork: a row that is none of the task's takes a row's work: its gradient and its
// scores are worked out, of a row that replaces it. Otherwise the time of a report would reveal it.
func TestRowsThatAreNoneTakeARowsWork(t *testing.T) {
	fits := convex.Example{Value: []float64{1, 0.5, -1}, Label: 1}
	rows := map[string]convex.Example{"the zero example": {}, "a short one": {Value: []float64{1}, Label: 1},
		"a label of no class": {Value: fits.Value, Label: 3},
		"no number":           {Value: []float64{1, math.NaN(), 0}, Label: 1}}
	d := declare(t)
	work := func(of ...convex.Example) (gradients, scores int) {
		c := d.gradient(counted{convex.Logistic{}, &gradients})
		score := c.Score
		c.Score = func(dst, point []float64, row convex.Example) {
			scores++
			score(dst, point, row)
		}
		e, err := report.NewExact(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.At([]float64{1, -1, 0.5}, nil); err != nil {
			t.Fatal(err)
		}
		e.Unit(of...)
		return gradients, scores
	}
	for name, row := range rows {
		for _, n := range []int{1, 3} {
			wantGradients, wantScores := work(slices.Repeat([]convex.Example{fits}, n)...)
			if gradients, scores := work(slices.Repeat([]convex.Example{row}, n)...); gradients != wantGradients ||
				scores != wantScores || gradients < n || scores < n {
				t.Errorf("%d times %s: %d gradients and %d scores are worked out, %d and %d of rows that fit", n, name, gradients,
					scores, wantGradients, wantScores)
			}
		}
	}
}
