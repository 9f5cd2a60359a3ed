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
`

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
	spec, err := task.Parse([]byte(plainTask), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	terms := &Terms{Loss: loss, Features: features, Phases: []PhaseTerms{{Params: params(1 << 20), Loss: loss}, {Params: params(1 << 16), Loss: envelope}}}
	e := newEncoder(terms, zeros{})
	x := convex.Example{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: 1}
	point := []float64{0.5, 1, -2}
	for _, phase := range []int{0, 1, 0} {
		if err := e.at(phase, point); err != nil {
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
