package resque

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// chunk is the number of queries that are drawn from one generator and put to the oracle at a time.
const chunk = 256

// maxCall is the largest number of queries of one call: more is a subproblem that nobody will wait for.
const maxCall = 1 << 40

// A pool asks an oracle. The queries of a call are all known when it begins and do not depend on each other: they
// are drawn in chunks, each from a generator keyed by (seed, call, chunk), put to the oracle by workers, and handed
// out in the order of their slots. So what a solver reads is the same for any number of workers. The solver's
// goroutine is one of the workers while it waits; with one worker there is no other.
//
// It counts rounds: sets of queries that can be made at once. The caller marks where one begins.
type pool struct {
	oracle  Oracle
	dim     int
	workers int
	seed    [32]byte

	calls                uint64
	depth, queries       int64
	inRound, mostInRound int64

	free []*answers // of calls that ended
}

// round begins a round: the calls until the next do not depend on each other's answers.
func (p *pool) round() {
	p.depth++
	p.inRound = 0
}

// answers holds the answers to n queries, one chunk of them.
type answers struct {
	chunk  int64
	n      int
	xi, g  []float64 // n rows each: draws from N(0, rho^2 I), and what was answered at centre + xi
	points []float64
	err    error
}

// A call is one batch of queries around a centre.
type call struct {
	p      *pool
	ctx    context.Context
	cancel context.CancelFunc
	number uint64
	centre []float64
	rho    float64
	n      int64 // queries
	chunks int64

	now  *answers   // that are being read
	slot int        // of these, the next
	own  []*answers // all of the call, which the pool has back at its end
	// Of the workers: chunks to ask, at most len(ready) of them unread, and those that are answered, chunk i in
	// ready[i mod len(ready)].
	jobs  chan *answers
	ready []chan *answers
	done  sync.WaitGroup
}

// open begins a call of n queries around a centre, which stays as it is until the call is closed. The caller
// closes it.
func (p *pool) open(ctx context.Context, centre []float64, rho float64, n int64) (*call, error) {
	if n < 0 || n > maxCall {
		return nil, fmt.Errorf("%d queries in one call, want at most 2^40: ask for a larger gap", n)
	}
	c := &call{p: p, number: p.calls, centre: centre, rho: rho, n: n, chunks: (n + chunk - 1) / chunk}
	c.ctx, c.cancel = context.WithCancel(ctx)
	p.calls++
	p.queries += n
	p.inRound += n
	p.mostInRound = max(p.mostInRound, p.inRound)
	if p.workers < 2 || c.chunks < 2 {
		return c, nil
	}
	window := min(c.chunks, int64(4*p.workers))
	c.jobs, c.ready = make(chan *answers, window), make([]chan *answers, window)
	for i := range window {
		c.ready[i] = make(chan *answers, 1)
		a := c.buffers()
		a.chunk = i
		c.jobs <- a
	}
	for range min(int64(p.workers), window) - 1 {
		c.done.Go(func() {
			for a := range c.jobs {
				c.work(a)
			}
		})
	}
	return c, nil
}

// work asks a chunk and hands it out.
func (c *call) work(a *answers) {
	c.ask(a)
	c.ready[a.chunk%int64(len(c.ready))] <- a // has room: what was there is read before this became a job
}

// next returns what was drawn and answered in the next slot, until there is another call of next.
func (c *call) next() (xi, g []float64, err error) {
	if c.now == nil || c.slot == c.now.n {
		if err := c.advance(); err != nil {
			return nil, nil, err
		}
	}
	i := c.slot * c.p.dim
	c.slot++
	return c.now.xi[i : i+c.p.dim], c.now.g[i : i+c.p.dim], nil
}

// advance waits for the next chunk, and asks others until it is there.
func (c *call) advance() error {
	last, next := c.now, int64(0)
	if last != nil {
		next = last.chunk + 1
	}
	if next == c.chunks {
		panic(fmt.Sprintf("resque: a solver reads more than the %d queries of its call", c.n))
	}
	c.slot = 0
	if c.jobs == nil {
		if last == nil {
			last = c.buffers()
		}
		last.chunk = next
		c.ask(last)
		c.now = last
		return last.err
	}
	if last != nil && last.chunk+int64(len(c.ready)) < c.chunks {
		last.chunk += int64(len(c.ready))
		c.jobs <- last
	}
	wanted := c.ready[next%int64(len(c.ready))]
	for {
		select {
		case c.now = <-wanted:
			return c.now.err
		default:
		}
		select {
		case c.now = <-wanted:
			return c.now.err
		case a := <-c.jobs:
			c.work(a)
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

// close ends the call, and its workers.
func (c *call) close() {
	c.cancel()
	if c.jobs != nil {
		close(c.jobs)
		c.done.Wait()
	}
	c.p.free = append(c.p.free, c.own...)
	c.own = nil
}

// buffers returns memory for a chunk: of a call that ended, or new.
func (c *call) buffers() *answers {
	p := c.p
	var a *answers
	if last := len(p.free) - 1; last >= 0 {
		a, p.free = p.free[last], p.free[:last]
		a.n, a.err = 0, nil
	} else {
		row := chunk * p.dim
		a = &answers{xi: make([]float64, row), g: make([]float64, row), points: make([]float64, row)}
	}
	c.own = append(c.own, a)
	return a
}

// ask draws a chunk and puts it to the oracle.
func (c *call) ask(a *answers) {
	d := c.p.dim
	a.n = int(min(chunk, c.n-a.chunk*chunk))
	random := c.p.generator(c.number, a.chunk)
	xi, points, g := a.xi[:a.n*d], a.points[:a.n*d], a.g[:a.n*d]
	for i := range a.n {
		for j, centre := range c.centre {
			v := c.rho * random.NormFloat64()
			xi[i*d+j], points[i*d+j] = v, centre+v
		}
	}
	if a.err = c.ctx.Err(); a.err == nil {
		a.err = c.p.oracle.Query(c.ctx, g, points, random)
	}
	for _, v := range g {
		if v-v != 0 && a.err == nil { // an infinity, or not a number
			a.err = errors.New("oracle: an answer is not finite")
		}
	}
}

// generator returns the generator of a chunk of a call.
func (p *pool) generator(call uint64, chunk int64) *rand.Rand {
	var text [48]byte
	copy(text[:], p.seed[:])
	binary.BigEndian.PutUint64(text[32:], call)
	binary.BigEndian.PutUint64(text[40:], uint64(chunk))
	return rand.New(rand.NewChaCha8(sha256.Sum256(text[:])))
}
