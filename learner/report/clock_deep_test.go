package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
)

// TestAimedRowsAreNotLate: rows at which a point aims take as long as others, on a real clock, with two kinds
// of rows interleaved at random: the tick on which their report leaves has one law, for a device that makes its
// ticks for a decoy. dptest.Alike documents when it fails.
func TestAimedRowsAreNotLate(t *testing.T) {
	if !longtest.Run(t, "gradients of many classes on a real clock") {
		return
	}
	classes := map[string]int{"100 classes": 100, "1,000 classes": 1000, "10,000 classes": 10_000}
	dptest.Alike(t, []string{"100 classes", "1,000 classes", "10,000 classes"}, func(name string, pass int) (a,
		b []float64) {
		took, tick := aimed(t, classes[name], uint64(pass))
		var left [2][]float64
		for kind, of := range took {
			for _, t := range of {
				left[kind] = append(left[kind], 1+float64(t/tick))
			}
		}
		t.Logf("%s: of times alone p = %.3g", name, dptest.SameLaw(seconds(took[0]), seconds(took[1])))
		slices.Sort(took[0])
		slices.Sort(took[1])
		median := func(kind int) time.Duration { return took[kind][len(took[kind])/2] }
		t.Logf("%s: decoy %v; others %v, %d late; aimed at %v, %d late", name, tick/2,
			median(0), late(left[0]), median(1), late(left[1]))
		if ratio := float64(median(1)) / float64(median(0)); ratio > 1.5 || ratio < 1/1.5 {
			t.Errorf("%s: rows that a point aims at take %.2f times as long as others", name, ratio)
		}
		return left[0], left[1]
	})
}

func seconds(of []time.Duration) (out []float64) {
	for _, t := range of {
		out = append(out, t.Seconds())
	}
	return out
}

// late returns how many reports leave later than on the next tick.
func late(ticks []float64) (n int) {
	for _, t := range ticks {
		if t > 1 {
			n++
		}
	}
	return n
}

// aimed measures rows at which a point does not aim, and rows at which it does, and the tick that a decoy's time asks
// for at the first point, where a device measures it.
func aimed(t *testing.T, classes int, seed uint64) (took [2][]time.Duration, tick time.Duration) {
	draw := rand.New(rand.NewPCG(uint64(classes), seed))
	const features = 8
	e, err := report.NewExact(report.Config{Features: features, Loss: convex.Softmax{Classes: classes}, ClipNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	point := make([]float64, classes*features)
	at := func() {
		if err := e.At(point, nil); err != nil {
			t.Fatal(err)
		}
	}
	at()
	decoy := convex.Example{Value: slices.Repeat([]float64{1 / math.Sqrt(features)}, features), Label: 1}
	e.Unit(decoy)
	begun := time.Now()
	for range 10 {
		e.Unit(decoy)
	}
	tick = 2 * time.Since(begun) / 10
	for j := range classes {
		point[j*features] = 30 * draw.NormFloat64() // rows with the first feature have scores that are far apart
		point[j*features+1] = 1e-3 * draw.NormFloat64()
	}
	at()
	for range 400 {
		kind := draw.IntN(2)
		x := convex.Example{Value: make([]float64, features), Label: float64(draw.IntN(classes))}
		x.Value[1-kind] = 1
		begun := time.Now()
		e.Unit(x)
		took[kind] = append(took[kind], time.Since(begun))
	}
	return took, tick
}
