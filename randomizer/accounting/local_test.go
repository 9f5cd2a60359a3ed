package accounting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/randomizer"
)

const localSamples = "testdata/local-samples.json"

// TestLocalPlans: reports that trust nobody cost no more noise than the analytic Gaussian and three in a hundred,
// rounding included, from a single report about ten million units to twenty-five about a thousand, in one round or
// many.
func TestLocalPlans(t *testing.T) {
	for _, c := range []struct {
		users           uint64
		dim, rounds     int
		units           uint64
		epsilon, delta  float64
		trust           Trust
		mostBits, mostG int
	}{
		{25, 52, 35, 1238, 0.75, 6.5e-7, Local, 16, 3600},
		{25, 52, 35, 1238, 18, 6.5e-7, Local, 15, 20500},
		{25, 52, 1, 123, 3, 6.5e-7, Local, 13, 2000},
		{25, 52, 35, 1238, 3, 6.5e-7, Shuffle, 13, 7600},
		{20, 126, 128, 1628, 1, 1e-6, Local, 17, 4950},
		{1, 126, 128, 32561, 1, 1e-6, Local, 18, 99000},
		{1, 126, 1, 1e7, 1, 1e-6, Local, 27, 1.07e8},
		{3, 8, 35, 357, 0.125, 1e-5, Local, 16, 290},
	} {
		q := Request{Users: c.users, Dim: c.dim, Rounds: c.rounds, Units: c.units, Epsilon: c.epsilon, Delta: c.delta,
			Trust: c.trust, HonestFraction: One}
		p, err := Calibrate(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			continue
		}
		mu, err := GaussianMu(Budget{Epsilon: c.epsilon, Delta: c.delta})
		if err != nil {
			t.Fatal(err)
		}
		floor := 2 * math.Sqrt(float64(c.rounds)) / (float64(c.units) * float64(c.users) * mu)
		if c.trust == Local {
			floor *= math.Sqrt(float64(c.users))
		}
		bits := 0
		for v := p.BitsPerCoordinate; v > 0; v /= 2 {
			bits++
		}
		if ratio := p.TotalStd() / floor; ratio > 1.03 || ratio < 1 || math.Abs(p.GaussianNoiseStd/floor-1) > 1e-12 ||
			bits > c.mostBits || p.Levels > c.mostG {
			t.Errorf("%+v: %.4f times the Gaussian's noise %v, g = %d, b = %d, %d bits", q, ratio, floor, p.Levels, p.Trials,
				bits)
		}
		if g, err := p.Release().Epsilon(c.delta); err != nil || !(g.Epsilon <= c.epsilon*(1+1e-9)) || c.trust == Local &&
			p.Trials%2 != 0 {
			t.Errorf("%+v: the plan costs %v (%v), %d trials", q, g.Epsilon, err, p.Trials)
		}
	}
}

// Under local others add nothing: neither their number nor a floor changes what a report costs.
func TestLocalReliesOnItsOwnTrials(t *testing.T) {
	r := Release{Trust: Local, Users: 1, Dim: 10, Levels: 300, Trials: 800, P: 0.5, HonestFraction: One, Rounds: 3,
		Units: 50}
	alone, err := r.Epsilon(1e-6)
	if err != nil || alone.HasIntruder {
		t.Fatal(alone, err)
	}
	want, err := Mechanism{Trials: 800, P: 0.5, Levels: 300, Dim: 10, Rounds: 3, Units: 50}.Epsilon(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	r.Users = 1000
	if many, err := r.Epsilon(1e-6); err != nil || many.Epsilon != alone.Epsilon || many.Epsilon != want {
		t.Errorf("epsilon %v of 1,000 reports, %v of one, %v of 800 trials: %v", many.Epsilon, alone.Epsilon, want, err)
	}
	for name, breakIt := range map[string]func(*Release){
		"honest fraction":                 func(r *Release) { r.HonestFraction, _ = ParseFraction("0.9") },
		"floors":                          func(r *Release) { r.FloorTrials = 100 },
		"odd trials":                      func(r *Release) { r.Trials = 801 },
		"no trials":                       func(r *Release) { r.Trials = 0 },
		"biased coin":                     func(r *Release) { r.P = 0.25 },
		"more units than there are steps": func(r *Release) { r.Units = 300<<23 + 1 },
	} {
		bad := r
		breakIt(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: %+v is accepted", name, bad)
		}
	}
}

// What OwnTrials returns is even, in proportion, and meets the budget; two trials less of the release that has most do
// not.
func TestOwnTrials(t *testing.T) {
	b := Budget{Epsilon: 1, Delta: 1e-6}
	moments := Release{Trust: Local, Users: 20, Dim: 30, Levels: 400, Trials: 3000, P: 0.5, HonestFraction: One, Rounds: 1,
		Units: 100}
	rounds := moments
	rounds.Dim, rounds.Trials, rounds.Rounds = 12, 30000, 10
	var last uint64
	for _, units := range []uint64{400, 100, 67} {
		stint := []Release{moments, rounds}
		trials, err := OwnTrials(stint, units, b)
		if err != nil {
			t.Fatal(err)
		}
		cost := func(less uint64) float64 {
			for i := range stint {
				stint[i].Trials, stint[i].Units = trials[i], units
			}
			stint[1].Trials -= less
			stint[0].Trials = 2 * ((stint[1].Trials/2 + 9) / 10)
			f, err := repeatedDelta(1, [][]Release{stint}, b.Epsilon)
			if err != nil {
				t.Fatal(err)
			}
			return f.Delta
		}
		if cost(0) > b.Delta || cost(2) <= b.Delta || trials[1] <= last || trials[1]%2 != 0 ||
			trials[0] != 2*((trials[1]/2+9)/10) {
			t.Errorf("%d units: %v trials have delta %v, two less %v", units, trials, cost(0), cost(2))
		}
		last = trials[1]
	}
	if _, err := OwnTrials([]Release{moments}, 1, Budget{Epsilon: 1e-4, Delta: 1e-6}); err == nil {
		t.Errorf("more than %d trials were found", randomizer.MaxTrials)
	}
	shuffled := moments
	shuffled.Trust = Shuffle
	if _, err := OwnTrials([]Release{shuffled}, 100, b); err == nil {
		t.Error("a report has trials of its own under shuffle")
	}
}

// TestStintIsAllItsReleases: who answers several phases pays for all of their rounds, and pays what two participations
// in equal ones cost.
func TestStintIsAllItsReleases(t *testing.T) {
	for _, trust := range []Trust{Shuffle, Pan, ShufflePan} {
		of := phases(trust)
		for _, eps := range []float64{0.5, 2} {
			stint, err := repeatedDelta(1, [][]Release{of[:2], of[2:]}, eps)
			if err != nil {
				t.Fatal(err)
			}
			for look := -1; look < 2 && (look < 0 || trust.HasFloors()); look++ {
				if d, err := Delta(eps, allViews(of[:2], look)...); err != nil || d > stint.Delta*(1+1e-9) {
					t.Errorf("%v: both phases with a look into %d have delta %v, charged %v (%v)", trust, look, d, stint.Delta, err)
				}
			}
		}
		one := of[0]
		both, err := RepeatedEpsilon(1, [][]Release{{one, one}}, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := RepeatedEpsilon(2, [][]Release{{one}}, 1e-6)
		if err != nil || math.Abs(both.Epsilon-twice.Epsilon) > 1e-9*twice.Epsilon {
			t.Errorf("%v: a phase twice costs %v, two participations %v (%v)", trust, both, twice, err)
		}
	}
	if _, err := RepeatedEpsilon(1, [][]Release{{}}, 1e-6); err == nil {
		t.Error("a participation in nothing costs something")
	}
}

// exactEpsilon returns the smallest epsilon at which a pair of laws, in either order, has at most delta.
func exactEpsilon(p, q [][]float64, delta float64) float64 {
	lo, hi := 0.0, 60.0
	for range 50 {
		if mid := (lo + hi) / 2; max(hockeyStick(p, q, mid), hockeyStick(q, p, mid)) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// attacked makes sample rows: random reports, the accountant's epsilon, and the largest that an exact attack finds.
func attacked(t *testing.T) (rows []sample) {
	rng := rand.New(rand.NewPCG(14, 0))
	for i := range 40 {
		dim, pairs, shape := 1, 60, blocks(shapes(1, 1, 3, 60))
		if i%4 == 3 {
			dim, pairs, shape = 2, 12, blocks(shapes(2, 1, 4, 12))
		}
		m := shape(rng)
		if i%5 == 0 {
			m.Units = 1
		}
		s := sample{ID: fmt.Sprintf("local-%02d", i), Kind: "local", Delta: math.Pow(10, -8+5*rng.Float64()),
			Levels: m.Levels, Dim: dim, UserTrials: m.Trials, Units: m.Units}
		v, err := s.Evaluate()
		if err != nil {
			t.Fatal(err)
		}
		if math.IsInf(v, 1) {
			continue
		}
		noise := noiseLaw(m.Trials, 0.5)
		for range pairs {
			a, b := pairOf(rng, m)
			var p, q [][]float64
			for j := range a {
				p, q = append(p, coordinateLaw(noise, a[j], m.Levels)), append(q, coordinateLaw(noise, b[j], m.Levels))
			}
			s.Lower = max(s.Lower, exactEpsilon(p, q, s.Delta))
		}
		s.Upper, s.AcceptMax = v, 1.1*v
		rows = append(rows, s)
	}
	return rows
}

// TestLocalSamples: no row of the file is below what its exact attack found, all are what they were, and the closest
// is within a hundredth.
func TestLocalSamples(t *testing.T) {
	if golden.Updating() {
		var lines []string
		for _, s := range attacked(t) {
			lines = append(lines,
				fmt.Sprintf(
					`{"id": %q, "kind": %q, "g": %d, "units": %d, "b": %d, "d": %d, "delta": %v, "lower": %v, "upper": %v, "accept_max": %v}`,
					s.ID, s.Kind, s.Levels, s.Units, s.UserTrials, s.Dim, s.Delta, s.Lower, s.Upper, s.AcceptMax))
		}
		text := []byte("{\"rows\": [\n" + strings.Join(lines, ",\n") + "\n]}\n")
		if err := os.WriteFile(localSamples, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(localSamples)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := ParseSamples(data)
	if err != nil || len(rows) < 30 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	closest := 0.0
	for _, s := range rows {
		v, err := s.Evaluate()
		if err != nil || s.Kind != "local" || !(s.Lower <= v && v <= s.AcceptMax) || math.Abs(v/s.Upper-1) > 1e-6 {
			t.Errorf("%s: %v, want %v to %v, and %v before (%v)", s.ID, v, s.Lower, s.AcceptMax, s.Upper, err)
		}
		closest = max(closest, s.Lower/v)
	}
	if closest < 0.99 {
		t.Errorf("the closest attack is %.4f of the claim, want 0.99", closest)
	}
}
