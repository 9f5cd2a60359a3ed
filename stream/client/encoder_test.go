package client

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
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
schedule: {users: 100}
validation: {off: true}
`

// compiled is the plain task with overrides.
func compiled(t *testing.T, sets ...string) (*task.Spec, *task.FeatureMap) {
	t.Helper()
	spec, err := task.Parse([]byte(plainTask), sets)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return spec, features
}

// zeros is an entropy source without noise: fair coins are zero, and rounding goes up.
type zeros struct{}

func (zeros) Uint64() uint64 { return 0 }

// TestPhaseDecidesWhatIsReported: in each phase a device encodes with its mechanism, and reports the gradient of the
// envelope where the phase has one.
func TestPhaseDecidesWhatIsReported(t *testing.T) {
	loss := convex.Logistic{}
	envelope, err := convex.NewEnvelope(loss, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	params := func(levels uint32) randomizer.Params {
		return randomizer.Params{Dim: 3, ClipNorm: 2, Levels: levels, Trials: 4, Coin: randomizer.Fair}
	}
	spec, features := compiled(t)
	terms := &Terms{Spec: spec, Loss: loss, Features: features, Phases: []PhaseTerms{{Params: params(1 << 20), Loss: loss}, {Params: params(1 << 16), Loss: envelope}}}
	e := newEncoder(terms, zeros{})
	x := convex.Example{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: 1}
	point := []float64{0.5, 1, -2}
	for _, phase := range []int{0, 1, 0} {
		if err := e.at(phase, point, nil); err != nil {
			t.Fatal(err)
		}
		want := make([]float64, 3)
		terms.Phases[phase].Loss.Gradient(want, point, x)
		report, err := e.draw(x, false)
		if err != nil {
			t.Fatal(err)
		}
		got := decoded(t, terms.Phases[phase].Params, report)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-3 {
				t.Errorf("phase %d: reported %v, the gradient is %v", phase, got, want)
				break
			}
		}
	}
	var plain, smooth [3]float64
	loss.Gradient(plain[:], point, x)
	envelope.Gradient(smooth[:], point, x)
	if math.Abs(plain[0]-smooth[0]) < 0.01 {
		t.Errorf("the gradients %v and %v do not tell the phases apart", plain, smooth)
	}
}

// TestMomentsAndScales: a device reports the squares of its features, clipped to their own norm, where the phase asks for them, and else
// the gradient at features times the round's scales, within the declared norm, and the scores there.
func TestMomentsAndScales(t *testing.T) {
	spec, err := task.Parse([]byte(plainTask), []string{"features.precondition={users: 10, damping: 0.01, norm: 1.25}", "norm_bound=2", "intercept=1",
		"validation.off=false", "validation.weight=0.5"})
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	card, err := spec.Scorecard(features)
	if err != nil {
		t.Fatal(err)
	}
	loss := convex.Logistic{}
	terms := &Terms{Spec: spec, Loss: loss, Features: features, Scaling: spec.Preconditioner(), Card: card, Phases: []PhaseTerms{
		{Params: randomizer.Params{Dim: 3, ClipNorm: 1.25, Levels: 1 << 20, Trials: 4, Coin: randomizer.Fair}, Moments: true},
		{Params: randomizer.Params{Dim: 6, ClipNorm: card.Joined(2), Levels: 1 << 20, Trials: 4, Coin: randomizer.Fair}, Loss: loss, Scores: 2}}}
	e := newEncoder(terms, zeros{})
	row := func(values ...float64) (x convex.Example) {
		if err := features.Map(task.Row{Index: []int32{0, 1, 2}, Value: values, Label: "1"}, &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	point := []float64{0.5, 1, -2, 0.25}
	for _, c := range []struct {
		phase  int
		x      convex.Example
		scales []float64
		want   []float64 // moments; nil: the gradient at scaled
		scaled convex.Example
	}{
		{phase: 0, x: row(0.5, -1, 0.1), want: []float64{0.25, 1, 0.01}},
		{phase: 0, x: row(1, 0, 1), want: []float64{1.25 / math.Sqrt2, 0, 1.25 / math.Sqrt2}},
		{phase: 1, x: row(0.5, -1, 0.1), scales: []float64{2, 0.5, 10}, scaled: convex.Example{Value: []float64{1, -0.5, 1, 1}, Label: 1}},
		{phase: 1, x: row(1, 1, 1), scales: []float64{10, 5, 10}, // of norm sqrt(226), cut to 2
			scaled: convex.Example{Value: []float64{20 / math.Sqrt(226), 10 / math.Sqrt(226), 20 / math.Sqrt(226), 2 / math.Sqrt(226)}, Label: 1}},
		{phase: 0, x: row(0, 0, 1), want: []float64{0, 0, 1}},
	} {
		at := point
		if c.want != nil {
			at = nil
		}
		if err := e.at(c.phase, at, c.scales); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want == nil {
			want = make([]float64, 6)
			loss.Gradient(want[:4], point, c.scaled)
			card.Write(want[4:], loss.Value(point, c.scaled), c.scaled.Dot(point) > 0)
		}
		report, err := e.draw(c.x, false)
		if err != nil {
			t.Fatal(err)
		}
		got := decoded(t, terms.Phases[c.phase].Params, report)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-3 {
				t.Errorf("phase %d, scales %v: reported %v, want %v", c.phase, c.scales, got, want)
				break
			}
		}
	}
}

// A report is the gradient, clipped to L, and the scores of the announced point after it, of norm at most w: what the accountant charges
// as one vector of norm sqrt(L^2 + w^2). The scores are of the loss also where the gradient is of its envelope.
func TestScoresComeAfterTheGradient(t *testing.T) {
	spec, features := compiled(t, "validation.off=false", "validation.weight=0.5", "model.clip_norm=0.6")
	card, err := spec.Scorecard(features)
	if err != nil {
		t.Fatal(err)
	}
	loss := convex.Logistic{}
	envelope, err := convex.NewEnvelope(loss, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	params := randomizer.Params{Dim: 5, ClipNorm: card.Joined(0.6), Levels: 1 << 20, Trials: 4, Coin: randomizer.Fair}
	terms := &Terms{Spec: spec, Loss: loss, Features: features, Card: card, Phases: []PhaseTerms{
		{Params: params, Loss: loss, Scores: 2}, {Params: params, Loss: envelope, Scores: 2}}}
	e := newEncoder(terms, zeros{})
	point := []float64{0.5, 1, -2}
	for phase, gradientOf := range []convex.Loss{loss, envelope} {
		if err := e.at(phase, point, nil); err != nil {
			t.Fatal(err)
		}
		for _, x := range []convex.Example{
			{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: 1},
			{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: -1}, // wrong by far: the gradient is clipped
			{Index: []int32{1}, Value: []float64{-0.1}, Label: 1},
		} {
			want := make([]float64, 3, 5)
			gradientOf.Gradient(want, point, x)
			convex.Clip(want, 0.6)
			score := want[3:5]
			card.Write(score, loss.Value(point, x), (x.Dot(point) > 0) == (x.Label > 0))
			report, err := e.draw(x, false)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range decoded(t, params, report) {
				if math.Abs(got-want[:5][i]) > 1e-4 {
					t.Errorf("phase %d, label %v: coordinate %d is %v, want %v", phase, x.Label, i, got, want[:5])
				}
			}
		}
		for _, invalid := range []bool{true, false} { // by the caller's word, or found by the device
			report, err := e.draw(convex.Example{Index: []int32{0}, Value: []float64{1}, Label: 0}, invalid)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range decoded(t, params, report) {
				if math.Abs(got) > 1e-4 {
					t.Errorf("phase %d: coordinate %d of an event that is none is %v, want 0", phase, i, got)
				}
			}
		}
	}
	for i, left := range e.report {
		if left != 0 {
			t.Errorf("coordinate %d of an event's report is kept", i)
		}
	}
}

// decoded is what a report without noise says.
func decoded(t *testing.T, p randomizer.Params, report []byte) []float64 {
	t.Helper()
	counts, err := p.Unpack(nil, report)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, p.Dim)
	for i, n := range counts {
		out[i] = (2*float64(n)/float64(p.Levels) - 1) * p.ClipNorm
	}
	return out
}
