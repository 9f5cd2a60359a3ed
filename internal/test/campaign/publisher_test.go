package campaign

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

var errDied = errors.New("the device's store died")

// A publisher is a gateway of some users, the same in all its lives.
type publisher struct {
	*process
	w      *world
	number int
	many   int  // rows
	crowd  bool // its users share a coordinate, see years
	store  participation.Store

	mu      sync.Mutex
	fault   storeFault
	crashed bool                                      // in some life; what it knew and had not stored is lost
	drawn   map[participation.Key]int                 // rows by key
	reports map[[16]byte]ticket                       // by report id: all that were ever made durable
	final   map[participation.Key]participation.State // Counted and Unknown are for ever
	doubts  map[uint64]bool                           // rounds in which a publish was not answered with a sequence
	summary *device.Summary                           // of the last life that ran to its end
	ledger  ledger.Ledger
	lives   int
	told    map[int][]telling   // by user
	charged map[int]time.Time   // when a user's first participation became durable
	shown   map[ticket][]answer // of all publishes of a user's part in a round
	lie     lie                 // how the broker lies to it now
	fooled  map[int]bool        // users who were lied to
	refused int                 // publishes, for lack of room
	grants  []grant             // that this publisher received
}

// A ticket is one user's part in one round.
type ticket struct {
	user  int
	round uint64
}

// A storeFault is a fault of the next write of a store.
type storeFault int

const (
	sound     storeFault = iota
	writeLost            // not made
	writeKept            // made, and not acknowledged
)

func newPublisher(w *world, number, many int) *publisher {
	p := &publisher{w: w, number: number, many: many, store: participation.NewMemoryStore(),
		drawn:   map[participation.Key]int{},
		reports: map[[16]byte]ticket{}, final: map[participation.Key]participation.State{}, doubts: map[uint64]bool{},
		ledger: memory.NewLedger(), told: map[int][]telling{}, charged: map[int]time.Time{}, shown: map[ticket][]answer{},
		fooled: map[int]bool{}, lie: w.Lie}
	p.process = &process{name: fmt.Sprint("publisher", number), begin: p.publish, exclusive: true}
	for i := range many {
		p.drawn[p.key(i)] = i
	}
	return p
}

func (p *publisher) source() string { return fmt.Sprint("users", p.number, ".libsvm") }

func (p *publisher) key(row int) participation.Key {
	if p.w.whole() {
		return participation.EventKey("all rows of a silo")
	}
	return participation.RowKey(p.source(), int64(row*p.w.units()))
}

// user returns the coordinate of a row.
func (p *publisher) user(row int) int {
	if p.crowd {
		return p.w.Publishers * p.w.Rows
	}
	return p.number*p.many + row
}

func (p *publisher) rows() iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		each := p.w.units()
		for i := range p.many * each {
			row := task.Row{Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(p.user(i/each)*each + i%each)},
				Value: []float64{1}, Label: "-1"}
			time.Sleep(p.w.Pace / time.Duration(each))
			if !yield(row, nil) {
				return
			}
		}
	}
}

// publish begins a life that offers all rows again; the store knows which took part.
func (p *publisher) publish(l *link) (func(context.Context) error, func() string) {
	if p.w.broken.forgets {
		p.store, p.ledger = participation.NewMemoryStore(), memory.NewLedger()
	}
	store := &lifeStore{Store: p.store, p: p}
	l.onKill = func() {
		store.kill()
		p.mu.Lock()
		p.crashed = true
		p.mu.Unlock()
	}
	policy := p.w.policy()
	if p.w.broken.spends {
		policy.MaxEpsilon = accounting.MaxEpsilon
	}
	c, err := device.New(device.Settings{
		Task: name, Transport: p.transport(l), Store: store, Source: p.source(), Bundle: p.w.Bundle,
		Ledger:   p.accounts(),
		UserKeys: p.w.Gateway && !p.crowd, Policy: policy, Poll: poll, MaxPoll: 4 * poll,
		Timeout: 2 * poll, Rows: p.w.Units > 0,
		CloseWait: p.w.closeWait(), Logger: p.log.logger(p.w.begun), Entropy: deviceEntropy,
	})
	must(err)
	p.mu.Lock()
	p.lives++
	p.mu.Unlock()
	if p.w.Gateway && !p.crowd {
		return func(ctx context.Context) error { return p.ask(ctx, l, c) }, func() string { return "asking" }
	}
	return func(ctx context.Context) error {
		sum, err := c.Run(ctx, p.rows())
		if sum.Events != sum.Counted+sum.Uncounted+sum.Unknown+sum.Refused {
			p.w.violate("%s: the summary does not add up: %+v", p.name, sum)
		}
		if err == nil {
			p.mu.Lock()
			p.summary = &sum
			p.mu.Unlock()
		}
		return err
	}, func() string { return "publishing" }
}

// A lifeStore is the store as one life has it open.
type lifeStore struct {
	participation.Store
	p    *publisher
	mu   sync.Mutex
	dead bool
}

func (s *lifeStore) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// Write implements participation.Store.
func (s *lifeStore) Write(c participation.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errDied
	}
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := p.fault
	p.fault = sound
	if fault != sound {
		s.dead, p.crashed = true, true
		p.w.troubled("store dies", p.process, 0)
	}
	if fault == writeLost {
		return errDied
	}
	if err := s.Store.Write(c); err != nil {
		return err
	}
	for _, e := range c.Events {
		p.note(e)
	}
	if fault == writeKept {
		return errDied
	}
	return nil
}

// note remembers report ids, and that what is final stays; p.mu is held.
func (p *publisher) note(e participation.Record) {
	row, ok := p.drawn[e.Key]
	if !ok {
		p.w.violate("%s stores an event that it does not have", p.name)
		return
	}
	if was, ok := p.final[e.Key]; ok && was != e.State {
		// In an interactive phase it is charged again, and a later round may count it.
		again := e.Draw.Most > 1 && (e.State == participation.Charged && e.Before == was || was == participation.Unknown &&
			e.State == participation.Counted)
		if !again {
			p.w.violate("user %d was %v and is %v", p.user(row), was, e.State)
		}
	}
	switch e.State {
	case participation.Counted, participation.Unknown:
		p.final[e.Key] = e.State
	case participation.Charged:
		p.seated(e)
		p.reports[e.Draw.Report] = ticket{user: p.user(row), round: uint64(e.Draw.Round)}
		if _, known := p.charged[p.user(row)]; !known {
			p.charged[p.user(row)] = time.Now()
		}
	}
}

// closeWait returns how long a device waits for a Close: practically for ever, unless one may never come
// because the broker loses it or the last round is given up.
func (w *world) closeWait() time.Duration {
	if w.Loser >= losesRecords || w.Endless {
		return time.Minute
	}
	return closeWait
}
