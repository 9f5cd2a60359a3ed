package accounting

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
)

// vector holds what some participations of one user cost, as docs/vectors/accounting.json has it.
type vector struct {
	Name  string  `json:"name"`
	Times int     `json:"times"` // participations of one user
	Delta float64 `json:"delta"`
	// Stints lists what a participation is one of: all releases of a stint, each with all of its rounds.
	Stints [][]release `json:"stints"`
	// Epsilon is the smallest that the search found, of the one who sees most; null: none up to 60.
	Epsilon  *float64 `json:"epsilon"`
	Learner  *float64 `json:"epsilon_learner"`
	Intruder *float64 `json:"epsilon_intruder,omitempty"`
	Operator *float64 `json:"epsilon_operator,omitempty"`
	At       []delta  `json:"deltas"`
}

type delta struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// release is a Release.
type release struct {
	Trust     string `json:"trust"`
	Users     uint64 `json:"users"`
	Dim       int    `json:"dim"`
	Levels    int    `json:"levels"`
	Trials    uint64 `json:"trials"`
	Coin      uint32 `json:"coin"` // of 2^24
	Floor     uint64 `json:"floor_trials"`
	Honest    string `json:"honest_fraction"`
	Rounds    int    `json:"rounds_per_user"`
	Units     uint64 `json:"units,omitempty"`
	Minimizer bool   `json:"minimizer,omitempty"`
}

func (r release) of(t *testing.T) Release {
	t.Helper()
	trust, err := ParseTrust(r.Trust)
	if err != nil {
		t.Fatal(err)
	}
	honest, err := ParseFraction(r.Honest)
	if err != nil {
		t.Fatal(err)
	}
	return Release{Trust: trust, Users: r.Users, Dim: r.Dim, Levels: r.Levels, Trials: r.Trials,
		P: float64(r.Coin) / (1 << 24), FloorTrials: r.Floor, HonestFraction: honest, Rounds: r.Rounds, Units: r.Units,
		Minimizer: r.Minimizer}
}

// shuffled is a release under trust shuffle, of which changes make others.
func shuffled(changes ...func(r *release)) release {
	r := release{Trust: "shuffle", Users: 1000, Dim: 100, Levels: 19, Trials: 26, Coin: 1 << 23, Honest: "1", Rounds: 1}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func one(changes ...func(r *release)) [][]release { return [][]release{{shuffled(changes...)}} }

func rounds(n int) func(r *release) { return func(r *release) { r.Rounds = n } }
func pan(r *release)                { r.Trust, r.Trials, r.Floor = "pan", 0, 26000 }
func both(r *release)               { r.Trust, r.Floor = "shuffle+pan", 20000 }
func split(r *release)              { r.Trust, r.Levels, r.Trials, r.Floor = "split", 15, 0, 20000 }
func local(r *release) {
	r.Trust, r.Users, r.Trials, r.Units = "local", 4, 20000, 50
}
func few(r *release) { r.Users, r.Dim, r.Levels, r.Trials = 50, 3, 4, 40 }

func vectors() []vector {
	return []vector{
		{Name: "shuffle", Delta: 1e-6, Stints: one()},
		{Name: "two rounds of a user", Delta: 1e-6, Stints: one(rounds(2))},
		{Name: "a hundred rounds of a user", Delta: 1e-6, Stints: one(rounds(100))},
		{Name: "nine tenths are honest", Delta: 1e-6, Stints: one(func(r *release) { r.Honest = "0.9" })},
		{Name: "a third is honest", Delta: 1e-6, Stints: one(func(r *release) { r.Honest = "1/3" })},
		{Name: "a biased coin", Delta: 1e-6, Stints: one(func(r *release) { r.Coin = 1 << 20 })},
		{Name: "few users", Delta: 1e-3, Stints: one(few)},
		{Name: "a small delta", Delta: 1e-12, Stints: one()},
		{Name: "pan", Delta: 1e-6, Stints: one(pan)},
		{Name: "pan, of two participations", Times: 2, Delta: 1e-6, Stints: one(pan)},
		{Name: "shuffle and pan", Delta: 1e-6, Stints: one(both)},
		{Name: "shuffle and pan, of three participations", Times: 3, Delta: 1e-6, Stints: one(both)},
		{Name: "split", Delta: 1e-6, Stints: one(split)},
		{Name: "split, in fifty rounds", Delta: 1e-6, Stints: one(split, rounds(50))},
		{Name: "split, of three participations", Times: 3, Delta: 1e-6,
			Stints: [][]release{{shuffled(split)}, {shuffled(split, rounds(2)), shuffled(split, func(r *release) { r.Levels = 7 })}}},
		{Name: "local, of fifty units", Delta: 1e-6, Stints: one(local)},
		{Name: "local, of a minimiser", Delta: 1e-6, Stints: one(local, func(r *release) { r.Minimizer = true })},
		{Name: "two participations", Times: 2, Delta: 1e-6, Stints: one()},
		{Name: "three participations in one of two phases", Times: 3, Delta: 1e-6,
			Stints: [][]release{{shuffled()}, {shuffled(func(r *release) { r.Dim, r.Levels, r.Trials = 400, 9, 10 })}}},
		{Name: "two phases of the same users", Delta: 1e-6,
			Stints: [][]release{{shuffled(), shuffled(rounds(3), func(r *release) { r.Trials = 60 })}}},
		{Name: "hardly any noise", Delta: 1e-6, Stints: one(few, func(r *release) { r.Trials = 1 })},
	}
}

// finite returns a number, or nil for none.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// TestAccountingVectors compares what releases cost with the file, which devices in other languages are held to.
func TestAccountingVectors(t *testing.T) {
	file := vectors()
	for i := range file {
		v := &file[i]
		v.Times = max(v.Times, 1)
		var of [][]Release
		for _, stint := range v.Stints {
			var releases []Release
			for _, r := range stint {
				releases = append(releases, r.of(t))
			}
			of = append(of, releases)
		}
		g, err := RepeatedEpsilon(v.Times, of, v.Delta)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		v.Epsilon, v.Learner = finite(g.Epsilon), finite(g.Learner)
		if g.HasIntruder {
			v.Intruder = finite(g.Intruder)
		}
		if g.HasOperator {
			v.Operator = finite(g.Operator)
		}
		for _, epsilon := range []float64{0, 0.5, 2} {
			d, err := repeatedDelta(v.Times, of, epsilon)
			if err != nil {
				t.Fatal(err)
			}
			v.At = append(v.At, delta{epsilon, d.Delta})
		}
	}
	golden.JSON(t, "../../docs/vectors/accounting.json", file, 1e-12)
}
