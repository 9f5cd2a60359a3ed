package practical_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// Rows of the largest norm, far from zero, whose reports of moments are all cut to a fifth: centers and shares are nevertheless those of
// the rows, within what noise hides.
func TestCutIsUndone(t *testing.T) {
	for name, loss := range map[string]convex.Declaration{"two": {Name: "logistic"}, "many": {Name: "softmax", Classes: 3}} {
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
