package audit

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// broken is a mixer without floors of its own, to which a test adds the floors that it needs.
type broken struct {
	real
	front, back []uint64
}

func (b broken) Look() ([]uint64, error) {
	seen, err := b.real.Look()
	for j := range seen {
		seen[j] += b.front[j]
	}
	return seen, err
}

func (b broken) Close() (shuffle.Release, error) {
	rel, err := b.real.Close()
	for j := range rel.Totals {
		rel.Totals[j] += b.front[j] + b.back[j]
	}
	return rel, err
}

// withFloors makes mixers whose floors have these trials.
func withFloors(front, back uint64) func(shuffle.Config) (subject, error) {
	return func(c shuffle.Config) (subject, error) {
		c.Params.FloorTrials = 0
		m, err := shuffle.NewMixer(c)
		if err != nil {
			return nil, err
		}
		b := broken{real: real{m}, front: make([]uint64, c.Params.Dim), back: make([]uint64, c.Params.Dim)}
		for _, f := range []struct {
			trials uint64
			into   []uint64
		}{{front, b.front}, {back, b.back}} {
			noise, err := randomizer.NewBinomial(f.trials, c.Params.Coin)
			if err != nil {
				return nil, err
			}
			draw(noise, c.Entropy(), f.into)
		}
		return b, nil
	}
}

func draw(noise *randomizer.Binomial, src rand.Source, into []uint64) {
	for j := range into {
		into[j] = noise.Sample(src)
	}
}

// oneSeed makes real mixers that lay both floors from generators with one seed.
func oneSeed(c shuffle.Config) (subject, error) {
	seeds := rand.New(c.Entropy())
	seed := dptest.Seed(seeds.Uint64())
	c.Entropy = func() rand.Source { return rand.NewChaCha8(seed) }
	return newSubject(c)
}

// An intruder who looks once has one floor and the target's own noise against him, before and after the look. What the
// accountant counts on is that both floors are there, are as large as planned, and are independent; an audit of a mixer
// that lacks any of it fails.
//
// Seeds are fixed. With free ones an honest mixer fails with probability below 1/1000. The broken ones pass less
// often: their true delta(0) is above the claim by 0.13 and more, and the bounds are 0.07 wide, which leaves 7
// standard errors of 0.008.
func TestAuditOfTheIntruder(t *testing.T) {
	const floor, own, levels = 50, 10, 6
	base := Config{
		View: Intruder,
		Params: randomizer.Params{Dim: 5, ClipNorm: 3, Levels: levels, Trials: own, FloorTrials: floor,
			Coin: randomizer.Fair},
		Users: 10, Trials: 5000, Claim: exact(floor+own, levels, 0.5),
	}
	pan := base
	pan.Params.Trials, pan.Claim = 0, exact(floor, levels, 0.5)
	two := pan
	two.Together, two.Claim = 2, exact(floor, 2*levels, 0.5)
	for name, c := range map[string]struct {
		Config
		subject func(shuffle.Config) (subject, error)
		pass    bool
	}{
		"two together, pan":                 {two, nil, true},
		"two together, half of the front":   {two, withFloors(floor/2, floor), false},
		"two together, half of the back":    {two, withFloors(floor, floor/2), false},
		"shuffle+pan":                       {base, nil, true},
		"pan":                               {pan, nil, true},
		"the broken mixer with both floors": {base, withFloors(floor, floor), true},
		"no front floor":                    {base, withFloors(0, floor), false},
		"no back floor":                     {base, withFloors(floor, 0), false},
		"half of the front floor":           {base, withFloors(floor/2, floor), false},
		"half of the back floor":            {base, withFloors(floor, floor/2), false},
		"one seed for both floors":          {base, oneSeed, false},
		"pan without a front floor":         {pan, withFloors(0, floor), false},
		"pan without a back floor":          {pan, withFloors(floor, 0), false},
		"pan with one seed for both floors": {pan, oneSeed, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.Config
			cfg.subject, cfg.Entropy = c.subject, seeded(t, 8)
			rep, err := Run(context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for _, pt := range rep.Points {
				t.Logf("epsilon %.3f: delta claimed %.4f, at least %.4f (%s)", pt.Epsilon, pt.Claimed, pt.Lower, pt.Pair)
			}
			if rep.Pass != c.pass {
				t.Errorf("pass = %v, want %v; epsilon at %v: claimed %v, at least %v", rep.Pass, c.pass, rep.Delta,
					rep.ClaimedEpsilon, rep.EmpiricalEpsilonLower)
			}
			if rep.Points[0].Lower <= 0 {
				t.Error("the audit has no power at all")
			}
		})
	}
}

// The mixer of production, with generators of its own making. False-alarm rate 1e-9; if both floors came from one
// seed, the floors would cancel, and every run would tell the inputs apart. The bound that is asked for leaves 0.05
// for intervals that are 0.05 wide and have standard errors of 0.005.
func TestAuditOfTheIntruderInProduction(t *testing.T) {
	const floor, levels = 50, 6
	rep, err := Run(context.Background(), Config{
		View: Intruder, Params: randomizer.Params{Dim: 1, ClipNorm: 3, Levels: levels, FloorTrials: floor,
			Coin: randomizer.Fair},
		Users: 10, Trials: 20000, Claim: exact(floor, levels, 0.5), Confidence: 1 - 1e-9,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !rep.Pass || !(rep.Points[0].Lower > 0.5) {
		t.Errorf("%+v: want a pass, and delta(0), which is %.3f, found to be above 0.5", rep, rep.Points[0].Claimed)
	}
}

// At the size of a real floor, that of epsilon = 1 at delta = 1e-6, half of either floor is still seen: delta(0) is
// 0.094 as claimed and 0.132 with the half. Seeds are fixed; both bounds are 0.01 wide at 43750 runs, which leaves
// 0.018, or 5 standard errors of 0.0034.
func TestAuditOfTheIntruderAtScale(t *testing.T) {
	if !longtest.Run(t, "audits of floors of 1151 trials") {
		t.SkipNow()
	}
	const floor, levels = 1151, 4
	for name, c := range map[string]struct {
		subject func(shuffle.Config) (subject, error)
		pass    bool
	}{
		"both floors": {nil, true}, "half of the front floor": {withFloors(floor/2, floor), false},
		"half of the back floor": {withFloors(floor, floor/2), false}, "one seed for both floors": {oneSeed, false},
	} {
		t.Run(name, func(t *testing.T) {
			rep, err := Run(context.Background(), Config{
				View: Intruder, Params: randomizer.Params{Dim: 2, ClipNorm: 1, Levels: levels, FloorTrials: floor,
					Coin: randomizer.Fair},
				Users: 1000, Trials: 50000, Claim: exact(floor, levels, 0.5), subject: c.subject, Entropy: seeded(t, 9),
			})
			if err != nil {
				t.Fatal(err)
			}
			pt := rep.Points[0]
			t.Logf("delta(0): claimed %.4f, at least %.4f (%s); epsilon at %.4g: claimed %.4f, at least %.4f", pt.Claimed,
				pt.Lower, pt.Pair,
				rep.Delta, rep.ClaimedEpsilon, rep.EmpiricalEpsilonLower)
			if rep.Pass != c.pass {
				t.Errorf("pass = %v, want %v", rep.Pass, c.pass)
			}
		})
	}
}

// One user is a cohort, too: the look is before or after the only report.
func TestIntruderOfOneUser(t *testing.T) {
	for users, want := range map[int][2]int{1: {0, 0}, 2: {1, 1}, 3: {2, 2}} {
		for name, l := range looks(users, 1) {
			if l.target >= users || l.after > users || (l.after > l.target) != (l.target == 0 && l.after == 1) {
				t.Errorf("%d users, %s: %+v", users, name, l)
			}
		}
		if l := looks(users, 1)["target after the look"]; l.target != want[0] || l.after != want[1] {
			t.Errorf("%d users: the last one is %d, the look after %d", users, l.target, l.after)
		}
	}
}

// Three of five: the first three are before the look, the last three after it.
func TestIntruderOfThree(t *testing.T) {
	all := looks(5, 3)
	for name, want := range map[string][2]int{"target before the look": {0, 3}, "target after the look": {2, 2}} {
		for _, suffix := range []string{"", ", floors against each other"} {
			if l := all[name+suffix]; l.target != want[0] || l.after != want[1] {
				t.Errorf("%s: the first one is %d, the look after %d, want %v", name+suffix, l.target, l.after, want)
			}
		}
	}
}

// The audit reads the real mixer's memory: it sees the front floor and every report.
func TestLookSeesTheMixersMemory(t *testing.T) {
	p := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 4, Coin: randomizer.Fair}
	m, err := newSubject(shuffle.Config{Params: p, Cohort: 2, Minimum: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Add([]shuffle.ReportID{{1}}, p.Pack(nil, []uint32{3, 1})); got != shuffle.Accepted {
		t.Fatal(got)
	}
	seen, err := m.Look()
	if err != nil || len(seen) != 2 || seen[0] != 3 || seen[1] != 1 {
		t.Errorf("saw %v, %v; want the totals 3 and 1", seen, err)
	}
}
