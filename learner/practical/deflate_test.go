package practical_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestMeanIsMadeShort: without an intercept, whitened rows have a mean of norm just below 1, though features
// are far from zero, and the mean row starts with the log odds of the shares as far as rows of that mean allow.
func TestMeanIsMadeShort(t *testing.T) {
	for name, loss := range map[string]convex.Declaration{"two": {Name: "logistic"}, "many": {Name: "softmax",
		Classes: 3}} {
		rng := rand.New(rand.NewPCG(1, 2))
		p := practical.Problem{Loss: loss, Features: 4, Bound: 40, Users: 20000}
		users := make([]convex.Example, 20000)
		for i := range users {
			for range 4 {
				users[i].Value = append(users[i].Value, 2+0.2*rng.NormFloat64())
			}
			if users[i].Label = 0; i%4 == 0 {
				users[i].Label = 1
			} else if loss.Name == "logistic" {
				users[i].Label = -1
			}
		}
		out, err := p.First(p.Layout(1e-6), moments(p, users), 0)
		if err != nil {
			t.Fatal(err)
		}
		var u convex.Example
		sum, w := make([]float64, 4), make([]float64, 4)
		for _, e := range users {
			if out.Frame.Apply(&u, e); convex.Norm(u.Value) > out.Frame.Bound*(1-1e-9) {
				t.Fatalf("%s: a row of common length is cut to %v", name, out.Frame.Bound)
			}
			out.Frame.Whiten(w, u.Value)
			for j, v := range w {
				sum[j] += v / float64(len(users))
			}
		}
		m := 2 * 2 * 4 / (0.04 + 0.01) // squared norm of the mean of u
		near(t, name+": norm of the whitened mean", convex.Norm(sum), math.Sqrt(m/(1+m)), 1e-3)
		near(t, name+": rho", out.Report.Norm, math.Sqrt(4/1.25+1), 0.05)
		model := out.Model(out.Start, 0)
		score := func(k int) (sum float64) {
			for _, v := range model[4*k : 4*k+4] {
				sum += 2 * v
			}
			return sum
		}
		got := score(0)
		if loss.Classes > 0 {
			got = score(1) - score(0)
		}
		near(t, fmt.Sprint(name, ": score of the mean row"), got, math.Log(1./3), 0.01)
	}
}
