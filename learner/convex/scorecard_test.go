package convex_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func drawCard(t *rapid.T) convex.Scorecard {
	s := convex.Scorecard{Norm: rapid.Float64Range(1e-6, 1e6).Draw(t, "w"), Low: rapid.Float64Range(-100, 100).Draw(t,
		"low"),
		Correctness: rapid.Bool().Draw(t, "correctness"), LabelNoise: rapid.Float64Range(0, 0.49).Draw(t, "label noise")}
	s.High = s.Low + rapid.Float64Range(1e-3, 1e3).Draw(t, "span")
	return s
}

// TestScoresStayInTheirNorm: the block of any event has norm at most w, and with any gradient of norm at most L
// at most sqrt(L^2 + w^2): what the accountant charges. Charging w once for each coordinate would allow less
// than what is sent only if blocks were larger.
func TestScoresStayInTheirNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		card := drawCard(t)
		block := make([]float64, card.Dim())
		loss := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), card.Low,
			card.High})).Draw(t, "loss")
		card.Write(block, loss, rapid.Bool().Draw(t, "correct"))
		if n := convex.Norm(block); !(n <= card.Norm) {
			t.Fatalf("%+v, loss %v: block %v of norm %v", card, loss, block, n)
		}
		l := rapid.Float64Range(1e-6, 1e6).Draw(t, "L")
		joined := card.Joined(l)
		if exact := math.Sqrt(l*l + card.Norm*card.Norm); math.Abs(joined/exact-1) > 1e-15 {
			t.Fatalf("joined %v, want %v", joined, exact)
		}
		gradient := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 5).Draw(t, "gradient")
		convex.Clip(gradient, l)
		if n := convex.Norm(append(gradient, block...)); n > joined*(1+1e-15) { // the encoder clips an ulp away
			t.Fatalf("gradient and block of norm %v, above %v", n, joined)
		}
	})
}

// TestScoresAreMeans checks that means of blocks decode to means of the scores that were written.
func TestScoresAreMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		card := drawCard(t)
		card.Correctness = true
		n := rapid.IntRange(1, 20).Draw(t, "users")
		var loss, right, mean0, mean1 float64
		block := make([]float64, 2)
		for range n {
			l, c := rapid.Float64Range(card.Low, card.High).Draw(t, "loss"), rapid.Bool().Draw(t, "correct")
			card.Write(block, l, c)
			loss += l / float64(n)
			if c {
				right += 1 / float64(n)
			}
			mean0 += block[0] / float64(n)
			mean1 += block[1] / float64(n)
		}
		if got := card.Loss(mean0); math.Abs(got-loss) > 1e-9*(card.High-card.Low) {
			t.Fatalf("mean loss %v, read as %v", loss, got)
		}
		if got, want := card.Accuracy(mean1), (right-card.LabelNoise)/(1-2*card.LabelNoise); math.Abs(got-want) > 1e-9/(1-2*card.LabelNoise) {
			t.Fatalf("accuracy %v, read as %v", want, got)
		}
	})
}

// TestAccuracyUnderLabelNoise: a share q of correct predictions shows as q (1-rho) + (1-q) rho where labels are
// flipped with probability rho.
func TestAccuracyUnderLabelNoise(t *testing.T) {
	card := convex.Scorecard{Norm: 1, High: 1, Correctness: true, LabelNoise: 0.2}
	const q = 0.9
	seen := q*0.8 + 0.1*0.2
	if got := card.Accuracy(card.Unit() * (2*seen - 1)); math.Abs(got-q) > 1e-12 {
		t.Errorf("%v, want %v", got, q)
	}
}

func TestLossesOutsideAreMoved(t *testing.T) {
	card := convex.Scorecard{Norm: 2, Low: -1, High: 3}
	block := make([]float64, 1)
	for loss, want := range map[float64]float64{-5: -1, -1: -1, 1: 1, 3: 3, 1e9: 3, math.Inf(1): 3} {
		card.Write(block, loss, false)
		if got := card.Loss(block[0]); math.Abs(got-want) > 1e-12 {
			t.Errorf("loss %v read as %v, want %v", loss, got, want)
		}
	}
	block[0] = 7
	if card.Write(block, math.NaN(), true); block[0] != 0 {
		t.Errorf("no loss: block %v, want 0", block)
	}
}

func TestScorecardRefuses(t *testing.T) {
	for want, card := range map[string]convex.Scorecard{
		"norm":        {High: 1},
		"low":         {Norm: 1, Low: math.NaN(), High: 1},
		"high":        {Norm: 1, Low: 1, High: 1},
		"label noise": {Norm: 1, High: 1, LabelNoise: 0.5},
	} {
		if err := card.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (convex.Scorecard{Norm: 1, High: 1}).Validate(); err != nil {
		t.Error(err)
	}
}
