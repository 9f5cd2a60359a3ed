package planning

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestBoundsWhereAllReportsCome: the bound of a plan's constants at as many reports as were planned is the plan's own, for
// every method, of users and of silos; and with fewer it is never smaller.
func TestBoundsWhereAllReportsCome(t *testing.T) {
	for _, silos := range []bool{false, true} {
		for _, name := range schedule.Names() {
			m := traitsOf(name)
			p := Problem{Users: 20_000, Dim: 5, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 3}, Epsilon: 1, Delta: 1e-6,
				Trust: accounting.Shuffle, HonestFraction: accounting.One, Algorithm: name, Rounds: Rounds{Interactive: m.Interactive}}
			if silos {
				p.Trust, p.Silos = accounting.Local, Silos{Count: 10, Units: 2000, Least: 2000, Reports: 10, Spread: 0.2}
			}
			for _, p.Ridge = range []float64{0, 0.1} {
				loss := convex.Loss(convex.Logistic{})
				if m.Envelope {
					loss = convex.Hinge{}
				}
				p = p.ForLoss(loss, 1, -1, 1)
				if p.Applies(name) != nil {
					continue
				}
				plan, err := MakePlan(p)
				if err != nil {
					t.Fatal(name, err)
				}
				all, ok := p.with(plan, func(f *wire.Phase) turnout { return turnout{f.Cohort: 1} })
				if ok == m.Minimizers || ok && math.Abs(all/plan.ExcessRisk-1) > 1e-9 {
					t.Errorf("%s, silos %v, ridge %v: bound %v, of the plan %v", name, silos, p.Ridge, all, plan.ExcessRisk)
				}
				if least, ok := p.AtMinimum(plan); ok && !(least > plan.ExcessRisk) {
					t.Errorf("%s, silos %v, ridge %v: bound %v at the minimum, %v if all come", name, silos, p.Ridge, least,
						plan.ExcessRisk)
				}
			}
		}
	}
}

// TestHalfTheSilosCome: by hand, for pagd of 20 silos in one pass of which 10 come: twice the noise of a mean, twice the
// sampling, and (20-10)/19 S^2/10 for the silos that differ.
func TestHalfTheSilosCome(t *testing.T) {
	const spread = 0.5
	p := Problem{Users: 32560, Dim: 124, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 20}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: schedule.PAGD,
		Silos: Silos{Count: 20, Units: 1628, Least: 1628, Reports: 20, Spread: spread}}
	p = p.ForLoss(convex.Logistic{}, math.Sqrt(15), -1, 1)
	p.Minimum = 10
	plan, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	f, of := plan.Plan.Phases[0], plan.Forecasts[0]
	steps, v := float64(f.Rounds), f.GetAcceleration().V
	block, privacy := float64(of.Units), of.Privacy.NoiseStd*of.Privacy.NoiseStd+of.Privacy.RoundingStd*of.Privacy.RoundingStd
	variance := 1/(10*block) + 124*2*privacy + 10./19*spread*spread/10
	want := 2*v*20*20/(steps*(steps+1)) + 4*variance*(steps+2)/(3*v)
	if got, ok := p.AtMinimum(plan); !ok || math.Abs(got/want-1) > 1e-9 {
		t.Errorf("bound %v, want %v (all: %v)", got, want, plan.ExcessRisk)
	}
}

// TestSilosThatComeByChance: by hand, for pagd of 3 silos in one pass, each of which is there with probability 1/2, of whom
// one is waited for at least: 3, 2 and 1 come with probability 1/8, 3/8 and 1/2, so the mean of 1/M_r is 1/24 + 3/16 +
// 1/2 = 35/48; noise and sampling of one report have that factor, and silos that differ by S add S^2 (3 * 35/48 - 1)/2.
func TestSilosThatComeByChance(t *testing.T) {
	const spread = 0.5
	p := Problem{Users: 3000, Dim: 4, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 2}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: schedule.PAGD,
		Silos: Silos{Count: 3, Units: 1000, Least: 1000, Reports: 3, Spread: spread}}
	p = p.ForLoss(convex.Logistic{}, 1, -1, 1)
	p.Minimum = 1
	plan, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	f, of := plan.Plan.Phases[0], plan.Forecasts[0]
	steps, v := float64(f.Rounds), f.GetAcceleration().V
	privacy := 3 * (of.Privacy.NoiseStd*of.Privacy.NoiseStd + of.Privacy.RoundingStd*of.Privacy.RoundingStd) // of one report
	variance := (1/float64(of.Units)+4*privacy)*35/48 + spread*spread*(3*35./48-1)/2
	want := 2*v*2*2/(steps*(steps+1)) + 4*variance*(steps+2)/(3*v)
	got, reports, ok := p.Present(plan, 0.5)
	if !ok || math.Abs(got/want-1) > 1e-9 || math.Abs(reports-48./35) > 1e-12 {
		t.Errorf("bound %v, want %v (all: %v); M %v, want 48/35", got, want, plan.ExcessRisk, reports)
	}
	if got, reports, ok := p.Present(plan, 1); !ok || math.Abs(got/plan.ExcessRisk-1) > 1e-9 || reports != 3 {
		t.Errorf("all come: bound %v of %v reports, want %v", got, reports, plan.ExcessRisk)
	}
	for _, share := range []float64{0, -1, 1.5, math.NaN()} {
		if _, _, ok := p.Present(plan, share); ok {
			t.Errorf("a probability of %v", share)
		}
	}
}

// TestTurnout: numbers of reports have probabilities that add up to 1, and those of many users the mean of their law.
func TestTurnout(t *testing.T) {
	var sum, mean float64
	for m, chance := range turnoutOf(9000, 20000, 0.7) {
		sum, mean = sum+chance, mean+chance*float64(m)
	}
	if math.Abs(sum-1) > 1e-9 || math.Abs(mean/14000-1) > 1e-9 {
		t.Errorf("probabilities add up to %v, mean %v", sum, mean)
	}
	if few := turnoutOf(19999, 20000, 0.5); math.Abs(few[19999]-1) > 1e-12 {
		t.Errorf("%v", few)
	}
}

// TestBySilos: where silos may differ as far as gradients can, a round of fewer has a larger bound than where they are
// alike; with all of them in a round it is the same.
func TestBySilos(t *testing.T) {
	p := Problem{Users: 32560, Dim: 124, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 20}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: schedule.PAGD,
		Silos: Silos{Count: 20, Units: 1628, Least: 1628, Reports: 12, Spread: 0.01}}
	p = p.ForLoss(convex.Logistic{}, math.Sqrt(15), -1, 1)
	plan, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	all := p.BySilos(plan)
	var of []uint64
	for _, b := range all {
		of = append(of, b.Reports)
		if b.Reports == 12 && b.Bound != plan.ExcessRisk {
			t.Errorf("12 silos: %v, planned %v", b.Bound, plan.ExcessRisk)
		}
		if b.Reports == 20 && b.Bound != b.Unknown || b.Reports < 20 && !(b.Bound < b.Unknown) {
			t.Errorf("%+v", b)
		}
	}
	if !slices.Equal(of, []uint64{20, 12, 10, 5, 2, 1}) {
		t.Errorf("numbers of silos %v", of)
	}
	if p.Trust = accounting.Shuffle; p.BySilos(plan) != nil {
		t.Error("trust shuffle, whose assumption depends on the number of silos")
	}
}

// TestFewerReports: silos of a9a that are alike have a smaller bound with some of them in a round of one pass, and with all
// of them where they may differ as much as gradients can or where everybody answers all rounds.
func TestFewerReports(t *testing.T) {
	p := Problem{Users: 32560, Dim: 124, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 20}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: schedule.PAGD,
		Silos: Silos{Count: 20, Units: 1628, Least: 1628, Reports: 20, Spread: 0.01}}
	p = p.ForLoss(convex.Logistic{}, math.Sqrt(15), -1, 1)
	of := func(p Problem) (Proposal, uint64, float64) {
		plan, err := MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		m, risk, ok := p.FewerReports(plan)
		if ok != (m > 0) || m >= p.Silos.Reports {
			t.Errorf("%d reports, %v", m, ok)
		}
		return plan, m, risk
	}
	all, m, risk := of(p)
	if m == 0 || !(risk < 0.99*all.ExcessRisk) {
		t.Fatalf("%d of 20 silos: bound %v, of all %v", m, risk, all.ExcessRisk)
	}
	q := p
	q.Silos.Reports = m
	if some, err := MakePlan(q); err != nil || some.ExcessRisk != risk {
		t.Errorf("%d silos: said %v, planned %v, %v", m, risk, some.ExcessRisk, err)
	}
	p.Interactive, p.Algorithm = true, schedule.PGD
	if _, m, _ := of(p); m != 0 {
		t.Errorf("in many passes %d silos", m)
	}
	p.Trust = accounting.Shuffle
	if _, _, ok := p.FewerReports(all); ok {
		t.Error("trust shuffle, whose assumption depends on the number of silos")
	}
}

// TestUsersWhoStayAway: by hand, for pgd of 10 users of whom 6 answer a round: the sum's noise stays what was planned, so that
// of a mean grows with (10/6)^2, rounding with 10/6, and 6 drawn of 10 have (10-6)/9 L^2/6 more.
func TestUsersWhoStayAway(t *testing.T) {
	p := Problem{Users: 10, Dim: 5, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 3}, Epsilon: 1, Delta: 1e-6,
		Trust: accounting.Shuffle, HonestFraction: accounting.One, Algorithm: schedule.PGD, Rounds: Rounds{Interactive: true}}
	p = p.ForLoss(convex.Logistic{}, 1, -1, 1)
	plan, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDraft(p, schedule.PGD, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := search{p: p, t: d.t, objective: d.objective, users: p.Users, distance: 3, prior: 1}
	of := plan.Forecasts[0].Privacy
	got := s.missing(plan.Plan.Phases[0], plan.Forecasts[0], 6)
	want := 5*(of.NoiseStd*of.NoiseStd*100/36+of.RoundingStd*of.RoundingStd*10/6) + 4./9/6
	if math.Abs(got.variance/want-1) > 1e-9 || !got.drawn {
		t.Errorf("variance %v, want %v; drawn %v", got.variance, want, got.drawn)
	}
	// the share that comes of who stays away, without the noise, which hides it here
	f := plan.Forecasts[0]
	f.Privacy.NoiseStd, f.Privacy.RoundingStd = 0, 0
	if got := s.missing(plan.Plan.Phases[0], f, 6).variance; math.Abs(got-4./54) > 1e-12 {
		t.Errorf("variance without noise %v, want %v", got, 4./54)
	}
}
