package report_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
)

// Rows at which a point aims take no longer than others, nor than the decoy for which a device makes its ticks: on a
// real clock, with two kinds of rows interleaved at random. A row is late that takes twice the decoy's time, which is
// all of its tick.
func TestAimedRowsAreNotLate(t *testing.T) {
	if !longtest.Run(t, "gradients of many classes on a real clock") {
		return
	}
	for _, classes := range []int{100, 1000, 10_000} {
		draw := rand.New(rand.NewPCG(uint64(classes), 1))
		const features = 8
		e, err := report.NewExact(report.Config{Features: features, Loss: convex.Softmax{Classes: classes}, ClipNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		point := make([]float64, classes*features)
		for j := range classes {
			point[j*features] = 30 * draw.NormFloat64() // whoever has the first feature has scores that are far apart
			point[j*features+1] = 1e-3 * draw.NormFloat64()
		}
		if err := e.At(point, nil); err != nil {
			t.Fatal(err)
		}
		row := func(feature int, value float64) convex.Example {
			x := convex.Example{Value: make([]float64, features), Label: float64(draw.IntN(classes))}
			x.Value[feature] = value
			return x
		}
		decoy := convex.Example{Value: slices.Repeat([]float64{1}, features), Label: 1}
		e.Unit(decoy)
		begun := time.Now()
		for range 10 {
			e.Unit(decoy)
		}
		tick := 2 * time.Since(begun) / 10
		var took [2][]time.Duration
		var late [2]int
		for range 400 {
			kind := draw.IntN(2)
			x := row(1-kind, 1)
			begun := time.Now()
			e.Unit(x)
			spent := time.Since(begun)
			if took[kind] = append(took[kind], spent); spent > tick {
				late[kind]++
			}
		}
		for _, of := range took {
			slices.Sort(of)
		}
		plain, aimed := took[0], took[1]
		t.Logf("%d classes: decoy %v, others %v (late %d of %d), aimed at %v (late %d of %d)",
			classes, tick/2, plain[len(plain)/2], late[0], len(plain), aimed[len(aimed)/2], late[1], len(aimed))
		if ratio := float64(aimed[len(aimed)/2]) / float64(plain[len(plain)/2]); ratio > 1.5 || ratio < 1/1.5 {
			t.Errorf("%d classes: rows that a point aims at take %.2f times as long as others", classes, ratio)
		}
	}
}
