package planning

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestOrders compares with values worked out by hand: n = 10^6, d = 100, epsilon 1, L = 1, D = 1, so that sqrt(d)/(eps n)
// is 1e-5 and 1/sqrt(n) 1e-3.
func TestOrders(t *testing.T) {
	p := Problem{Users: 1e6, Dim: 100, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 1}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Shuffle, HonestFraction: accounting.One}
	smooth, corner := p.ForLoss(convex.Logistic{}, 2, -1, 1), p.ForLoss(convex.Hinge{}, 1, -1, 1) // beta = 1
	strong := smooth
	strong.Ridge = 0.25 // beta 1.25, kappa 5
	silos := func(p Problem) Problem {
		p.Trust, p.Silos = accounting.Local, Silos{Count: 100, Units: 1e4, Least: 1e4, Reports: 100}
		return p
	}
	for _, c := range []struct {
		p             Problem
		theorem, kind string
		want          float64
	}{
		{smooth, "4.3", "", 1e-3 + 1e-4},                      // 1e-5^(4/5)
		{corner, "4.7", "", 1e-3 + 4.6415888e-4},              // 1e-5^(2/3)
		{corner, "4.9", "", 1e-3 + 1e-5},                      //
		{corner, "Bassily", "curator", 1e-3 + 1e-5},           //
		{corner, "Bassily", "nobody", 1e-3 + 1e-2},            // sqrt(d)/(eps sqrt n)
		{strong, "4.8", "smooth", 4 * (1e-6 + 2.2360680e-10)}, // sqrt(5) 1e-10
		{strong, "4.8", "any", 4 * (1e-6 + 2.1544347e-7)},     // 1e-5^(4/3)
		{strong, "4.9", "", 4 * (1e-6 + 1e-10)},               //
		{silos(corner), "2.1", "", 1e-3 + 1e-4},               // 10/(1 10^4 10)
		{silos(smooth), "3.1", "", 1e-3 + 6.3095734e-4},       // 1e-4^(4/5)
		{silos(corner), "2.2", "lower", 1e-3 + 1e-4},          //
		{silos(strong), "2.1", "", 4 * (1e-6 + 1e-8)},         //
		{silos(strong), "3.1", "", 4 * (1e-6 + 2.2360680e-8)}, //
		{silos(strong), "2.2", "lower", 4e-6 + 1e-8},          //
	} {
		found := false
		for _, o := range c.p.Orders() {
			if strings.Contains(o.Theorem, c.theorem) && strings.Contains(o.Name, c.kind) {
				found = true
				if math.Abs(o.Value/c.want-1) > 1e-7 || o.Lower != strings.Contains(o.Name, "lower bound") {
					t.Errorf("%+v, want %v", o, c.want)
				}
			}
		}
		if !found {
			t.Errorf("no order of %s, %s", c.theorem, c.kind)
		}
	}
	for _, o := range append(corner.Orders(), silos(corner).Orders()...) {
		if strings.Contains(o.Name, "smooth") {
			t.Errorf("a loss with a corner has the order of smooth ones: %+v", o)
		}
	}
	pan := smooth
	if pan.Trust = accounting.Pan; pan.Orders() != nil {
		t.Error("orders of trust pan")
	}
	none := smooth
	if none.Epsilon = 1e-9; none.Orders()[4].Value > 1e-3+1 {
		t.Errorf("a lower bound above the start: %+v", none.Orders()[4])
	}
}
