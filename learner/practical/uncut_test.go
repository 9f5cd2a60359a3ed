package practical_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestCutIsUndone: rows of the largest norm, far from zero, whose reports of moments are all cut to a fifth:
// centers and shares are nevertheless those of the rows, within what noise hides.
func TestCutIsUndone(t *testing.T) {
	for name, loss := range map[string]convex.Declaration{"two": {Name: "logistic"}, "many": {Name: "softmax",
		Classes: 3}} {
		rng := rand.New(rand.NewPCG(1, 2))
		p := practical.Problem{Loss: loss, Features: 20, Bound: 10, Intercept: 1, Users: 20000}
		centers := make([]float64, p.Features)
		for j := range centers {
			centers[j] = 2.1 * math.Copysign(1, rng.NormFloat64())
		}
		users := make([]convex.Example, 4000)
		for i := range users {
			for _, c := range centers {
				users[i].Value = append(users[i].Value, c+0.5*rng.NormFloat64())
			}
			convex.Clip(users[i].Value, p.Bound)
			users[i].Value = append(users[i].Value, p.Intercept)
			if users[i].Label = 0; i%4 == 0 {
				users[i].Label = 1
			} else if loss.Name == "logistic" {
				users[i].Label = -1
			}
		}
		for _, noise := range []float64{0, 0.001} {
			seen := moments(p, users)
			for i := range seen {
				seen[i] += noise * rng.NormFloat64()
			}
			out, err := p.First(p.Layout(1e-6), seen, noise)
			if err != nil {
				t.Fatal(err)
			}
			for j, c := range centers {
				near(t, name+": center", out.Frame.Center[j], c, 0.1)
			}
			near(t, name+": share", out.Report.Shares[1], 0.25, 0.02)
		}
	}
}

// TestCutIsNotOverdone: rows around zero, which are uniform and cut to about .43, are not taken for rows that
// were cut more: the share of a class, .40 in reports, is not moved beyond the rows' own, .25.
func TestCutIsNotOverdone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: 50, Bound: 10, Intercept: 1, Users: 20000}
	users := make([]convex.Example, 4000)
	for i := range users {
		for range p.Features {
			users[i].Value = append(users[i].Value, math.Sqrt(3)*(2*rng.Float64()-1))
		}
		users[i].Value = append(users[i].Value, p.Intercept)
		if users[i].Label = -1; i%4 == 0 {
			users[i].Label = 1
		}
	}
	for _, noise := range []float64{0, 0.001, 0.03} {
		seen := moments(p, users)
		for i := range seen {
			seen[i] += noise * rng.NormFloat64()
		}
		out, err := p.First(p.Layout(1e-6), seen, noise)
		if err != nil {
			t.Fatal(err)
		}
		if share := out.Report.Shares[1]; share < 0.23 || share > 0.45 {
			t.Errorf("noise %v: share %v of a class that has 0.25, and 0.40 in reports", noise, share)
		}
		for j, c := range out.Frame.Center {
			if math.Abs(c) > 0.2 {
				t.Errorf("noise %v: coordinate %d is centred at %v, and its mean is 0", noise, j, c)
			}
		}
	}
}
