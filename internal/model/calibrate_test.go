package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// line2 declares a task of two classes and one number.
const line2 = `
version: 1
name: line
events: {format: csv, header: true}
features: {columns: [{column: x, kind: numeric, min: -4, max: 4, scale: raw}]}
label: {column: y, positive: [yes], negative: [no]}
model: {loss: logistic, radius: 20}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

var line3 = strings.NewReplacer("positive: [yes], negative: [no]", "classes: [a, b, c]", "logistic", "softmax").Replace(line2)

// drawn returns rows whose class k has odds exp(slope_k x + shift_k).
func drawn(seed uint64, n int, classes []string, slope, shift []float64) []task.Row {
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := make([]task.Row, n)
	for i := range rows {
		x := 8*rng.Float64() - 4
		weights, total := make([]float64, len(classes)), 0.0
		for k := range classes {
			weights[k] = math.Exp(slope[k]*x + shift[k])
			total += weights[k]
		}
		k, u := 0, rng.Float64()*total
		for ; k < len(classes)-1 && u > weights[k]; k++ {
			u -= weights[k]
		}
		rows[i] = task.Row{Fields: []string{fmt.Sprint(x)}, Label: classes[k]}
	}
	return rows
}

// TestCalibrationFindsTheLine by which labels were drawn, for two classes and for three, lowers the loss of rows that it
// was not fitted on, and leaves the order of events as it is.
func TestCalibrationFindsTheLine(t *testing.T) {
	s, _ := released(t, parsed(t, line2), 2.5, -1)
	rows := drawn(1, 20_000, []string{"no", "yes"}, []float64{0, 1}, []float64{0, 0.6}) // log odds x + .6 = .4 (2.5 x - 1) + 1
	fresh := drawn(2, 20_000, []string{"no", "yes"}, []float64{0, 1}, []float64{0, 0.6})
	got, figures, err := s.Calibrate(rowsOf(rows), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(figures.Scale-0.4) > 0.02 || math.Abs(figures.Shift[0]-1) > 0.08 || got.Probabilities != ofPublic ||
		figures.After.LogLoss >= figures.Before.LogLoss || figures.After.CalibrationError > 0.02 {
		t.Errorf("%+v, probabilities %s", figures, got.Probabilities)
	}
	before, after := evaluatedOn(t, s, fresh), evaluatedOn(t, got, fresh)
	if *after.LogLoss >= *before.LogLoss-0.05 || math.Abs(*after.AUC-*before.AUC) > 1e-12 ||
		*after.CalibrationError > 0.02 || math.Abs(*after.LogLoss-figures.After.LogLoss) > 0.02 {
		t.Errorf("log loss %v -> %v, AUC %v -> %v, calibration error %v", *before.LogLoss, *after.LogLoss, *before.AUC,
			*after.AUC, *after.CalibrationError)
	}
	again, _, err := got.Calibrate(rowsOf(rows), "", nil)
	var useless *uselessError
	if !errors.As(err, &useless) && (math.Abs(again.Calibration.Scale-figures.Scale) > 1e-3) {
		t.Errorf("a second time: %+v, %v", again.Calibration, err)
	}

	s, _ = released(t, parsed(t, line3), 0, 0, 3, 0, -3, 0)
	rows = drawn(3, 20_000, []string{"a", "b", "c"}, []float64{0, 1, -1}, []float64{0, 0.5, 0})
	if got, figures, err = s.Calibrate(rowsOf(rows), "", nil); err != nil {
		t.Fatal(err)
	}
	if math.Abs(figures.Scale-1./3) > 0.02 || math.Abs(figures.Shift[1]-figures.Shift[0]-0.5) > 0.08 ||
		math.Abs(figures.Shift[2]-figures.Shift[0]) > 0.08 {
		t.Errorf("%+v", figures)
	}
	if e := evaluatedOn(t, got, rows); *e.CalibrationError > 0.02 {
		t.Errorf("calibration error %v of three classes", *e.CalibrationError)
	}
}

// TestCalibrationRefusesToEraseAModel: where labels are swapped, or tell nothing of the scores, the best line makes all
// scores equal, which lowers the log loss and is no calibration.
func TestCalibrationRefusesToEraseAModel(t *testing.T) {
	s, _ := released(t, parsed(t, line2), 2.5, 0)
	for name, rows := range map[string][]task.Row{
		"swapped":   drawn(1, 20_000, []string{"no", "yes"}, []float64{0, -2.5}, []float64{0, 0}),
		"unrelated": drawn(4, 20_000, []string{"no", "yes"}, []float64{0, 0}, []float64{0, 0}),
	} {
		if _, c, err := s.Calibrate(rowsOf(rows), "", nil); err == nil || !strings.Contains(err.Error(), "labels swapped") ||
			c.After.LogLoss >= c.Before.LogLoss {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	weak := drawn(5, 20_000, []string{"no", "yes"}, []float64{0, 0.1}, []float64{0, 0}) // a 25th of the model's slope
	if _, c, err := s.Calibrate(rowsOf(weak), "", nil); err != nil || math.Abs(c.Scale-0.04) > 0.01 {
		t.Errorf("a weak model: %+v, %v", c.Scale, err)
	}
}

func evaluatedOn(t *testing.T, s Snapshot, rows []task.Row) Evaluation {
	t.Helper()
	p, err := NewPredictor(s, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluate(rowsOf(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCalibrationSlopes compares the derivatives that the fit follows with differences of the log loss.
func TestCalibrationSlopes(t *testing.T) {
	const h = 1e-6
	for file, scores := range map[string][]float64{line2: {0.3}, line3: {0.3, -1.2, 0.7}} {
		_, p := released(t, parsed(t, file), make([]float64, 2*len(scores))...)
		f := fitting{p: p}
		for class := range max(2, len(scores)) {
			got := f.slopes(nil, scores, class)
			for k := range scores {
				up, down := append([]float64(nil), scores...), append([]float64(nil), scores...)
				up[k], down[k] = up[k]+h, down[k]-h
				if want := (logLoss(up, class) - logLoss(down, class)) / (2 * h); math.Abs(got[k]-want) > 1e-8 {
					t.Errorf("class %d, score %d: %v, want %v", class, k, got[k], want)
				}
			}
		}
	}
}

// TestCalibrateRefuses what it cannot calibrate, and a line that does not help.
func TestCalibrateRefuses(t *testing.T) {
	right, _ := released(t, parsed(t, line2), 1, 0)
	rows := drawn(4, 60, []string{"no", "yes"}, []float64{0, 1}, []float64{0, 0})
	_, figures, err := right.Calibrate(rowsOf(rows), "", nil)
	if useless := new(uselessError); !errors.As(err, &useless) || figures.After.LogLoss < figures.Before.LogLoss {
		t.Errorf("a model that is right: %v, %+v", err, figures)
	}
	if _, _, err := right.Calibrate(rowsOf(rows[:5]), "", nil); err == nil || !strings.Contains(err.Error(), "at least 10") {
		t.Errorf("five rows: %v", err)
	}
	numbered, _ := released(t, parsed(t, lossFile+"model: {radius: 5, loss: squared}\nlabel: {column: y, min: 0, max: 1}\n"), 1, 0)
	if _, _, err := numbered.Calibrate(rowsOf(nil), "", nil); err == nil || !strings.Contains(err.Error(), "no probabilities") {
		t.Errorf("numbers: %v", err)
	}
	lying := right
	lying.Calibration = &Calibration{Scale: 1}
	if _, _, err := lying.Calibrate(rowsOf(rows), "", nil); err == nil {
		t.Error("a calibration without shifts was taken")
	}
}
