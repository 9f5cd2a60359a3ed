package model

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/task"
)

// interpreted runs a model once by the definitions of its operators, as runtime.run does in a real runtime.
func interpreted(t fataler, model []byte, inputs map[string]tensor, blind bool) map[string]tensor {
	t.Helper()
	in := map[string]array{}
	for name, x := range inputs {
		a := array{dims: x.Dims}
		for i := range x.Data {
			if x.Type == "string" {
				a.texts = append(a.texts, x.Data[i].(string))
			} else {
				a.doubles = append(a.doubles, x.number(t, i))
			}
		}
		in[name] = a
	}
	out := map[string]tensor{}
	for name, a := range interpret(model, in, blind) {
		x := tensor{Dims: a.dims}
		for _, v := range a.doubles {
			x.Data = append(x.Data, jsNumber(v))
		}
		for _, v := range a.texts {
			x.Data = append(x.Data, v)
		}
		out[name] = x
	}
	return out
}

// TestONNXByDefinition: by the definitions of its operators the model scores raw events of any task as the
// predictor does, invalid ones as NaN, whatever Max and Min make of NaN.
func TestONNXByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		snapshot, p := released(t, s.spec, s.theta...)
		model, err := snapshot.ONNX()
		if err != nil {
			t.Fatal(err)
		}
		out := interpreted(t, model, tensors(t, s.spec, s.rows), rapid.Bool().Draw(t, "blind"))
		for i, row := range s.rows {
			requireSame(t, s.spec, p, row, out, i)
		}
	})
}

// A centred model was learned in coordinates (x - center) scale, of which the plain one is made: its intercept is
// large, and cancels.
type centred struct {
	spec           *task.Spec
	center, scale  []float64 // in plain declared coordinates
	weights, theta []float64 // theta is plain
	rows           []task.Row
	raw            [][]float64
}

// centredModel draws one of three columns, far from 0 and narrow, as stamps of time are, whose centres are near a
// bound.
func centredModel(t *testing.T, loss, label string, seed uint64) centred {
	t.Helper()
	const file = `
version: 1
name: centred
events: {format: csv, columns: [ms, year, x, y]}
features:
  columns:
    - {column: ms, kind: numeric, min: 1700000000000, max: 1700086400000}
    - {column: year, kind: numeric, min: 2000, max: 2030, scale: unit}
    - {column: x, kind: numeric, min: -1, max: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`
	r := rand.New(rand.NewPCG(seed, 1))
	c := centred{spec: parsed(t, file+"model: {radius: 5, "+loss+"}\nlabel: {column: y, "+label+"}\n")}
	features, err := c.spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	outputs, dim := features.Outputs(), features.Dim()
	for range dim - 1 { // the largest scale that a first cohort gives is 10
		c.center, c.scale = append(c.center, 0.9+0.1*r.Float64()), append(c.scale, 10)
	}
	c.theta = make([]float64, outputs*dim)
	for k := range outputs {
		block := c.theta[k*dim : (k+1)*dim]
		last := 1000 * r.NormFloat64() // a large intercept even where nothing cancels
		for j := range c.center {
			w := r.NormFloat64()
			c.weights = append(c.weights, w)
			block[j] = w * c.scale[j]
			last -= block[j] * c.center[j]
		}
		block[dim-1] = last / c.spec.Intercept
		c.weights = append(c.weights, 0)
	}
	coordinates := features.Coordinates()
	for range 20 {
		var raw []float64
		var fields []string
		for j, at := range c.center {
			x := ((at + r.NormFloat64()/50) - coordinates[j].Offset) / coordinates[j].Factor
			x = min(max(x, coordinates[j].Sources[0].Min), coordinates[j].Sources[0].Max)
			raw, fields = append(raw, x), append(fields, strconv.FormatFloat(x, 'g', -1, 64))
		}
		c.raw, c.rows = append(c.raw, raw), append(c.rows, task.Row{Fields: fields, Label: labelText(c.spec), Line: 1})
	}
	return c
}

// TestCentredModelsScoreTheSame: what a model learned in centred coordinates scores is what every format that it
// leaves in scores, to within 1e-6 of the spread of the scores: JSON and NumPy read back, the sum of weights and
// raw values, and the ONNX graph, here by the definitions of its operators and where there is one by a real
// runtime.
func TestCentredModelsScoreTheSame(t *testing.T) {
	runs := map[string]func(t fataler, model []byte, in map[string]tensor) map[string]tensor{
		"definition": func(t fataler, model []byte, in map[string]tensor) map[string]tensor {
			return interpreted(t, model, in, false)
		}}
	t.Run("runtime", func(t *testing.T) {
		r := startRuntime(t) // or it says that it did not
		requireCentred(t, "runtime", r.run)
	})
	for name, run := range runs {
		requireCentred(t, name, run)
	}
}

func requireCentred(t *testing.T, how string, run func(t fataler, model []byte,
	in map[string]tensor) map[string]tensor) {
	t.Helper()
	for seed, c := range []struct{ loss, label string }{
		{"loss: logistic", yesNo}, {"loss: softmax", "classes: [a, b, c]"}, {"loss: squared", "min: 0, max: 1000"},
		{"loss: hinge", yesNo},
	} {
		m := centredModel(t, c.loss, c.label, uint64(seed))
		snapshot, p := released(t, m.spec, m.theta...)
		numpy, err := snapshot.NumPy()
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]Predictor{}
		for name, data := range map[string][]byte{"json": encoded(t, snapshot), "npy": numpy} {
			s, err := Parse(data)
			if err == nil {
				read[name], err = NewPredictor(s, "")
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		model, err := snapshot.ONNX()
		if err != nil {
			t.Fatal(err)
		}
		out := run(t, model, tensors(t, m.spec, m.rows))
		var own, spread []float64 // what the model itself scores, and how far these scores spread
		dim, outputs := p.Features.Dim(), p.Features.Outputs()
		for _, row := range m.rows {
			e, valid := mapped(t, p, row)
			if !valid || e.Norm() > p.Features.Bound()*(1-1e-9) {
				t.Fatal("a row of the test is not valid, or is scaled down")
			}
			for k := range outputs {
				z, size := m.theta[(k+1)*dim-1]*m.spec.Intercept, 0.0
				for j := range m.center {
					z += m.theta[k*dim+j] * m.center[j] // the intercept in centred coordinates: exact enough, as it is of size 1000
				}
				for j := range m.center {
					part := m.weights[k*dim+j] * (e.Value[j] - m.center[j]) * m.scale[j]
					z, size = z+part, size+math.Abs(part)
				}
				own, spread = append(own, p.Features.InLabel(z)),
					append(spread, size*math.Abs(p.Features.InLabel(1)-p.Features.InLabel(0)))
			}
		}
		scale := 0.0
		for _, s := range spread {
			scale += s / float64(len(spread))
		}
		near := func(what string, i int, got float64) {
			if !(math.Abs(got-own[i]) <= 1e-6*scale) {
				t.Errorf("%s, %s (%s): score %d is %v, and %v in centred coordinates, where scores spread by %v", c.loss, what, how,
					i, got, own[i], scale)
			}
		}
		for i, row := range m.rows {
			for name, p := range read {
				var said prediction
				e, _ := mapped(t, p, row)
				p.predict(e, 0, &said)
				for k, z := range said.Scores {
					near(name, i*outputs+k, z)
				}
			}
			for k := range outputs {
				sum := snapshot.Intercept[k]
				for j, x := range m.raw[i] {
					sum += snapshot.Weights[k][j] * x
				}
				near("the sum by hand", i*outputs+k, sum)
				near("onnx", i*outputs+k, out["score"].number(t, i*outputs+k))
			}
		}
	}
}

// TestInterpreterKnowsMurmur, of public test vectors, so that hashed columns are compared with something.
func TestInterpreterKnowsMurmur(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint32
		want int64
	}{{"", 0, 0}, {"", 1, 0x514E28B7}, {"test", 0x9747b28c, 0x704b81dc}, {"Hello, world!", 0x9747b28c, 0x24884CBA}, {"aaa",
		0x9747b28c, 0x283e0130}} {
		if got := murmur(c.seed, []byte(c.text)); got != c.want {
			t.Errorf("%q of seed %x: %x, want %x", c.text, c.seed, got, c.want)
		}
	}
}
