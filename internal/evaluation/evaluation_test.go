package evaluation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestAUCIsTheShareOfOrderedPairs, by all pairs, with as many ties as there are.
func TestAUCIsTheShareOfOrderedPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "events")
		scores, positive := make([]float64, n), make([]bool, n)
		values := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "values")
		for i := range scores {
			scores[i], positive[i] = float64(rapid.IntRange(-values, values).Draw(t, "score")), rapid.Bool().Draw(t, "positive")
		}
		won, pairs := 0.0, 0.0
		for i, p := range positive {
			for j, q := range positive {
				if !p || q {
					continue
				}
				pairs++
				switch {
				case scores[i] > scores[j]:
					won++
				case scores[i] == scores[j]:
					won += 0.5
				}
			}
		}
		got, ok := AUC(slices.Clone(scores), slices.Clone(positive))
		if ok != (pairs > 0) {
			t.Fatalf("there is an area: %v, of %v pairs", ok, pairs)
		}
		if ok && math.Abs(got-won/pairs) > 1e-12 {
			t.Fatalf("%v, and %v of all pairs are in order", got, won/pairs)
		}
	})
}

// TestConfusionFigures of 10 events that a person can count.
func TestConfusionFigures(t *testing.T) {
	c := Confusion{{3, 1, 0}, {2, 2, 0}, {1, 1, 0}} // the last class is never predicted
	for k, want := range [][2]float64{{0.5, 0.75}, {0.5, 0.5}, {0, 0}} {
		near(t, fmt.Sprint("precision of ", k), c.Precision(k), want[0])
		near(t, fmt.Sprint("recall of ", k), c.Recall(k), want[1])
	}
	near(t, "macro precision", c.Macro(c.Precision), 1.0/3)
	near(t, "recall of a class without events", NewConfusion(2).Recall(0), 0)
}

// TestReliabilityByHand: two bins, and the edges 0 and 1.
func TestReliabilityByHand(t *testing.T) {
	var r Reliability
	near(t, "error of nothing", r.Error(), 0)
	for _, e := range []struct {
		p        float64
		occurred bool
	}{{0, false}, {0.05, true}, {0.95, true}, {1, true}, {1, false}} {
		r.Add(e.p, e.occurred)
	}
	// 2/5 |0.025 - 0.5| + 3/5 |2.95/3 - 2/3|
	near(t, "calibration error", r.Error(), 0.4*0.475+0.6*(2.95/3-2.0/3))
	table := r.Table()
	if len(table) != 2 || table[0].Events != 2 || table[1].Low != 0.9 || table[1].High != 1 {
		t.Fatalf("%+v", table)
	}
	near(t, "probability", table[1].Probability, 2.95/3)
	near(t, "occurred", table[1].Occurred, 2.0/3)
}

// TestReliabilityOfTheTruth: with true probabilities the error is only a sampling error. In a bin of m events
// the expected distance is at most sqrt(1/(4m)), so the mean over bins of n events is at most
// sqrt(bins/(4n)).
func TestReliabilityOfTheTruth(t *testing.T) {
	const n = 100000
	random := rand.New(rand.NewPCG(1, 2))
	var honest, bold Reliability
	for range n {
		p := random.Float64()
		occurred := random.Float64() < p
		honest.Add(p, occurred)
		bold.Add(min(1, 0.1+p*1.1), occurred)
	}
	if e, most := honest.Error(), 2*math.Sqrt(bins/(4.0*n)); e > most {
		t.Errorf("the truth has a calibration error of %v, want at most %v", e, most)
	}
	if e := bold.Error(); e < 0.08 {
		t.Errorf("probabilities that are a tenth too large have a calibration error of %v", e)
	}
}

// TestPairByHand against the formulas, written out.
func TestPairByHand(t *testing.T) {
	var p Pair
	for _, v := range [][2]float64{{1, 4}, {4, 4}, {4, 1}, {7, 7}} {
		p.Add(v[0], v[1])
	}
	// Differences 3, 0, -3, 0: variance 4.5.
	d := p.Means()
	near(t, "mean", d.Value, 0)
	near(t, "half width", d.High, 1.959963984540054*math.Sqrt(4.5/4))
	if d.Low != -d.High || d.Decided() {
		t.Errorf("%+v", d)
	}
	// Both means are 4, so both slopes are 1/4.
	near(t, "half width of the roots", p.Roots().High, d.High/4)

	var same Pair // no event differs: 0.5 events of each kind say that the two may differ by chance
	for range 18 {
		same.Add(1, 1)
	}
	d = same.Shares()
	near(t, "shares", d.Value, 0)
	// variance of the difference 1/20, of 20 events
	near(t, "half width of shares", d.High, 1.959963984540054*math.Sqrt(1.0/20/20))
	if got := same.Means(); got.High != 0 {
		t.Errorf("%+v", got)
	}
	if got := (&Pair{n: 2, second: 9, seconds: 1}).Roots(); math.IsNaN(got.Low) {
		t.Errorf("%+v of a model without error", got)
	}
}

// TestIntervalsHold: of 2,000 seeded experiments the interval holds the truth in about Confidence. The number that
// it does is binomial; alarms below 0.95 - 6 sd, of sd = sqrt(0.95 0.05/2000), would be false in one of 1e9 runs if
// coverage were 0.95, and the last case may have 0.99 and never much less than 0.95.
func TestIntervalsHold(t *testing.T) {
	const runs = 2000
	slack := 6 * math.Sqrt(Confidence*(1-Confidence)/runs)
	for _, c := range []struct {
		name   string
		events int
		draw   func(r *rand.Rand) (a, b float64)
		of     func(*Pair) Difference
		truth  float64
		most   float64
	}{
		{"means of losses that go together", 200, func(r *rand.Rand) (float64, float64) {
			shared := r.ExpFloat64()
			return shared + r.NormFloat64(), shared + 0.1 + r.NormFloat64()
		}, (*Pair).Means, 0.1, Confidence + slack},
		{"roots of mean squares", 400, func(r *rand.Rand) (float64, float64) {
			shared := r.NormFloat64()
			a, b := shared+r.NormFloat64(), shared+2*r.NormFloat64()
			return a * a, b * b
		}, (*Pair).Roots, math.Sqrt(5) - math.Sqrt2, Confidence + slack},
		{"shares, where few events differ", 60, func(r *rand.Rand) (float64, float64) {
			switch u := r.Float64(); {
			case u < 0.04:
				return 0, 1
			case u < 0.06:
				return 1, 0
			default:
				return 1, 1
			}
		}, (*Pair).Shares, 0.02, 1},
	} {
		random, held := rand.New(rand.NewPCG(7, 11)), 0
		for range runs {
			var p Pair
			for range c.events {
				p.Add(c.draw(random))
			}
			if d := c.of(&p); d.Low <= c.truth && c.truth <= d.High {
				held++
			}
		}
		if got := float64(held) / runs; got < Confidence-slack || got > c.most {
			t.Errorf("%s: %v of the intervals hold the truth", c.name, got)
		}
	}
}
