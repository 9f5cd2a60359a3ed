package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// shared is a release under split of a few users.
func shared(dim, levels int, floor uint64, rounds int) Release {
	return Release{Trust: Split, Users: 3, Dim: dim, Levels: levels, P: 0.5, FloorTrials: floor, HonestFraction: One,
		Rounds: rounds}
}

// asPan is the same release as `pan` charges it: one round is seen behind one floor, and all others behind both.
func asPan(r Release) Release {
	r.Trust = Pan
	return r
}

// TestOperatorSeesTheTotalBehindOneFloor enumerates, in a small field, all that a corrupt operator holds of three users in one round:
// its own share of each report, which is uniform, and the other operator's aggregate share, with its floor. The joint
// law of both neighbours diverges exactly as much as that of the total behind one floor does.
func TestOperatorSeesTheTotalBehindOneFloor(t *testing.T) {
	const field, levels, floor = 29, 3, 16
	noise := noiseLaw(floor, 0.5)
	view := func(target float64) map[[3]int]float64 {
		law := make(map[[3]int]float64)
		base, frac := int(math.Floor(target)), target-math.Floor(target)
		for mine := range field { // the share of the target's report
			for other := range field { // that of an honest user's, whose count is 0 or 1
				for count, p := range map[int]float64{base: 1 - frac, base + 1: frac} {
					for others, q := range []float64{0.5, 0.5} {
						for trials, r := range noise {
							const adversary = 2 // the count of a user of the adversary
							left := count - mine + others - other + adversary + trials + 3*field
							law[[3]int{mine, other, left % field}] += p * q * r / field / field
						}
					}
				}
			}
		}
		return law
	}
	diverge := func(p, q map[[3]int]float64, eps float64) (delta float64) {
		for at, u := range p {
			delta += max(0, u-math.Exp(eps)*q[at])
		}
		return delta
	}
	// The total, by hand: the honest user's rounding is one more trial.
	total := func(target float64) [][]float64 {
		return [][]float64{coordinateLaw(noiseLaw(floor+1, 0.5), target, levels)}
	}
	for _, pair := range [][2]float64{{0, 3}, {0.25, 2.5}, {1.5, 2}} {
		p, q := view(pair[0]), view(pair[1])
		for _, eps := range []float64{0, 0.3, 1, 2} {
			got, want := diverge(p, q, eps), hockeyStick(total(pair[0]), total(pair[1]), eps)
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("%v at epsilon %v: an operator's view has delta %v, the total behind one floor %v", pair, eps, got, want)
			}
			f, err := shared(1, levels, floor, 1).Delta(eps)
			if err != nil || !(got <= f.Operator) || f.Operator != f.Delta || !(f.Learner < f.Operator) {
				t.Errorf("%v at epsilon %v: delta %v, charged %+v (%v)", pair, eps, got, f, err)
			}
		}
	}
}

// lossGrid is the step of privacy losses in rounds one after the other.
const lossGrid = 1.0 / 1024

// roundsBelow bounds from below the divergence of so many rounds, each of the product of the laws: losses are rounded down
// to the grid, as if epsilon were larger by rounds/1024 at most.
func roundsBelow(p, q [][]float64, rounds int) func(eps float64) float64 {
	one := map[int]float64{}
	infinite := 0.0
	var walk func(j int, u, v float64)
	walk = func(j int, u, v float64) {
		if j == len(p) {
			switch {
			case u < 1e-18:
			case v == 0:
				infinite += u
			default:
				one[int(math.Floor(math.Log(u/v)/lossGrid))] += u
			}
			return
		}
		for x := range p[j] {
			walk(j+1, u*p[j][x], v*q[j][x])
		}
	}
	walk(0, 1, 1)
	least, most := math.MaxInt, math.MinInt
	for l := range one {
		least, most = min(least, l), max(most, l)
	}
	mass := make([]float64, most-least+1)
	for l, u := range one {
		mass[l-least] = u
	}
	all, left, at := []float64{1}, 1.0, 0
	for range rounds {
		all, left, at = convolve(all, mass), left*(1-infinite), at+least
	}
	return func(eps float64) float64 {
		delta := 1 - left
		for i, u := range all {
			if over := float64(i+at)*lossGrid - eps; over > 0 {
				delta += u * -math.Expm1(-over)
			}
		}
		return delta
	}
}

// convolve leaves out what has next to no mass, which only lowers a divergence.
func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, u := range a {
		if u < 1e-14 {
			continue
		}
		for j, v := range b {
			out[i+j] += u * v
		}
	}
	return out
}

// exactSplit plays rounds of one user behind one floor against claims, and returns the largest exact/claim of each.
func exactSplit(t *testing.T, r Release, times int, claims ...func(eps float64) float64) []float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(r.Dim), uint64(times*r.Rounds)))
	g, err := RepeatedEpsilon(times, [][]Release{{r}}, 1e-4)
	if err != nil {
		t.Fatal(err)
	}
	noise, closest := noiseLaw(r.FloorTrials, r.P), make([]float64, len(claims))
	pairs := [][2][]float64{}
	for range 3 {
		a, b := randomPair(rng, r.Levels, r.Dim)
		pairs = append(pairs, [2][]float64{a, b})
	}
	ends := [2][]float64{}
	for range r.Dim { // opposite corners of the first axis
		ends[0], ends[1] = append(ends[0], float64(r.Levels)/2), append(ends[1], float64(r.Levels)/2)
	}
	ends[0][0], ends[1][0] = 0, float64(r.Levels)
	for _, pair := range append(pairs, ends) {
		var p, q [][]float64
		for j := range r.Dim {
			p = append(p, coordinateLaw(noise, pair[0][j], r.Levels))
			q = append(q, coordinateLaw(noise, pair[1][j], r.Levels))
		}
		for _, exact := range []func(eps float64) float64{roundsBelow(p, q, times*r.Rounds), roundsBelow(q, p, times*r.Rounds)} {
			for _, eps := range []float64{g.Operator / 2, g.Operator} {
				for i, claim := range claims {
					closest[i] = max(closest[i], exact(eps)/claim(eps))
				}
			}
		}
	}
	return closest
}

// TestSplitNeverBelowExactAttack: what one corrupt operator sees of a user in all rounds and participations never
// loses more than what is printed, and nearly as much. What pan would print for it is too little from two rounds on.
func TestSplitNeverBelowExactAttack(t *testing.T) {
	for _, c := range []struct {
		dim, levels   int
		floor         uint64
		rounds, times int
		close         float64
	}{
		{1, 3, 400, 1, 1, 0.8}, {1, 7, 2000, 1, 3, 0.9}, {1, 3, 900, 2, 1, 0.8}, {1, 3, 900, 2, 3, 0.8},
		{1, 7, 9000, 10, 1, 0.9}, {1, 3, 5000, 10, 3, 0.9},
		{2, 3, 400, 1, 1, 0.7}, {2, 3, 700, 2, 1, 0.7}, {2, 3, 1000, 1, 3, 0.7}, {2, 3, 3000, 10, 1, 0.8},
	} {
		r := shared(c.dim, c.levels, c.floor, c.rounds)
		delta := func(of Release) func(eps float64) float64 {
			return func(eps float64) float64 {
				f, err := repeatedDelta(c.times, [][]Release{{of}}, eps)
				if err != nil {
					t.Fatal(err)
				}
				return f.Delta
			}
		}
		got := exactSplit(t, r, c.times, delta(r), delta(asPan(r)))
		closest, pan := got[0], got[1]
		t.Logf("%+v: closest exact/bound %.4f, %.2f of what pan would charge", c, closest, pan)
		if closest > 1 || closest < c.close {
			t.Errorf("%+v: closest exact/bound %.5f, want %v to 1", c, closest, c.close)
		}
		if c.rounds*c.times > 1 && pan <= 1 {
			t.Errorf("%+v: what pan would charge is not refuted: %.4f", c, pan)
		}
	}
}

// TestSplitIsNotPan: a task whose cost pan would print as 1, or as 4, costs so much under split, where an operator sees
// every round behind one floor.
func TestSplitIsNotPan(t *testing.T) {
	for _, c := range []struct {
		printed float64
		want    map[int]float64 // by rounds
	}{
		{1, map[int]float64{1: 1, 2: 1.17, 5: 1.32, 10: 1.38, 50: 1.44}},
		{4, map[int]float64{1: 4, 2: 4.71, 5: 5.35, 10: 5.62, 50: 5.87}},
	} {
		for rounds, want := range c.want {
			plan, err := Calibrate(Request{Users: 10000, Dim: 100, Epsilon: c.printed, Delta: 1e-6, Trust: Pan,
				HonestFraction: One, Rounds: rounds, MaxBits: 255})
			if err != nil || plan.Levels != 255 {
				t.Fatalf("pan in %d rounds: %+v, %v", rounds, plan, err)
			}
			r := plan.Release()
			r.Trust = Split
			got, err := r.Epsilon(1e-6)
			if err != nil || math.Abs(got.Epsilon-want) > 0.006 || got.Operator != got.Epsilon || got.HasIntruder {
				t.Errorf("%d rounds that pan prints as %v: %+v (%v), want %v", rounds, c.printed, got, err, want)
			}
		}
	}
}

// TestSplitAdversaries counts the trials of every adversary by hand: the learner sees both floors in all rounds, an
// operator one floor in all rounds and all participations.
func TestSplitAdversaries(t *testing.T) {
	third, err := ParseFraction("1/3")
	if err != nil {
		t.Fatal(err)
	}
	r := shared(10, 15, 5000, 4)
	r.HonestFraction = third // is not used
	of := func(trials uint64, rounds int) float64 {
		e, err := Mechanism{Trials: trials, P: 0.5, Levels: 15, Dim: 10, Rounds: rounds}.Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for times := 1; times <= 3; times++ {
		g, err := RepeatedEpsilon(times, [][]Release{{r}}, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		learner, operator := of(10000, 4*times), of(5000, 4*times)
		if math.Abs(g.Learner-learner) > 1e-9*learner || math.Abs(g.Operator-operator) > 1e-9*operator ||
			g.Epsilon != g.Operator || !g.HasOperator || g.HasIntruder {
			t.Errorf("%d participations: %+v, want %v and %v", times, g, learner, operator)
		}
		f, err := repeatedDelta(times, [][]Release{{r}}, g.Epsilon)
		if err != nil || f.Delta > 1e-6 || f.Operator != f.Delta || !f.HasOperator || f.HasIntruder {
			t.Errorf("%d participations at %v: %+v (%v)", times, g.Epsilon, f, err)
		}
	}
	// Beside a release that has no operators, an operator sees that one as the learner does.
	plain := Release{Trust: Shuffle, Users: 100, Dim: 10, Levels: 15, Trials: 90, P: 0.5, HonestFraction: One, Rounds: 2}
	g, err := RepeatedEpsilon(1, [][]Release{{r, plain}}, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Epsilon(1e-6, Mechanism{Trials: 5000, P: 0.5, Levels: 15, Dim: 10, Rounds: 4},
		Mechanism{Trials: 9000, P: 0.5, Levels: 15, Dim: 10, Rounds: 2})
	if err != nil || math.Abs(g.Operator-want) > 1e-9*want {
		t.Errorf("beside a release of shuffle: %+v, want %v (%v)", g, want, err)
	}
}

// TestSplitPlans: the lattice is all that k bits hold, the smallest such above the best; noise is
// the square root of two times what one curator of all rounds adds, however many rounds.
func TestSplitPlans(t *testing.T) {
	for _, c := range []struct {
		rounds, bits int
		units        uint64
	}{{1, 0, 1}, {1, 0, 50}, {2, 0, 1}, {50, 0, 1}, {1, 12, 1}, {2, 31, 1}} {
		q := Request{Users: 100000, Dim: 100, Epsilon: 1, Delta: 1e-6, Trust: Split, HonestFraction: One, Rounds: c.rounds,
			Units: c.units, MaxBits: c.bits}
		p, err := Calibrate(q)
		if err != nil {
			t.Fatal(err)
		}
		q.Trust, q.Rounds = Pan, 1 // whose grid the rounds do not move
		free, err := Calibrate(q)
		if err != nil {
			t.Fatal(err)
		}
		g := p.Levels
		if g&(g+1) != 0 || p.Trials != 0 || p.P != 0.5 || p.FloorTrials == 0 || !(p.Epsilon <= 1) {
			t.Errorf("%+v: %+v", c, p)
		}
		if c.bits > 0 && (g > c.bits || 2*g+1 <= c.bits) {
			t.Errorf("%+v: g %d, want the largest 2^k - 1 within the bits", c, g)
		}
		if c.bits == 0 && c.rounds == 1 && (g < free.Levels || g >= 2*free.Levels) {
			t.Errorf("%+v: g %d, want the next 2^k - 1 from %d on", c, g, free.Levels)
		}
		if ratio := p.NoiseStd / p.GaussianNoiseStd; !(ratio >= math.Sqrt2 && ratio < 1.02*math.Sqrt2) && c.bits == 0 {
			t.Errorf("%+v: noise %v times a curator's, want sqrt(2)", c, ratio)
		}
		if r := p.Release(); r.FloorTrials > 1 { // not one trial too many
			r.FloorTrials -= max(1, r.FloorTrials/1000)
			if less, err := r.Epsilon(1e-6); err != nil || less.Epsilon <= 1 {
				t.Errorf("%+v: a floor of %d keeps epsilon %v, the plan has %d (%v)", c, r.FloorTrials, less.Epsilon,
					p.FloorTrials, err)
			}
		}
	}
}
