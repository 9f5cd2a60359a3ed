package accounting

import (
	"math"
	"testing"
)

// phases returns releases of one plan that differ in all that a phase may have of its own.
func phases(trust Trust) []Release {
	one := Release{Trust: trust, Users: 400, Dim: 10, Levels: 12, P: 0.5, HonestFraction: One, Rounds: 1}
	if trust.HasReportNoise() {
		one.Trials = 60
	}
	if trust.HasFloors() {
		one.FloorTrials = 24000
	}
	wide, several := one, one
	wide.Dim, wide.Levels, wide.Users = 60, 20, 900
	if several.Users = 500; !trust.HasFloors() {
		several.Rounds = 3 // under floors a plan has none such
	}
	return []Release{one, wide, several}
}

// allViews returns what an adversary sees of one user in releases of some order, with a look into release number look;
// -1 means no look.
func allViews(path []Release, look int) (views []Mechanism) {
	for i, r := range path {
		learner, intruder := r.views()
		if i == look {
			learner = intruder
		}
		views = append(views, learner...)
	}
	return views
}

// Of equal releases, repeated participations are rounds; the largest one is never above, and one more is never cheaper.
func TestRepeatedIsRounds(t *testing.T) {
	for _, trust := range []Trust{Shuffle, Pan, ShufflePan} {
		one := phases(trust)[0]
		last := Guarantee{}
		for times := 1; times <= 9; times++ {
			got, err := RepeatedEpsilon(times, [][]Release{{one}}, 1e-6)
			if err != nil {
				t.Fatal(err)
			}
			rounds := one
			rounds.Rounds = times
			want, err := rounds.Epsilon(1e-6)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Epsilon-want.Epsilon) > 1e-9*want.Epsilon ||
				math.Abs(got.Intruder-want.Intruder) > 1e-9*want.Epsilon || got.HasIntruder != trust.HasFloors() {
				t.Errorf("%v: %d participations cost %+v, %d rounds %+v", trust, times, got, times, want)
			}
			if !(got.Epsilon > last.Epsilon) {
				t.Errorf("%v: %d participations cost %v, one less %v", trust, times, got.Epsilon, last.Epsilon)
			}
			last = got
		}
	}
}

// Whatever phases somebody joins one after the other, and whichever of their rounds an intruder looks into, the
// composition of just these views is within what is charged, at every epsilon.
func TestRepeatedCoversEveryPath(t *testing.T) {
	for _, trust := range []Trust{Shuffle, Pan, ShufflePan} {
		of := phases(trust)
		for _, eps := range []float64{0, 0.5, 1, 2, 4} {
			bound := make([]float64, 4)
			for times := 1; times <= 3; times++ {
				f, err := repeatedDelta(times, [][]Release{{of[0]}, {of[1]}, {of[2]}}, eps)
				if err != nil {
					t.Fatal(err)
				}
				bound[times] = f.Delta
			}
			var walk func(path []Release)
			walk = func(path []Release) {
				if n := len(path); n > 0 {
					for look := -1; look < n && (look < 0 || trust.HasFloors()); look++ {
						got, err := Delta(eps, allViews(path, look)...)
						if err != nil {
							t.Fatal(err)
						}
						if !(got <= bound[n]*(1+1e-9)) {
							t.Errorf("%v at %v: a path of %d with a look into %d has delta %v, charged %v", trust, eps, n, look, got,
								bound[n])
						}
					}
					if n == 3 {
						return
					}
				}
				for _, r := range of {
					walk(append(path[:len(path):len(path)], r))
				}
			}
			walk(nil)
		}
	}
}

// An accountant that takes what one participation costs for the price of all is refuted by the exact attack on two
// rounds.
func TestRepeatedIsNotOnce(t *testing.T) {
	one := Release{Trust: Shuffle, Users: 20, Dim: 1, Levels: 3, Trials: 20, P: 0.5, HonestFraction: One, Rounds: 1}
	once, err := one.Epsilon(1e-3)
	if err != nil {
		t.Fatal(err)
	}
	truth := exactTwice(400, 3, once.Epsilon)
	if !(truth > 2e-3) {
		t.Errorf("two participations have delta %v at the epsilon of one: want far more than its 1e-3", truth)
	}
	twice, err := repeatedDelta(2, [][]Release{{one}}, once.Epsilon)
	if err != nil {
		t.Fatal(err)
	}
	if !(twice.Delta >= truth) {
		t.Errorf("two participations have delta %v, charged %v", truth, twice.Delta)
	}
}

// exactTwice returns the delta of two looks at Bin(n, 1/2), moved by g in both or in neither.
func exactTwice(n, g int, eps float64) (delta float64) {
	p := make([]float64, n+g+1)
	for i := range n + 1 {
		l, _ := math.Lgamma(float64(n + 1))
		x, _ := math.Lgamma(float64(i + 1))
		y, _ := math.Lgamma(float64(n - i + 1))
		p[i] = math.Exp(l - x - y - float64(n)*math.Ln2)
	}
	moved := func(i int) float64 {
		if i < g {
			return 0
		}
		return p[i-g]
	}
	for i := range p {
		for j := range p {
			delta += math.Max(0, p[i]*p[j]-math.Exp(eps)*moved(i)*moved(j))
		}
	}
	return delta
}
