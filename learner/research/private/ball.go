package private

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
	"github.com/panlearn/panlearn/randomizer"
)

// A ball is the method of Theorem 3 (Carmon et al. 2023): resque.Outer, whose line search asks Algorithm 7, whose
// steps ask Algorithm 5 and whose proximal estimates Algorithm 6. Every number that the ledger depends on is here,
// fixed before any data; centres, strengths and what the line search decides are made of releases.
type ball struct {
	outer  resque.Outer
	rho    float64
	copies int   // of a probe
	caps   []int // of J
	kinds  []kind

	coins *randomizer.Binomial                   // see newLattice
	seen  func(s stage, of []phase, x []float64) // see player
}

// A kind is an Algorithm 5 with the number of its runs.
type kind struct {
	strong
	times int
}

// The kinds: of probes, of steps, and of the levels 0, 1, ... of proximal estimates.
const (
	ofProbe = iota
	ofStep
	ofLevel
)

// ledger returns the ledger after the whole run: all steps, each with all probes and all copies, and with the
// most solves of each level.
func (b ball) ledger(p Public) ledger {
	book := newLedger(p.target())
	for _, k := range b.kinds {
		book = k.enter(book, float64(k.times))
	}
	return book
}

// rounds returns the query depth, at most, and queries the expected number of gradients if all calls are
// made.
func (b ball) rounds(n int) (rounds int, queries float64) {
	for _, k := range b.kinds {
		for _, s := range k.strong {
			queries += float64(k.times) * s.rate.Float() * float64(n)
		}
	}
	return b.outer.Steps * (b.outer.Probes + 1), queries
}

// A ballRun is a run: the oracles that the outer loop asks.
type ballRun struct {
	ball
	*player
	levels []int // J of every step
	step   int
	left   []int // runs of each kind
}

// start draws J, before anything else, and readies a run.
func (b ball) start(p Public, data *records, entropy rand.Source) (*ballRun, error) {
	levels, err := drawLevels(b.outer.Steps, b.caps, entropy)
	if err != nil {
		return nil, err
	}
	noise, err := newLattice(b.coins, entropy)
	if err != nil {
		return nil, err
	}
	r := &ballRun{ball: b, levels: levels}
	of := make([]strong, len(b.kinds))
	for i, k := range b.kinds {
		of[i], r.left = k.strong, append(r.left, k.times)
	}
	if r.player, err = newPlayer(p, b.outer.Ball, b.rho, data, noise, of); err != nil {
		return nil, err
	}
	r.player.seen = b.seen
	return r, nil
}

// run learns by the method, from the origin.
func (b ball) run(ctx context.Context, p Public, data *records, entropy rand.Source) ([]float64, ledger, error) {
	r, err := b.start(p, data, entropy)
	if err != nil {
		return nil, newLedger(p.target()), err
	}
	return r.play(ctx)
}

// play runs the outer loop. The calls that it does not need follow from releases: they are charged as if they
// had been made, and nobody had looked.
func (r *ballRun) play(ctx context.Context) ([]float64, ledger, error) {
	x, _, err := r.outer.Run(ctx, r.p.Dim, r)
	if err != nil {
		return nil, r.book, err
	}
	for i, k := range r.kinds {
		r.book = k.enter(r.book, float64(r.left[i]))
	}
	if !r.book.fits() {
		return nil, r.book, fmt.Errorf("ledger: delta at epsilon %v is above %v", r.book.target.Epsilon, r.book.target.Delta)
	}
	return x, r.book, nil
}

// ask makes one run of a kind.
func (r *ballRun) ask(ctx context.Context, kind int, y []float64, lambda float64) ([]float64, error) {
	if r.left[kind]--; r.left[kind] < 0 {
		return nil, fmt.Errorf("ledger: more than %d runs of kind %d", r.kinds[kind].times, kind)
	}
	return r.strong(ctx, r.kinds[kind].strong, y, lambda)
}

// Distance implements Algorithm 7: it returns the distance of the aggregate of independent points.
func (r *ballRun) Distance(ctx context.Context, y []float64, lambda float64) (float64, error) {
	points := make([][]float64, r.copies)
	for i := range points {
		var err error
		if points[i], err = r.ask(ctx, ofProbe, y, lambda); err != nil {
			return 0, err
		}
	}
	return convex.Norm(aggregate(points)), nil
}

// Solve implements Algorithm 5, and Algorithm 6 with its J. The plan has fixed how exact they are: Solve
// ignores the tolerances.
func (r *ballRun) Solve(ctx context.Context, y []float64, lambda, _, _, _ float64) (x, prox []float64, err error) {
	j := r.levels[r.step]
	r.step++
	if x, err = r.ask(ctx, ofStep, y, lambda); err != nil {
		return nil, nil, err
	}
	if prox, err = resque.Proximal(j, len(r.caps), func(level int) ([]float64, error) {
		return r.ask(ctx, ofLevel+level, y, lambda)
	}); err != nil {
		return nil, nil, err
	}
	for i, v := range y {
		x[i] += v
		prox[i] += v
	}
	return x, prox, nil
}

// shortest calls f with the shortest steps of every stage: those of the largest strength.
func (b ball) shortest(p Public, f func(s stage, eta float64) error) error {
	_, most := b.outer.Strengths()
	for _, k := range b.kinds {
		distances, _ := k.distances(p.Lipschitz, most, b.outer.Ball)
		for i, s := range k.strong {
			if err := f(s, s.unit*distances[i]/p.Lipschitz); err != nil {
				return err
			}
		}
	}
	return nil
}

// rounding returns the largest relative rounding error of the last phases.
func (b ball) rounding(p Public) (worst float64) {
	_ = b.shortest(p, func(s stage, eta float64) error {
		of := phases(s.slots+1, eta)
		worst = max(worst, rounding(of[len(of)-1], p.Dim, b.outer.Ball, s.batch(p.N), p.Lipschitz))
		return nil
	})
	return worst
}

// fits returns an error if some call cannot be placed on the lattice; it covers every strength.
func (b ball) fits(p Public) error {
	return b.shortest(p, func(s stage, eta float64) error {
		_, err := s.place(p, b.outer.Ball, eta)
		return err
	})
}
