package consent

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// askedRows are rows of a task, which the device in TypeScript reports about.
type askedRows struct {
	statisticVector
	Rows []map[string]any `json:"rows"` // events, as an application has them
}

type answeredRows struct {
	Refused string
	Norm    float64
	Scores  int
	Vector  []float64
}

// drawStatistic draws a report of a random task, and what it is asked at.
func drawStatistic(t *testing.T, seed int) (v statisticVector, events []map[string]any) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 32))
	pick := func(n int) bool { return r.IntN(n) == 0 }
	near := func(scale float64) float64 { return scale * r.NormFloat64() }
	l := lossVectors[r.IntN(len(lossVectors))]
	plan, people := "practical", pick(4)
	model := l.model
	if pick(2) {
		plan, model = "proved", fmt.Sprintf("%s, radius: 5, clip_norm: %v", l.model, []float64{1, 0.125, 4}[r.IntN(3)])
	}
	text := fmt.Sprintf(ofTwo, l.label, model, plan)
	set := []string{}
	if pick(3) {
		set = append(set, "validation.off=true")
	}
	intercept := !pick(4)
	if !intercept {
		set = append(set, "intercept=0")
	}
	if people {
		text = strings.Replace(text, "events: {format: libsvm}\nfeatures: {vector: {dimension: 2, min: -1, max: 1}}\nlabel: {",
			"events: {format: csv, header: true}\nfeatures: {columns: [{column: a, kind: numeric, min: -1, max: 1}, "+
				"{column: b, kind: numeric, min: -1, max: 1}]}\nuser: {column: who, items: 4}\nlabel: {column: y, ", 1)
		set = append(set, "privacy.unit=user")
	}
	spec, err := task.Parse([]byte(text), set)
	if err != nil {
		t.Fatalf("case %d: %v\n%s", seed, err, text)
	}
	dim, blocks, numbers := 2, 1, l.label == real || l.label == counts
	if intercept {
		dim++
	}
	if l.label == colors {
		blocks = 3
	}
	for range blocks * dim {
		v.Point = append(v.Point, near([]float64{0.1, 1, 30}[r.IntN(3)]))
	}
	if plan == "practical" {
		if v.Statistic = r.IntN(3); v.Statistic == 2 && !numbers {
			v.Statistic = 0
		}
		f := &convex.Frame{Center: []float64{near(0.3), near(0.3)}, Scale: []float64{math.Exp(near(1)), math.Exp(near(1))}, Bound: math.Exp(near(1)),
			Clip: math.Exp(near(1))}
		if f.Intercept = math.Exp(near(0.5)); !intercept {
			f.Intercept, f.Center = 0, []float64{0, 0}
		}
		switch {
		case v.Statistic == 2:
			f.LabelCenter, f.LabelScale, f.LabelWeight = near(0.5), math.Exp(near(1)), math.Exp(near(1))
		case pick(2) && (numbers || !intercept):
			for range dim * (dim + 1) / 2 {
				f.Whitener = append(f.Whitener, near(1))
			}
		}
		if t := convex.TraitsOf(strings.Fields(l.name)[0]); v.Statistic == 0 && pick(2) && (t.Rounded || !t.Smooth) {
			f.Smoothing = math.Exp(near(1))
		}
		if v.Statistic != 1 {
			v.Frame = f
		}
	}
	if v.Statistic != 0 {
		v.Point = nil
	} else if v.Frame == nil && pick(2) {
		v.Smoothing = math.Exp(near(2))
	}
	labels := map[string][]string{signs: {"1", "-1", "0", "1.0"}, colors: {"red", "green", " blue"}, real: {"-2", "10", "3.5", "-1e9", "0"},
		counts: {"0", "1", "7", "20", "21"}}[l.label]
	rows := 1
	if people {
		rows = 1 + r.IntN(4)
	}
	for range rows {
		row := rowVector{Label: labels[r.IntN(len(labels))]}
		if pick(8) {
			row.Label = "none"
		}
		x := []float64{near(0.7), near(0.7)}
		event := map[string]any{"y": row.Label, "label": row.Label}
		if people {
			row.Fields = map[string]string{"a": fmt.Sprint(x[0]), "b": fmt.Sprint(x[1])}
			maps.Insert(event, maps.All(map[string]any{"a": row.Fields["a"], "b": row.Fields["b"]}))
		} else {
			row.Index, row.Value = []int32{0, 1}, x
			event["index"], event["value"] = row.Index, x
		}
		v.Rows, events = append(v.Rows, row), append(events, event)
	}
	v.Name = fmt.Sprintf("case %d: %s, %s, statistic %d", seed, l.name, plan, v.Statistic)
	v.fill(t, spec)
	return v, events
}

// TestStatisticsInTypeScript: of random tasks, points, frames and rows both devices report the same, to 1e-12.
func TestStatisticsInTypeScript(t *testing.T) {
	cases := 500
	if longtest.Run(t, "10,000 reports instead of 500") {
		cases = 10_000
	}
	asked, wants := make([]askedRows, cases), make([]statisticVector, cases)
	for i := range asked {
		v, events := drawStatistic(t, i)
		asked[i], wants[i] = askedRows{v, events}, v
	}
	zero, wrong := 0, 0
	for i, got := range nodejs.Answers[askedRows, answeredRows](t, asked) {
		want := wants[i]
		close := func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }
		ok := got.Refused == "" && len(got.Vector) == len(want.Vector) && close(got.Norm, want.Norm) && got.Scores == want.Scores
		for j := 0; ok && j < len(want.Vector); j++ {
			ok = close(got.Vector[j], want.Vector[j])
		}
		if convex.Norm(want.Vector) == 0 {
			zero++
		}
		if !ok {
			t.Errorf("%s: %+v, want %v, norm %v\n%s", want.Name, got, want.Vector, want.Norm, want.Declaration)
			if wrong++; wrong > 5 {
				t.FailNow()
			}
		}
	}
	if zero > cases/4 {
		t.Errorf("%d of %d are zero", zero, cases)
	}
}
