package planning

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestPlannedBoundsHaveTheTheoremsExponents checks Theorems 4.1, 4.3, 4.7, 4.8, 4.9 and C.3, and for apgd
// Theorem 4.1 of Lowy, Razaviyayn, ICLR 2023: where a planned bound consists of privacy's noise, it has the
// theorem's power of the users, of the dimension and of mu, which represents epsilon, for every method and
// under pan. The powers count d^(1/2)/(epsilon n) as one.
func TestPlannedBoundsHaveTheTheoremsExponents(t *testing.T) {
	for _, c := range []struct {
		method string
		power  float64
		users  uint64
		dim    int
	}{
		{schedule.PSGD, 1. / 2, 1e8, 1e5},
		{schedule.PAGD, 4. / 5, 1e10, 1e5},
		{schedule.PAGDEnvelope, 2. / 3, 1e8, 1e5},
		{schedule.PAGDRestarts, 2, 1e10, 1e5},
		{schedule.PAGDEnvelopeRestarts, 4. / 3, 1e9, 1e5},
		{schedule.PGD, 1, 1e7, 1e5},
		{schedule.PGDEnvelope, 1, 1e7, 1e5},
		{schedule.PGDRestarts, 2, 1e8, 1e5},
		{schedule.PGDEnvelopeRestarts, 2, 1e8, 1e5},
		{schedule.APGD, 1, 1e7, 1e5}, // on the users' mean loss
		{schedule.APGDEnvelope, 1, 1e7, 1e5},
		{schedule.APGDRestarts, 1, 1e8, 1e5}, // on the population
	} {
		m := traitsOf(c.method)
		for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan} {
			if m.Interactive && trust != accounting.Shuffle {
				continue
			}
			p := Problem{Users: c.users, Dim: c.dim, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 1}, Epsilon: 0.01,
				Delta: 1e-6, Trust: trust,
				HonestFraction: accounting.One, Rounds: Rounds{Interactive: m.Interactive, MaxRounds: 1 << 30}}
			if m.Restarts {
				p.Ridge = 0.5
			}
			if m.Envelope {
				p = p.ForLoss(convex.Absolute{}, 1, -1, 1)
			} else {
				p = p.ForLoss(convex.Squared{}, 1, -1, 1)
			}
			bound := func(change func(p *Problem)) float64 {
				q := p
				change(&q)
				from, err := q.accountedFor()
				if err != nil {
					t.Fatal(err)
				}
				d, err := newDraft(q, c.method, unrounded{from})
				if err != nil {
					t.Fatal(err)
				}
				plan, err := d.plan()
				if err != nil {
					t.Fatal(err)
				}
				return plan.ExcessRisk
			}
			at := bound(func(*Problem) {})
			mu := func(epsilon float64) float64 {
				of, err := accounting.GaussianMu(accounting.Budget{Epsilon: epsilon, Delta: 1e-6})
				if err != nil {
					t.Fatal(err)
				}
				return of
			}
			users := math.Log(bound(func(p *Problem) { p.Users *= 4 })/at) / math.Log(4)
			dim := math.Log(bound(func(p *Problem) { p.Dim *= 4 })/at) / math.Log(4)
			epsilon := math.Log(bound(func(p *Problem) { p.Epsilon *= 4 })/at) / math.Log(mu(0.04)/mu(0.01))
			for _, of := range []struct{ got, want float64 }{{users, -c.power}, {dim, c.power / 2}, {epsilon, -c.power}} {
				if math.Abs(of.got/of.want-1) > 0.05 {
					t.Errorf("%s, %v: power %.3f, want %.3f", c.method, trust, of.got, of.want)
				}
			}
			t.Logf("%s, %v: bound %.3g, powers %.3f of users, %.3f of mu, %.3f of the dimension; want %.3f, %.3f", c.method,
				trust, at, users, epsilon, dim, -c.power, c.power/2)
		}
	}
}

// unrounded is a source without rounding, which the theorems leave out: what it does to the stability of pgd falls like
// the root of the theorem's term (docs/reference/bounds.md).
type unrounded struct{ source }

func (u unrounded) model(m, rounds uint64) noise {
	return noise{privacy: u.source.model(m, rounds).privacy}
}

func (u unrounded) exact(m, rounds uint64) (noise, accounting.Plan, error) {
	return u.model(m, rounds), accounting.Plan{}, nil
}

// TestRidgesHaveTheirExponents: with a ridge the planned bounds of methods without restarts fall with the power of the
// users that the table has for a ridge. Those of plain descent have a logarithm beside it, which makes them flatter.
func TestRidgesHaveTheirExponents(t *testing.T) {
	for _, c := range []struct {
		method      string
		users       uint64
		power, near float64
	}{
		{schedule.PSGD, 1e10, 1, 0.12},
		{schedule.PAGD, 1e10, 4. / 3, 0.01},
		{schedule.PAGDEnvelope, 1e9, 1, 0.01},
		{schedule.PGD, 1e9, 2, 0.08},
		{schedule.PGDEnvelope, 1e7, 2, 0.12},
		{schedule.APGD, 1e8, 1, 0.01}, // on the population
		{schedule.APGDEnvelope, 1e7, 1, 0.05},
	} {
		m := traitsOf(c.method)
		p := Problem{Dim: 1e5, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 1}, Epsilon: 0.01, Ridge: 0.5,
			Delta: 1e-6, Trust: accounting.Shuffle, HonestFraction: accounting.One,
			Rounds: Rounds{Interactive: m.Interactive, MaxRounds: 1 << 30}}
		loss := convex.Loss(convex.Squared{})
		if m.Envelope {
			loss = convex.Absolute{}
		}
		p = p.ForLoss(loss, 1, -1, 1)
		bound := func(n uint64) float64 {
			q := p
			q.Users = n
			from, err := q.accountedFor()
			if err != nil {
				t.Fatal(err)
			}
			d, err := newDraft(q, c.method, unrounded{from})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := d.plan()
			if err != nil {
				t.Fatal(err)
			}
			return plan.ExcessRisk
		}
		got := math.Log(bound(4*c.users)/bound(c.users)) / math.Log(4)
		if math.Abs(got/-c.power-1) > c.near {
			t.Errorf("%s: power %.3f, want %.3f", c.method, got, -c.power)
		}
		if privacy, _ := m.Exponents(true); privacy != -c.power {
			t.Errorf("%s: the table has %v, the bound %v", c.method, privacy, -c.power)
		}
	}
}
