package curator

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestReleasesCarryTheirNoise: what is released of the same people spreads as the plan says. The standard deviation
// of 400 draws is within a quarter of the true one but with a probability below 1e-11.
func TestReleasesCarryTheirNoise(t *testing.T) {
	p := public(40, 1<<20, 1, 8)
	p.Set, p.Ridge = convex.Ball{R: 50}, 0.5
	people := crowd(rand.New(rand.NewPCG(41, 42)), p.People, 1, 1)
	for i := range people {
		people[i] = people[0]
	}
	table, err := newTable(p, convex.Logistic{}, people)
	if err != nil {
		t.Fatal(err)
	}
	g, err := bestGradscore(p, p.Budget, 0, p.People)
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOutput(p, 0, p.People)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newPass(p, 0.01, p.People)
	if err == nil {
		err = s.calibrate()
	}
	if err != nil {
		t.Fatal(err)
	}
	entropy := rand.NewPCG(43, 44)
	for _, c := range []struct {
		name   string
		turn   turn
		people int
		draws  float64
	}{{"output", o, p.People, 400}, {"gradscore", g, p.People, 400}, {"pass", s, p.People, 400}} {
		var sum, squares float64
		for range int(c.draws) {
			x, released, err := c.turn.release(t.Context(), table, p.start(), numbers([2]int{0, c.people}), entropy)
			if err != nil || !released {
				t.Fatalf("%s: released %v, %v", c.name, released, err)
			}
			sum += x[0]
			squares += x[0] * x[0]
		}
		std, _ := c.turn.cost()
		mean := sum / c.draws
		if r := math.Sqrt(squares/c.draws-mean*mean) / std; !(r > 0.75 && r < 1.25) {
			t.Errorf("%s: %v times the noise of the plan, %v", c.name, r, std)
		}
	}
}
