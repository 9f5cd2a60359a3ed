package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
)

// regularised returns the bounds of docs/proofs/resque.md, Theorem R: the expected gap of the smoothed,
// regularised mean of the records, and the cost of smoothing.
func (v pv) regularised(p Public, m *moments, callNoise, gradNoise float64) (gap, smoothing float64) {
	call, _ := v.callBound(p, m, callNoise)
	L, D := p.Lipschitz, p.Lipschitz/v.ridge
	strength := v.strength(L)
	lambda := strength - v.ridge
	variance, bias := v.estimate(p, gradNoise)
	var total, sum, steps float64
	for range v.rounds {
		a := resque.NextStep(lambda/(1+v.ridge*total), total)
		total += a
		sum += total
		steps += a * a / (1 + v.ridge*total)
	}
	gap = (D*D/2+(1+v.s/2)*(1+v.s/2)*call*L*v.r*strength/lambda*sum+variance*steps)/total + bias
	if math.IsNaN(gap) {
		gap = math.Inf(1)
	}
	return gap, L * v.r / v.s * math.Sqrt(float64(p.Dim))
}

// A localized is iterative localisation (Carmon et al. 2023, Proposition 11): phase i minimises the mean over its
// own block of the records plus (ridge_i/2) ||x - x_(i-1)||^2, with the whole budget, since a record is in one
// block (docs/proofs/resque.md, "Localisation").
type localized struct {
	blocks []int // lengths; floor(N/2^i)
	phases []pv  // ridge_1, 8 ridge_1, 64 ridge_1, ...
	bound  float64
}

// leastBlock is the length of the shortest block that is planned.
const leastBlock = 256

// blockPlan is a phase at L = ridge = 1: its gap, in L^2/ridge, and what smoothing costs.
type blockPlan struct {
	pv             pv
	gap, smoothing float64
}

// planLocalized plans blocks until one more does not lower the bound.
func planLocalized(p Public) (localized, error) {
	best := localized{bound: math.Inf(1)}
	var plans []blockPlan
	var lengths []int
	var from []float64
	for i := 1; p.N>>i >= leastBlock && (p.Rounds == 0 || p.Rounds>>i > 0); i++ {
		q := p.block(i)
		b, at, err := planBlock(q, from)
		if err != nil {
			break
		}
		from = at
		plans, lengths = append(plans, b), append(lengths, q.N)
		cost := localizationCost(plans, lengths)
		bound := p.Lipschitz * p.Radius * math.Sqrt(2*cost)
		if !(bound < best.bound) {
			break
		}
		best = localized{blocks: lengths[:i:i], bound: bound, phases: make([]pv, i)}
		ridge := math.Sqrt(2*cost) * p.Lipschitz / p.Radius
		for j, b := range plans {
			best.phases[j] = b.pv.scaled(p.Lipschitz, ridge*math.Pow(8, float64(j)))
		}
	}
	if len(best.phases) == 0 {
		return best, fmt.Errorf("resque: no plan for a block of %d of %d records; want at least %d, or more passes or rounds",
			p.N/2, p.N, 2*leastBlock)
	}
	return best, nil
}

// block returns the public numbers of phase i at L = ridge = 1.
func (p Public) block(i int) Public {
	q := p
	q.N, q.Lipschitz, q.Radius = p.N>>i, 1, 1
	q.Passes = p.passes()
	if p.Rounds > 0 {
		q.Rounds = p.Rounds >> i
	}
	return q
}

// scaled returns a plan at L = ridge = 1 for others.
func (v pv) scaled(lipschitz, ridge float64) pv {
	v.r *= lipschitz / ridge
	v.eta /= ridge
	v.ridge = ridge
	return v
}

// localizationCost returns Q of docs/proofs/resque.md, Theorem L: the bound is ridge_1 R^2/2 + (L^2/ridge_1)
// Q.
func localizationCost(plans []blockPlan, lengths []int) float64 {
	var sum float64
	last := len(plans) - 1
	for i, b := range plans {
		share := math.Pow(8, -float64(i))
		sum += share * (2/float64(lengths[i]) + b.smoothing)
		if i < last {
			sum += 8 * share * b.gap
		} else {
			sum += share * math.Sqrt(2*b.gap)
		}
	}
	return sum
}

// planBlock searches from a point, that of the block before, or nil.
func planBlock(p Public, from []float64) (blockPlan, []float64, error) {
	s := pvSearch{p: p, last: new(int), most: p.passes() * float64(p.N), ridge: 1}
	n, d := float64(p.N), float64(p.Dim)
	if from == nil {
		from = []float64{math.Log(0.05 / math.Sqrt(n*d)), 0, math.Ln2 * math.Floor(math.Log2(min(1024, n/8))),
			math.Log(min(200, n/8)), 0}
		from[1] = math.Log(s.most / 4 / (math.Exp(from[2]) + math.Exp(from[3])))
	} else {
		from = []float64{from[0] + math.Ln2/2, from[1] - math.Ln2/2, from[2], min(from[3], math.Log(n/8)), from[4]}
	}
	from[1] = min(from[1], math.Log(p.maxRounds()))
	directions := [][]float64{{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {-1, 0.5, 0, 0, 0}, {0, -1, 1, 0, 0}, {0, 0, 1, 0, 0},
		{0, -1, 0, 1, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}, {-2, 1, -1, -1, 0}, {-2, 1, 0, 0, 0}}
	m := newMoments(blockRatio, 1, p.Convex)
	at := minimize(from, directions, func(x []float64) float64 { return s.score(m, x) })
	v, ok := s.shape(m, at)
	if !ok || math.IsInf(s.score(m, at), 1) {
		return blockPlan{}, nil, fmt.Errorf("resque: no plan for a block of %d", p.N)
	}
	s.charge(&v, math.Exp(at[4]))
	cost, err := s.settle(&v)
	if err != nil {
		return blockPlan{}, nil, err
	}
	smoothing := v.r / v.s * math.Sqrt(d)
	return blockPlan{pv: v, smoothing: smoothing, gap: (cost - smoothing) / 8 * (1 + 1e-9)}, at, nil
}

// blockRatio is s = r/rho of a phase.
const blockRatio = 0.05

// ledger returns the ledger of the dearest phase, which every record in a phase is charged at most; or of the
// first phase that is beyond the target.
func (l localized) ledger(p Public) ledger {
	most := newLedger(p.target())
	for _, v := range l.phases {
		book := v.ledger(p)
		if !book.fits() {
			return book
		}
		if book.cost().Epsilon > most.cost().Epsilon {
			most = book
		}
	}
	return most
}

// rounds returns the sums over all phases of rounds and of expected queries.
func (l localized) rounds() (rounds int, queries float64) {
	for i, v := range l.phases {
		rounds += v.rounds
		queries += v.queries(l.blocks[i])
	}
	return rounds, queries
}

// run learns by the method.
func (l localized) run(ctx context.Context, p Public, r *records, entropy rand.Source) ([]float64, ledger, error) {
	rows := places(r.data.Rows, p.N, rand.New(entropy))
	x, dearest := make([]float64, p.Dim), newLedger(p.target())
	for i, v := range l.phases {
		q := p
		q.N, q.Radius = l.blocks[i], p.Lipschitz/v.ridge
		block, err := newRecords(Data{Loss: r.data.Loss, Features: r.data.Features, Rows: rows[:q.N]}, q)
		if err != nil {
			return nil, dearest, err
		}
		rows = rows[q.N:]
		next, book, err := v.from(ctx, q, x, block, entropy)
		if err != nil {
			return nil, book, err
		}
		x = next
		if i == 0 || book.cost().Epsilon > dearest.cost().Epsilon {
			dearest = book
		}
	}
	return x, dearest, nil
}

// places puts the rows into n places, all arrangements alike likely; a place that is left is empty, and has
// the gradient 0. Runs with one row more have so the same arrangements of all other rows, and blocks of
// places differ in that row's place alone.
func places(rows []convex.Example, n int, rng *rand.Rand) []convex.Example {
	out := make([]convex.Example, n)
	copy(out, rows)
	rng.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
