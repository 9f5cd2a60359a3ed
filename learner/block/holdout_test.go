package block

import (
	"fmt"
	"math"
	"testing"
)

// TestHoldout: rows are held out by their places, people by their names under the task's, and one in so many of them.
// The names are fixed, and so is what the hash makes of them: the bounds are of these 40,000 names, and no chance
// decides.
func TestHoldout(t *testing.T) {
	rows := Holdout{Every: 3, Task: "ward"}
	for place := range 9 {
		if got := rows.Has(place, "p"); got != (place%3 == 2) {
			t.Errorf("row %d is held out: %t", place, got)
		}
	}
	if (Holdout{Task: "ward"}).Has(2, "p") || (Holdout{Task: "ward", People: true}).Has(2, "p") {
		t.Error("held out of nothing")
	}
	for _, k := range []uint{2, 5, 40} {
		ward, other := Holdout{Every: k, Task: "ward", People: true}, Holdout{Every: k, Task: "wards", People: true}
		var out, both float64
		const n = 40_000
		for i := range n {
			person := fmt.Sprint("p", i)
			role := ward.Has(i, person)
			if ward.Has(7*i+3, person) != role {
				t.Fatalf("%s has another role elsewhere", person)
			}
			if role {
				out++
				if other.Has(i, person) {
					both++
				}
			}
		}
		few := func(of, share float64) float64 { return 5 * math.Sqrt(of*share*(1-share)) } // five standard deviations
		share := 1 / float64(k)
		if math.Abs(out-n*share) > few(n, share) {
			t.Errorf("every %d: %v of %d people are held out", k, out, n)
		}
		if math.Abs(both-out*share) > few(out, share) {
			t.Errorf("every %d: %v of %v people are held out under another task, too", k, both, out)
		}
		if ward.Has(int(k)-1, "") {
			t.Errorf("every %d: a row of nobody is tested on", k)
		}
	}
}
