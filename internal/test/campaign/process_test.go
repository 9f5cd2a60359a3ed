package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

// A process has one life after the other.
type process struct {
	name string
	// begin makes what runs in a life. It may set the life's onKill.
	begin func(*link) (run func(context.Context) error, status func() string)
	// exclusive processes own a disk: the next life waits until the last one has let go of it.
	exclusive bool

	mu   sync.Mutex
	life *life
	over bool // the newest life has run to the end of the task
	log  log
	away bool // it is not started at the beginning
	told bool // or it ended with a sentence that names what was lost
}

type life struct {
	link   *link
	done   chan struct{}
	status func() string
}

func (p *process) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

func (l *life) running() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// start begins a life, unless one is running that was not stopped.
func (w *world) start(p *process) {
	if old := p.current(); old.running() {
		if old.link.ctx.Err() == nil {
			return
		}
		if p.exclusive {
			<-old.done
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{w: w, owner: p, records: w.broker, writer: w.broker, ctx: ctx, die: cancel, onKill: func() {},
		rng: rand.New(rand.NewPCG(w.Seed, uint64(len(p.name))))}
	reader, err := w.broker.Reader(name)
	must(err)
	l.reader = reader
	if w.broken.link != nil {
		w.broken.link(l)
	}
	run, status := p.begin(l)
	now := &life{link: l, done: make(chan struct{}), status: status}
	p.mu.Lock()
	// A life that begins after the end may read an old copy of the broker and take part again; it too has to see
	// the end.
	p.life, p.over, p.told = now, false, false
	p.mu.Unlock()
	go func() {
		defer close(now.done)
		err := run(ctx)
		switch {
		case err == nil:
			p.mu.Lock()
			p.over = p.over || p.life == now
			p.mu.Unlock()
		case ctx.Err() == nil && !errors.Is(err, state.ErrFailed) && !errors.Is(err, errDied) && !w.named(p, err):
			w.violate("%s gave up: %v", p.name, err)
		}
		cancel()
	}()
}

// crash ends the life at once; stop lets it end as it likes.
func (p *process) crash() {
	if l := p.current(); l != nil {
		l.link.kill()
	}
}

func (p *process) stop() {
	if l := p.current(); l != nil {
		l.link.die()
	}
}

// said reports whether the process ended with a message that asks an operator to act.
func (p *process) said() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// forget lets a process that came to its end be started again.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.told = false, false
}

func (p *process) finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over || p.told
}

// reopen returns the learner's disk as the next process finds it.
func (w *world) reopen() *storetest.Memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.disk.Close() // the last life's handle, failed or not
	disk, err := w.disk.Reopen()
	must(err)
	disk.Fault = w.crashAtCommit
	w.disk = disk
	return disk
}

// learn begins a life of the learner on what is on its disk.
func (w *world) learn(l *link) (func(context.Context) error, func() string) {
	disk := w.reopen()
	l.onKill = func() { _ = disk.Close() }
	var store state.Store = disk
	if w.broken.store != nil {
		store = w.broken.store(l, disk)
	}
	c := w.service(l, store)
	w.mu.Lock()
	c.AcceptRollback, c.Logger = w.accept, w.learner.log.logger(w.begun)
	w.mu.Unlock()
	s, err := service.New(c)
	must(err)
	return s.Run, func() string { return "learning" }
}

// crashAtCommit returns the disk fault that was asked for, once.
func (w *world) crashAtCommit(state.Checkpoint) storetest.Fault {
	w.mu.Lock()
	f := w.diskFault
	w.diskFault = storetest.NoFault
	w.mu.Unlock()
	if f != storetest.NoFault {
		w.troubled("disk fails", w.learner, 0)
	}
	return f
}

// mix begins a life of a stage process.
func (w *world) mix(l *link, number int) (func(context.Context) error, func() string) {
	s, err := stage.New(stage.Config{
		Task: name, Records: l, Reports: l, PlaceServer: l, Identity: w.identity.stage, Limits: w.broker.Limits(), LeaseTTL: leaseOf,
		Poll: poll, Prefetch: 16, Entropy: func() rand.Source { return stageEntropy },
		Marks: w.marksOf(number, l), Logger: w.stages[number].log.logger(w.begun),
		Observer: stage.Observer{Report: func(r stage.Reason) { w.examined(r) }},
	})
	must(err)
	return s.Run, func() string { return fmt.Sprintf("%+v", s.Status()) }
}

// settleTime returns how long a quiet world is watched before it counts as waiting: longer than a deadline
// and its extension by slowly dripping reports, two lost leases and a claim without a batch together, and
// longer than users wait for members of an interactive phase.
func (w *world) settleTime() time.Duration {
	quiet := 2*w.stale() + 8*leaseOf + 10*poll
	if wait := w.closeWait(); wait < closeWait {
		quiet += 2 * wait
	}
	if w.Together > 0 {
		quiet += stream.ReserveAfter(w.stale())
	}
	return quiet
}
