package private

import (
	"context"
	"math"
)

// restarts returns the schedule of Algorithm 5 (Carmon et al. 2023): k = ceil(log2 log2 T) calls of Algorithm
// 4, of T_i = 2^(i-k) T steps at b_i = 2^((k-i)/2) beta. It takes T > 2.
//
// So T_(i+1) = 2 T_i, b_(i+1) = b_i/sqrt(2), and the sum of (b_i T_i)^2 is (1 - 2^-k) (beta T)^2.
func restarts(T, beta float64) (steps, betas []float64) {
	k := max(1, int(math.Ceil(math.Log2(math.Log2(T)))))
	for i := range k {
		steps = append(steps, math.Ldexp(T, i-k))
		betas = append(betas, beta*math.Pow(2, float64(k-i)/2))
	}
	return steps, betas
}

// powerOfTwo rounds down to a power of two, but not below 2.
func powerOfTwo(x float64) int {
	n := 2
	for float64(2*n) <= x {
		n *= 2
	}
	return n
}

// doubling returns bounds on the calls of Algorithm 5: the distance r_i from the minimiser at which each
// begins, and the gap D_i that it begins with, then the last one's. first is D_0; a call's gap is at most
// factors[i] L r_i, and r_i = min(most, sqrt(2 D_i/lambda)) by strong convexity.
//
// Without most this is D_(i+1) = sqrt(D_i E_i) for E_i = 2 factors[i]^2 L^2/lambda. Distances fall as lambda
// rises, if first is proportional to 1/lambda.
func doubling(first, lipschitz, lambda, most float64, factors []float64) (distances, gaps []float64) {
	gap := first
	gaps = append(gaps, gap)
	for _, c := range factors {
		r := min(most, math.Sqrt(2*gap/lambda))
		gap = c * lipschitz * r
		distances, gaps = append(distances, r), append(gaps, gap)
	}
	return distances, gaps
}

// A stage is a call of Algorithm 4 whose steps have length unit r_i/L for whatever r_i <= 2r it begins with.
type stage struct {
	slotted
	unit   float64
	factor float64 // Lemma V: its gap is at most factor L r_i
}

// A strong is Algorithm 5: stages one after another, each from where the last one ended.
type strong []stage

// distances returns r_i and the gaps of a strength lambda, from the centre: the gap there is at most L^2/(2
// lambda) (Lemma 8).
func (a strong) distances(lipschitz, lambda, r float64) (distances, gaps []float64) {
	factors := make([]float64, len(a))
	for i, s := range a {
		factors[i] = s.factor
	}
	return doubling(lipschitz*lipschitz/(2*lambda), lipschitz, lambda, 2*r, factors)
}

// last returns the stage that ends a run.
func (a strong) last() stage { return a[len(a)-1] }

// enter returns the ledger after so many more runs: every stage is an entry.
func (a strong) enter(book ledger, times float64) ledger {
	for _, s := range a {
		book = book.with(times, s.call)
	}
	return book
}

// A player plays calls around centres in balls of one radius, and charges each before it starts.
type player struct {
	p       Public
	r, rho  float64
	data    *records
	noise   lattice
	book    ledger
	samples map[int]*slotter                       // by the number of slots
	seen    func(s stage, of []phase, x []float64) // every stage, as it was placed and where it ended, for audits
}

// newPlayer makes one for these calls.
func newPlayer(p Public, r, rho float64, data *records, noise lattice, of []strong) (*player, error) {
	out := &player{p: p, r: r, rho: rho, data: data, noise: noise, book: newLedger(p.target()),
		samples: map[int]*slotter{}}
	for _, a := range of {
		for _, s := range a {
			if out.samples[s.slots] != nil {
				continue
			}
			records, err := newSampler(p.N, s.rate, noise.entropy)
			if err != nil {
				return nil, err
			}
			out.samples[s.slots] = newSlotter(records, s.slots)
		}
	}
	return out, nil
}

// strong returns the displacement from y of a point near the minimiser of F + (lambda/2) ||. - y||^2 in B(y, r).
func (r *player) strong(ctx context.Context, a strong, y []float64, lambda float64) ([]float64, error) {
	distances, _ := a.distances(r.p.Lipschitz, lambda, r.r)
	x, still := make([]float64, len(y)), make([]float64, len(y))
	for i, s := range a {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.book.charge(s.call); err != nil {
			return nil, err
		}
		of, err := s.place(r.p, r.r, s.unit*distances[i]/r.p.Lipschitz)
		if err != nil {
			return nil, err
		}
		newSolver(len(y), r.r, r.rho, lambda, s.batch(r.p.N), of, r.noise).solve(x, y, still, r.data,
			r.samples[s.slots].draw())
		if r.seen != nil {
			r.seen(s, of, x)
		}
	}
	return x, nil
}
