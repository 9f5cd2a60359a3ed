package client

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A chunk of events becomes durable in one write and travels in one publish: small enough that the stage opens the first
// reports of a round while the last ones are sealed, large enough that the synced writes do not count. Bundles are sealed
// as wholes, so their chunks may be larger.
const (
	chunkMessages = 256
	maxChunk      = 1024 // events
)

// flushAfter is how long answers wait to be stored: most of their events are settled by then, and written anyway.
const flushAfter = 10 * time.Second

// A gateway performs what the automata of its events decide. One goroutine, run, owns all of it; the only others are
// flights, which get copies.
type gateway struct {
	Config
	view
	intake *intake
	chunk  int // events, as above

	agreed chan struct{}      // closed when terms are there
	terms  *consent.Agreement // written before agreed is closed
	ended  chan struct{}      // closed when the task's End was read

	unpinned *participation.Pin // what the first event writes before anything is done with it; nil: the store is pinned

	events  map[participation.Key]*event // waiting or charged
	again   []*event                     // waiting
	reserve []*event                     // waiting for places that the users of an interactive phase leave
	untidy  bool                         // again has not been arranged since it grew, or since a round came
	lots    lots                         // waiting too
	rounds  map[stream.Round]*round
	current *round // newest round, nil before the first
	endedAt time.Time
	retry   bool // the timer ticked: send unanswered parcels again
	dirty   map[*event]bool
	flushed time.Time // when dirty was empty last

	reports    *report.Maker // of phase, at the newest round
	phase      int           // of the plan, its index
	flying     int           // events whose publish is on its way
	landing    chan flight
	flights    sync.WaitGroup
	publishing stream.Trouble
	total      Summary // of settled events, for Progress
}

// An event is a participation and what is needed to go on with it.
type event struct {
	part    participation.Record
	example convex.Example
	present bool // example is known: false for what only the store told of
	lot     uint32
	answers []func(Outcome)
}

// A parcel is the events that travel in one message. They are charged, sent and acknowledged together.
type parcel struct {
	events []*event
	flying bool
}

// A round is one in which events of this gateway take part, or the newest.
type round struct {
	number   stream.Round
	manifest stream.Hash
	message  *wire.Round // nil for rounds known from the store alone
	place    manifest.Place
	open     *wire.Open            // newest attempt known
	attempt  participation.Attempt // open's
	closed   *participation.Closed
	done     bool // closed, as the store proves
	parcels  []*parcel
	owed     []*parcel // among parcels: those that the newest attempt may not have
	joined   uint64    // events, also those of parcels that are settled; without those that dropped out
	opened   time.Time // when this gateway saw open
}

func newGateway(c Config) *gateway {
	chunk := min(chunkMessages*c.Bundle, maxChunk)
	return &gateway{
		Config: c, chunk: chunk,
		view:   view{records: c.Records, task: c.Task, timeout: c.Timeout, log: c.Logger, told: make(map[string]bool)},
		intake: newIntake(2 * chunk),
		agreed: make(chan struct{}), ended: make(chan struct{}),
		events: make(map[participation.Key]*event), rounds: make(map[stream.Round]*round), dirty: make(map[*event]bool),
		landing: make(chan flight, c.MaxInFlight), flushed: time.Now(),
	}
}

// run works until ctx ends (nil), or until the policy refuses or the store fails. Every offer is answered when it
// returns.
func (g *gateway) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	err := g.loop(ctx)
	cancel()
	g.flights.Wait()
	return g.shutdown(err)
}

func (g *gateway) loop(ctx context.Context) error {
	if err := g.load(); err != nil {
		return err
	}
	var wake <-chan struct{}
	var err error
	jitter := rand.New(randomizer.NewEntropy())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ready <-chan struct{}
		if g.room() > 0 {
			ready = g.intake.ready
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-wake:
			if !ok {
				wake = nil // the timer watches again
				continue
			}
			err = g.refresh(ctx)
		case <-timer.C:
			// Devices that wake together would read together.
			timer.Reset(g.Poll/2 + time.Duration(jitter.Int64N(int64(g.Poll))))
			g.retry = true
			if wake == nil {
				wake = g.watch(ctx)
			}
			err = g.refresh(ctx)
		case f := <-g.landing:
			g.landed(f)
		case <-ready:
			err = g.take(g.intake.take(min(g.room(), g.chunk)))
		}
		if err == nil {
			err = g.advance(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// watch asks to be woken; without, the timer alone reads.
func (g *gateway) watch(ctx context.Context) <-chan struct{} {
	wake, err := g.records.Watch(ctx, g.view.task)
	if err != nil {
		g.log.Warn("watch task; trying again", "err", err)
		return nil
	}
	return wake
}

// room is how many offers can be taken now: after the end all of them, to be answered from the store.
func (g *gateway) room() int {
	switch {
	case g.terms != nil && g.over():
		return g.chunk
	case !g.joinable() || len(g.again) > 0:
		return 0
	}
	places := g.places()
	if g.current.later() { // after a restart members are found among their reserve, which another process held too
		most := 2 * g.current.message.Cohort
		places = most - min(most, g.current.joined+g.absent()+uint64(len(g.reserve)))
	}
	return min(int(min(places, uint64(g.chunk))), g.MaxInFlight-g.flying)
}

// joinable says whether the newest round takes events of this gateway: open, and not full of them.
func (g *gateway) joinable() bool {
	r := g.current
	return r != nil && !g.over() && r.open != nil && r.closed == nil && !r.done && r.joined < r.message.Cohort
}

// bundle is how many users one message of a round may carry.
func (g *gateway) bundle(r *round) int { return min(g.Bundle, int(r.message.Mechanism.MaxBundle)) }

func (g *gateway) over() bool { return !g.endedAt.IsZero() }

// advance does all that can be done without waiting.
func (g *gateway) advance(ctx context.Context) error {
	for _, n := range slices.Sorted(maps.Keys(g.rounds)) {
		if err := g.settle(g.rounds[n]); err != nil {
			return err
		}
	}
	if g.over() {
		return g.finish()
	}
	if err := g.resend(ctx); err != nil {
		return err
	}
	g.arrange()
	g.relieve(time.Now())
	for !g.gathering(time.Now()) && g.joinable() && g.flying < g.MaxInFlight {
		batch := g.lucky(min(int(min(g.current.message.Cohort-g.current.joined, uint64(g.chunk))), g.MaxInFlight-g.flying))
		if len(batch) == 0 {
			break
		}
		if err := g.join(ctx, batch); err != nil {
			return err
		}
	}
	g.retry = false
	if time.Since(g.flushed) < flushAfter {
		return nil
	}
	return g.flush()
}

// load takes up what an earlier process left charged.
func (g *gateway) load() error {
	parcels := make(map[[16]byte]*parcel)
	for part, err := range g.Store.Charged() {
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		e := &event{part: part}
		g.events[part.Key] = e
		r := g.rounds[part.Draw.Round]
		if r == nil {
			r = &round{number: part.Draw.Round, manifest: part.Draw.Manifest}
			g.rounds[r.number] = r
		}
		r.joined++
		p := parcels[part.Draw.Bundle]
		if p == nil {
			p = new(parcel)
			parcels[part.Draw.Bundle] = p
			r.parcels = append(r.parcels, p)
			r.owed = append(r.owed, p)
		}
		p.events = append(p.events, e)
	}
	for _, p := range parcels {
		slices.SortFunc(p.events, func(a, b *event) int { return int(a.part.Draw.Place) - int(b.part.Draw.Place) })
	}
	if n := len(g.events); n > 0 {
		g.log.Info("resuming: these users were charged in an open round and have no outcome yet", "users", n)
	}
	return nil
}

func (g *gateway) progress() {
	if g.Progress == nil {
		return
	}
	p := Progress{Summary: g.total, InFlight: g.flying, Over: g.over()}
	if r := g.current; r != nil {
		p.Round, p.Joined, p.Cohort = r.number, r.joined, r.message.Cohort
		if r.open != nil {
			p.Attempt = r.attempt.Number
		}
	}
	g.Progress(p)
}
