package curator

import (
	"fmt"
	"testing"
)

// Bounds at 100,000 people of 16 items in 10 dimensions.
func TestBounds(t *testing.T) {
	for i, want := range []struct{ group, person, step float64 }{{0.089, 0.0057, 0.0053}, {0.047, 0.0046, 0.0047},
		{0.034, 0.0045, 0.0047}} {
		p := sixteen(epsilons[i], 100_000)
		near(t, fmt.Sprintf("epsilon %v, groups", epsilons[i]), GroupBound(p), want.group, 0.1)
		near(t, fmt.Sprintf("epsilon %v, a person as one item", epsilons[i]), PersonBound(p), want.person, 0.02)
		near(t, fmt.Sprintf("epsilon %v, a step a person", epsilons[i]), StepBound(p), want.step, 0.1)
	}
	if b := PersonBound(sixteen(1, 1000)); b > 0.2225 {
		// what one person as one item has where hardly any other method can run
		t.Errorf("1,000 people: %v", b)
	}
}

// No bound grows with people, items or epsilon.
func TestBoundsFall(t *testing.T) {
	for name, bound := range map[string]func(Public) float64{"group": GroupBound, "person": PersonBound,
		"step": StepBound} {
		at := sixteen(1, 2000)
		first := bound(at)
		for _, change := range []func(*Public){func(p *Public) { p.People *= 4 }, func(p *Public) { p.Items *= 16 },
			func(p *Public) { p.Budget.Epsilon = 4 }} {
			p := at
			if change(&p); bound(p) > first*(1+1e-6) {
				t.Errorf("%s: %v after %v", name, bound(p), first)
			}
		}
	}
}
