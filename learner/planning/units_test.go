package planning

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

func siloProblem(count, units, reports uint64) Problem {
	p := Problem{Users: count * units, Dim: 20, ClipNorm: 1, Set: convex.SetDeclaration{Kind: "ball", Radius: 5},
		Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One, Algorithm: "pagd", Silos: Silos{Count: count, Units: units, Reports: reports,
			Least: units}}
	return p.ForLoss(convex.Logistic{}, 1, -1, 1)
}

// gaussian is a source of exact noise of the analytic Gaussian mechanism, for reports of k units under a trust.
type gaussian struct {
	k, mu float64
	local bool
}

func (g gaussian) model(m, rounds uint64) noise {
	sd := 2 * math.Sqrt(float64(rounds)) / (float64(m) * g.k * g.mu)
	if g.local {
		sd *= math.Sqrt(float64(m))
	}
	return noise{privacy: sd * sd}
}

func (g gaussian) exact(m, rounds uint64) (noise, accounting.Plan, error) {
	return g.model(m, rounds), accounting.Plan{}, nil
}

func (g gaussian) about(units uint64) source { g.k = float64(units); return g }

// TestBlocksOfOnePassFit: blocks of one pass are disjoint and fit: every silo has its share of the rounds'
// reports, and of those of one round to spare where some silos stay away, one in a round at most, and one unit
// more in a block would not fit.
func TestBlocksOfOnePassFit(t *testing.T) {
	for _, s := range []Silos{{Count: 20, Units: 1600, Reports: 20}, {Count: 20, Units: 100, Reports: 15},
		{Count: 7, Units: 13, Reports: 3}, {Count: 1, Units: 50, Reports: 1}} {
		spare := min(1, s.Count-s.Reports)
		for rounds := uint64(1); rounds+spare <= s.Count*s.Units/s.Reports; rounds++ {
			k := s.Blocks(rounds)
			fits := func(k uint64) bool {
				each := s.Units / k
				return each >= rounds || s.Count*each >= (rounds+spare)*s.Reports
			}
			if k < 1 || !fits(k) {
				t.Fatalf("%+v: %d rounds of blocks of %d do not fit", s, rounds, k)
			}
			if k < s.Units && fits(k+1) {
				t.Fatalf("%+v: blocks of %d would do for %d rounds, got %d", s, k+1, rounds, k)
			}
		}
		if k := s.Blocks(s.Count*s.Units + 1); k != 0 {
			t.Errorf("%+v: blocks of %d for more rounds than there are units", s, k)
		}
	}
}

// TestPlansOfSilos checks that the plan's reports, rounds and blocks are the silos'. In many passes a block is
// all of a silo, and its noise pays for every round.
func TestPlansOfSilos(t *testing.T) {
	for _, c := range []struct {
		method      string
		interactive bool
		reports     uint64
	}{{"psgd", false, 20}, {"pagd", false, 20}, {"pagd", false, 15}, {"pgd", true, 20}, {"pgd", true, 12}} {
		p := siloProblem(20, 1600, c.reports)
		p.Interactive = c.interactive
		d, err := newDraft(p, c.method, gaussian{k: 1, mu: 0.3, local: true})
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.plan()
		if err != nil {
			t.Fatal(err)
		}
		f, k := out.Plan.Phases[0], out.Forecasts[0].Units
		switch {
		case f.Cohort != c.reports || out.Plan.Silos != 20 || len(out.Plan.Phases) != 1:
			t.Errorf("%s: %v", c.method, out.Plan)
		case f.Mechanism.Units != k:
			t.Errorf("%s: mechanism of %d units, planned %d", c.method, f.Mechanism.Units, k)
		case c.interactive && (k != 1600 || f.Users != 20 || uint64(f.RoundsPerUser) != f.Rounds || f.Rounds < 2):
			t.Errorf("%s: blocks of %d, %v", c.method, k, f)
		case !c.interactive && (f.RoundsPerUser != 1 || f.Users != f.Rounds*f.Cohort || k < 2 || 20*(1600/k) < f.Users):
			t.Errorf("%s: blocks of %d, %v", c.method, k, f)
		}
	}
}

// TestSamplingOfUnits: units count, wherever they lie: where sampling alone is left, silos plan as one person
// with as many events would, and silos who stay away cost what they differ by.
func TestSamplingOfUnits(t *testing.T) {
	at := func(p Problem, steps uint64) situation {
		s := search{p: p, t: traitsOf("pagd"), users: p.Users, objective: objective{lipschitz: 1, dim: p.Dim}, distance: 1}
		m, k := s.shape(steps)
		return s.situation(m, k, steps, noise{})
	}
	alone := siloProblem(20, 1600, 20)
	alone.Silos = Silos{}
	if a, b := at(siloProblem(20, 1600, 20), 16).variance, at(alone, 16).variance; math.Abs(a/b-1) > 1e-12 {
		t.Errorf("variance of 20 blocks of 100: %v, of 2000 users: %v", a, b)
	}
	p := siloProblem(20, 1600, 10)
	p.Silos.Spread = 0.5 // 16 rounds and one to spare are 9 blocks of 177 each
	if got, want := at(p, 16).variance, 1./1770+10./19*0.25/10; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("with half of the silos: variance %v, want %v", got, want)
	}
}

// TestModelOfNoiseOfBlocks: the model of the noise: K divides it, and under trust local only the root of the
// reports does.
func TestModelOfNoiseOfBlocks(t *testing.T) {
	p := siloProblem(20, 1600, 20)
	for trust, want := range map[accounting.Trust]float64{accounting.Shuffle: 2 / (20 * 50 * 0.3),
		accounting.Local: 2 / (math.Sqrt(20) * 50 * 0.3)} {
		p.Trust = trust
		got := math.Sqrt(accounted{problem: p, mu: 0.3}.about(50).model(20, 1).privacy)
		if math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%v: %v, want %v", trust, got, want)
		}
	}
}

// TestRadiusOfPeople: a person's gradient lies within the radius, and so do the scores' share and the noise.
func TestRadiusOfPeople(t *testing.T) {
	p := siloProblem(1, 1000, 1)
	p.Silos, p.ByUser, p.Radius = Silos{}, true, 0.25
	p.Validation = &convex.Scorecard{Norm: 0.25 * 0.25, High: 3}
	if got, want := p.encodedNorm(), 0.25*math.Sqrt(1+1./16); math.Abs(got-want) > 1e-12 {
		t.Errorf("norm of a report %v, want %v", got, want)
	}
	if p.gradientNorm() != 0.25 {
		t.Errorf("gradients of people have norm %v", p.gradientNorm())
	}
	p.ByUser = false
	if p.validate() == nil {
		t.Error("a radius of events is accepted")
	}
}

// TestSent: the user who sends most is a silo where there are silos: with one pass a report of each of its
// blocks, else one a round of the longest stint.
func TestSent(t *testing.T) {
	phase := func(rounds, cohort uint64, answers uint32, again bool) *wire.Phase {
		return &wire.Phase{Rounds: rounds, Cohort: cohort, RoundsPerUser: answers, Again: again}
	}
	for name, c := range map[string]struct {
		silos          uint64
		phases         []*wire.Phase
		reports, bytes uint64
	}{
		"users once": {0, []*wire.Phase{phase(5, 10, 1, false), phase(3, 20, 1, false)}, 1, 20},
		"a stint and users": {0, []*wire.Phase{phase(5, 10, 5, false), phase(3, 10, 3, true), phase(7, 10, 7, false)}, 8,
			210},
		"silos, many":       {4, []*wire.Phase{phase(1, 4, 1, false), phase(6, 4, 6, true)}, 7, 130},
		"silos, blocks":     {4, []*wire.Phase{phase(2, 4, 1, false), phase(6, 4, 1, false)}, 8, 140},
		"some of the silos": {4, []*wire.Phase{phase(7, 3, 1, false)}, 6, 60}, // 21 reports of 4
	} {
		p := Proposal{Plan: &wire.Plan{Silos: c.silos, Phases: c.phases}}
		for i := range c.phases {
			p.Forecasts = append(p.Forecasts, Forecast{Privacy: accounting.Plan{ReportBytes: 10 * uint64(i+1)}})
		}
		reports := p.Sent(func(accounting.Plan) uint64 { return 1 })
		bytes := p.Sent(func(of accounting.Plan) uint64 { return of.ReportBytes })
		if reports != c.reports || bytes != c.bytes {
			t.Errorf("%s: %d reports, %d bytes, want %d, %d", name, reports, bytes, c.reports, c.bytes)
		}
	}
}
