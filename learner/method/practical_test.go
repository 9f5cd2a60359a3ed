package method_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// inPractice returns a practical plan of 1,000 users with three features and an intercept, with a matrix or without.
func inPractice(loss convex.Declaration, matrix bool, rounds uint64) *wire.Plan {
	p := &practical.Problem{Loss: loss, Features: 3, Indicators: []bool{false, true, false}, Bound: 2, Intercept: 1,
		LabelLow: -1, LabelHigh: 1, Users: 1000}
	plan := &wire.Plan{Practical: manifest.WirePractical(p)}
	plan.Practical.Unit = 5
	look := func(s wire.Statistic, dim int) {
		plan.Phases = append(plan.Phases, &wire.Phase{Statistic: s, Users: 100, Rounds: 1, Cohort: 100, RoundsPerUser: 1,
			Mechanism: &wire.Mechanism{Dim: uint32(dim)}})
	}
	look(wire.Statistic_STATISTIC_MOMENTS, p.MomentsDim())
	if matrix {
		look(wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, p.MatrixDim())
	}
	plan.Phases = append(plan.Phases, &wire.Phase{Users: 100 * rounds, Rounds: rounds, Cohort: 100, RoundsPerUser: 1,
		Mechanism: &wire.Mechanism{Dim: uint32(p.Parameters())}})
	return plan
}

// estimated returns a plausible answer to a query, a function of the step.
func estimated(a learner.Algorithm, plan *wire.Plan) method.Estimate {
	q := a.Query()
	at, _ := manifest.PhaseOf(plan, q.Step)
	g := make([]float64, at.Phase.Mechanism.Dim)
	for i := range g {
		g[i] = 0.1 * math.Sin(float64(q.Step)+float64(3*i))
	}
	return method.Estimate{Gradient: g, Users: 100 + q.Step, PrivacyVariance: 1e-4, RoundingVariance: 1e-5,
		NoiseProxy: 1e-4}
}

// TestLooksComeFirst: moments come first, then their matrix where there is one, and gradients in the frame that
// these give; each phase's steps follow those of the one before, and a void round of moments is asked again.
func TestLooksComeFirst(t *testing.T) {
	for _, matrix := range []bool{false, true} {
		plan := inPractice(convex.Declaration{Name: "squared"}, matrix, 4)
		a := begin(t, plan)
		for k := uint64(1); !a.Done(); k++ {
			q := a.Query()
			at, found := manifest.PhaseOf(plan, q.Step)
			if !found || q.Step != k || len(q.Point) != at.Point() || (q.Frame != nil) != at.Framed() {
				t.Fatalf("matrix %v, step %d: query of step %d with %d values, frame %v", matrix, k, q.Step, len(q.Point), q.Frame)
			}
			if looks := at.Point() == 0; looks {
				before := bytesOf(t, a)
				if err := a.Skip(); err == nil || !bytes.Equal(before, bytesOf(t, a)) {
					t.Errorf("moments were passed over: %v", err)
				}
				if !slices.Equal(a.Model(), make([]float64, 4)) {
					t.Errorf("before the last look: model %v", a.Model())
				}
			} else if f := q.Frame; f.Check(3, true) != nil || (f.Whitener != nil) != matrix {
				t.Errorf("frame %+v", f)
			}
			if err := a.Step(estimated(a, plan)); err != nil {
				t.Fatal(err)
			}
		}
		if want := plan.Phases[len(plan.Phases)-1].Rounds; learner.LearnedOf(a) == nil || a.Step(estimated(a, plan)) == nil {
			t.Errorf("after %d rounds: a further step", want)
		}
	}
}

// TestModelIsInDeclaredCoordinates: the model is the method's in the declared coordinates: a row has the score
// that the frame gives it at the point.
func TestModelIsInDeclaredCoordinates(t *testing.T) {
	plan := inPractice(convex.Declaration{Name: "logistic"}, false, 5)
	a := begin(t, plan)
	for range 3 {
		if err := a.Step(estimated(a, plan)); err != nil {
			t.Fatal(err)
		}
	}
	f := *a.Query().Frame
	f.Bound = 1e9
	row := convex.Example{Value: []float64{0.3, 1, -0.7, 1}, Label: 1}
	var u convex.Example
	f.Apply(&u, row)
	w := f.Unfold(a.Model(), 1)
	if got, want := row.Dot(a.Model()), u.Dot(w); math.Abs(got-want) > 1e-12 || got == 0 {
		t.Errorf("score %v, in the frame %v", got, want)
	}
}

// TestVoidLooksOfEvenRounds: where the same silos answer all rounds nobody is left for a void look: it is
// passed over as noise without end, and gradients follow in a frame that devices accept.
func TestVoidLooksOfEvenRounds(t *testing.T) {
	for _, name := range []string{"logistic", "squared"} {
		p := practical.Problem{Loss: convex.Declaration{Name: name}, Features: 3, Bound: 2, Intercept: 1, LabelLow: -1,
			LabelHigh: 1, Users: 1000, Even: true}
		layout := practical.Layout{MomentUsers: 1000, Rounds: 2, Unit: 1}
		looks := 1
		if name == "squared" {
			layout.MatrixUsers, layout.Method, looks = 1000, practical.Descent, 2
		}
		oneLook := func() *method.Practical {
			a, err := method.NewPractical(method.PracticalConfig{Problem: p, Layout: layout})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := oneLook(); a.Skip() == nil {
			t.Error("moments of new rows were passed over")
		}
		p.Interactive = true
		a := oneLook()
		for k := range looks {
			if err := a.Skip(); err != nil || a.Query().Step != uint64(k+2) {
				t.Fatalf("%s: look %d passed over: step %d, %v", name, k+1, a.Query().Step, err)
			}
			b, state := oneLook(), bytesOf(t, a)
			if err := b.UnmarshalBinary(state); err != nil || !bytes.Equal(bytesOf(t, b), state) {
				t.Errorf("%s: after %d void looks: %v", name, k+1, err)
			}
		}
		for range 2 {
			q := a.Query()
			if err := p.CheckFrame(q.Frame, false); err != nil || len(q.Point) != 4 {
				t.Fatalf("%s: point %v, %v", name, q.Point, err)
			}
			if err := a.Step(method.Estimate{Gradient: []float64{0.1, -0.1, 0.2, 0.3}, Users: 20}); err != nil {
				t.Fatal(err)
			}
		}
		if m := a.Model(); !a.Done() || !(convex.Norm(m) > 0) || math.IsInf(convex.Norm(m), 0) {
			t.Errorf("%s: model %v", name, m)
		}
	}
}

// TestResumePractical: k steps, a restart and m steps are k+m steps, wherever the cut falls; with an end and
// without.
func TestResumePractical(t *testing.T) {
	for _, how := range []wire.Continuous{wire.Continuous_CONTINUOUS_NO, wire.Continuous_CONTINUOUS_ADAPTIVE} {
		for _, matrix := range []bool{false, how == wire.Continuous_CONTINUOUS_NO} {
			plan := inPractice(convex.Declaration{Name: "huber", Width: 0.2}, matrix, 4)
			if plan.Continuous = how; how != wire.Continuous_CONTINUOUS_NO {
				last := plan.Phases[len(plan.Phases)-1]
				last.Minimum, last.Top = 10, last.Cohort
			}
			whole := begin(t, plan)
			var states [][]byte
			for range 6 {
				states = append(states, bytesOf(t, whole))
				if whole.Done() {
					break
				}
				if err := whole.Step(estimated(whole, plan)); err != nil {
					t.Fatal(err)
				}
			}
			for cut, state := range states[:len(states)-1] {
				a := begin(t, plan)
				if err := a.UnmarshalBinary(state); err != nil {
					t.Fatalf("after %d steps: %v", cut, err)
				}
				if err := a.Step(estimated(a, plan)); err != nil || !bytes.Equal(bytesOf(t, a), states[cut+1]) {
					t.Errorf("continuous %v, matrix %v: resumed after %d steps, another state: %v", how, matrix, cut, err)
				}
			}
		}
	}
}

// TestImpossiblePracticalStates: a state that this plan cannot have come to is refused, and changes nothing.
func TestImpossiblePracticalStates(t *testing.T) {
	plan := inPractice(convex.Declaration{Name: "squared"}, true, 4)
	a := begin(t, plan)
	for range 4 {
		if err := a.Step(estimated(a, plan)); err != nil {
			t.Fatal(err)
		}
	}
	state := bytesOf(t, a)
	length := binary.LittleEndian.Uint32(state[54:])
	other := inPractice(convex.Declaration{Name: "squared"}, true, 4)
	other.Practical.Unit = 6
	if err := begin(t, other).UnmarshalBinary(state); err == nil {
		t.Error("a state of another unit was taken")
	}
	for name, spoil := range map[string]func(s []byte) []byte{
		"more looks":     func(s []byte) []byte { s[6] = 3; return s },
		"fewer looks":    func(s []byte) []byte { s[6] = 1; return s },
		"no looks":       func(s []byte) []byte { s[6] = 0; return s },
		"passed over":    func(s []byte) []byte { s[14] = 1; return s },
		"cut":            func(s []byte) []byte { return s[:56] },
		"a long length":  func(s []byte) []byte { binary.LittleEndian.PutUint32(s[54:], 1<<31); return s },
		"another length": func(s []byte) []byte { binary.LittleEndian.PutUint32(s[54:], length-1); return s },
		"more JSON":      func(s []byte) []byte { return slices.Replace(s, 58, 59, []byte("{ ")...) },
		"no scale":       func(s []byte) []byte { return bytes.Replace(s, []byte(`"scale":[`), []byte(`"scale":[0.1,`), 1) },
		"no method":      func(s []byte) []byte { return s[:58+length] },
	} {
		b := begin(t, plan)
		before := bytesOf(t, b)
		if err := b.UnmarshalBinary(spoil(slices.Clone(state))); err == nil || !bytes.Equal(before, bytesOf(t, b)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPracticalSurvivesAnyRelease: whatever is released, there is a next query that devices accept, or an error
// that changes nothing.
func TestPracticalSurvivesAnyRelease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"logistic", "softmax", "squared", "quantile", "poisson", "hinge"}).Draw(t, "loss")
		loss := convex.Declaration{Name: name}
		switch name {
		case "softmax":
			loss.Classes = 3
		case "quantile":
			loss.Level = 0.9
		case "poisson":
			loss.ScoreBound, loss.MaxCount = 5, 100
		}
		plan := inPractice(loss, name == "squared" || name == "quantile" || name == "poisson", 3)
		if name == "poisson" {
			plan.Practical.LabelLow, plan.Practical.LabelHigh = 0, 100
		}
		a := begin(t, plan)
		number := rapid.OneOf(rapid.Float64Range(-2, 2), rapid.Float64(), rapid.SampledFrom([]float64{0, 1e300, -1e300,
			1e-300, math.NaN(), math.Inf(1)}))
		noise := rapid.OneOf(rapid.Just(0.), rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e300))
		for range 8 {
			if a.Done() {
				break
			}
			before, q := bytesOf(t, a), a.Query()
			if q.Frame != nil {
				at, _ := manifest.PhaseOf(plan, q.Step)
				if err := manifest.Practical(plan).CheckFrame(q.Frame, at.Point() == 0); err != nil {
					t.Fatalf("devices refuse the frame of step %d: %v", q.Step, err)
				}
			}
			e := estimated(a, plan)
			for i := range e.Gradient {
				e.Gradient[i] = number.Draw(t, "released")
			}
			e.PrivacyVariance = noise.Draw(t, "noise")
			if err := a.Step(e); err != nil {
				if !bytes.Equal(before, bytesOf(t, a)) {
					t.Fatalf("an error that changed something: %v", err)
				}
				continue
			}
			for _, x := range a.Model() {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("model %v", a.Model())
				}
			}
		}
	})
}
