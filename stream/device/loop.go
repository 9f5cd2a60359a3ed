package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A chunk of events becomes durable in one write and travels in one publish: small enough that the stage opens the
// first reports of a round while the last ones are sealed, large enough that the synced writes do not count. Bundles
// are sealed as wholes, so their chunks may be larger.
const (
	chunkMessages = 256
	maxChunk      = 1024 // events
)

// flushAfter is the longest time that answers wait to be stored: most of their events are settled earlier, and are
// written anyway.
const flushAfter = 10 * time.Second

// A loop performs what the records of its events decide. One goroutine, run, owns all of it; the only others make
// deliveries, which read nothing that the loop changes meanwhile. The package comment draws the way of an event.
type loop struct {
	Settings
	contract *contract
	reports  *reports
	courier  *courier
	uplink   uplink
	records  *records
	accounts accounts
	clock    clock
	inbox    *inbox
	beats    *beats // when events join, and publishes leave
	chance   chance
	chunk    int // events, as above

	ended   chan struct{} // closed when the task's End was read
	endedAt time.Time

	events  map[participation.Key]*event // waiting or charged
	queue   *queue                       // those that wait
	rounds  map[stream.Round]*round
	current *round           // newest round, nil before the first
	dirty   map[*bundle]bool // answered, and not stored yet
	flushed time.Time        // when dirty was empty last

	wakes   <-chan stream.Wake // nil: the broker gives none
	pace    pace
	tick    time.Time // of the next retry; zero: there is nothing to retry
	looked  time.Time // when rounds were looked for last
	idle    bool      // nothing was to be done when the loop last rested
	resting bool      // and so the next poll is far away
	learned uint64    // things that were read or heard, and new

	// that Run stands for, see Device.Expect; 0: Run was not called
	rows       atomic.Uint64
	retry      bool                       // the timer ticked: send unanswered bundles again
	unsure     bool                       // something may have been written, or lost, that nobody told of
	older      stream.Round               // newest round known that the broker does not show, or shows another for; 0: none
	olderSince time.Time                  // when that was first seen
	total      Summary                    // of settled events, for Progress
	early      map[participation.Key]bool // of an earlier process, settled before anybody asked about them here
}

func newLoop(c Settings) *loop {
	chunk := min(chunkMessages*c.Bundle, maxChunk)
	l := &loop{
		Settings: c, clock: newClock(), chance: system, chunk: chunk, inbox: newInbox(2 * chunk),
		beats:    newBeats(chunk, 2*chunk),
		contract: &contract{agreed: make(chan struct{})},
		uplink: uplink{log: c.Logger, poll: c.Poll, bundle: c.Bundle, window: newWindow(chunk, c.MaxInFlight),
			refusals: refusals{chance: system}},
		records:  &records{port: c.Transport, task: c.Task, timeout: c.Timeout, log: c.Logger, told: make(map[string]bool)},
		accounts: accounts{ledger: c.Ledger, policy: c.Policy, perUser: c.UserKeys, log: c.Logger},
		ended:    make(chan struct{}),
		events:   make(map[participation.Key]*event), rounds: make(map[stream.Round]*round), dirty: make(map[*bundle]bool),
		early: make(map[participation.Key]bool), flushed: time.Now(),
		queue: newQueue(system), pace: newPace(c.Poll, c.MaxPoll, system),
	}
	l.accounts.now = l.clock.now
	l.reports = &reports{settings: &l.Settings, contract: l.contract, beats: l.beats, chance: system, chunk: chunk}
	l.courier = &courier{task: c.Task, transport: c.Transport, timeout: c.Timeout, contract: l.contract, chance: system,
		moment: l.moment, delivered: newAnswers[delivery](), replies: newAnswers[*ask]()}
	return l
}

// answersWithin bounds the time that a client that ends waits for the broker's answers: an event that was sent and not
// answered is in doubt for ever, if its round closes before a later client has sent it again.
const answersWithin = 2 * time.Second

// run works until ctx ends (nil), or until the policy refuses or the store fails. Every event is answered when it
// returns.
func (l *loop) run(ctx context.Context) error {
	online, cut := context.WithCancel(context.WithoutCancel(ctx))
	l.courier.online = online
	ctx, cancel := context.WithCancel(ctx)
	err := l.work(ctx)
	cancel()
	late := time.AfterFunc(answersWithin, cut)
	l.courier.group.Wait()
	late.Stop()
	cut()
	return l.shutdown(err)
}

func (l *loop) work(ctx context.Context) error {
	if err := l.load(); err != nil {
		return err
	}
	l.wakes = l.records.watch(ctx)
	l.pace.soon(time.Now(), l.spread())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(l.rest(time.Now()))
		var ready <-chan struct{}
		if l.room() > 0 {
			ready = l.inbox.ready
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case w, ok := <-l.wakes:
			if !ok {
				l.wakes = nil // the next poll watches again
				continue
			}
			err = l.takeWake(ctx, w)
		case <-timer.C:
			err = l.alarm(ctx, time.Now())
		case <-l.courier.delivered.ready:
			for _, d := range l.courier.delivered.take() {
				l.answered(d)
			}
		case <-l.courier.replies.ready:
			for _, a := range l.courier.replies.take() {
				l.replied(a)
			}
		case <-l.inbox.first:
			err = l.refresh(ctx)
		case <-ready:
			err = l.refresh(ctx)
			l.beats.arm()
		case <-l.beats.timer.C:
			err = l.beat(ctx)
			l.inbox.take(0) // what is left waits for another tick
		}
		if err == nil {
			err = l.advance(ctx)
		}
		if err != nil && err == ctx.Err() { // while a report was worked out
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// alarm performs the work that is due by time.
func (l *loop) alarm(ctx context.Context, now time.Time) error {
	if !l.tick.IsZero() && !now.Before(l.tick) {
		l.tick, l.retry = time.Time{}, true
	}
	for _, r := range l.rounds {
		if r.unjudged() && !now.Before(r.judged) {
			l.judge(ctx, r)
		}
	}
	if now.Before(l.pace.due) {
		return nil
	}
	if l.wakes == nil {
		l.wakes = l.records.watch(ctx)
	}
	return l.poll(ctx)
}

// refresh polls before an event joins a client that had nothing to do and so has not polled for long.
func (l *loop) refresh(ctx context.Context) error {
	now := time.Now()
	switch {
	case !l.idle && !l.resting || l.over():
		return nil
	case now.Sub(l.looked) < l.Poll:
		l.resting = false
		l.pace.soon(now, l.Poll)
		return nil
	}
	return l.poll(ctx)
}

// over reports whether the task has ended.
func (l *loop) over() bool { return !l.endedAt.IsZero() }

// advance does all that can be done without waiting.
func (l *loop) advance(ctx context.Context) error {
	if l.contract.agreement != nil && l.has() != nothing {
		l.compareClock(ctx)
	}
	for _, n := range slices.Sorted(maps.Keys(l.rounds)) {
		if err := l.settle(l.rounds[n]); err != nil {
			return err
		}
	}
	if l.over() {
		return l.finish()
	}
	if err := l.resend(); err != nil {
		return err
	}
	l.leave(l.queue.sort(l.current, l.settled), "they took part as often as they may, or their phase is over")
	if l.current.keeps() > 0 {
		if err := l.seat(ctx); err != nil {
			return err
		}
	}
	for l.current.keeps() == 0 && !l.gathering() && l.joinable() && l.uplink.room() > 0 {
		if l.uplink.refusals.holds(l.current.attempt, time.Now()) || l.clock.holds() {
			break
		}
		if l.beats.left == 0 {
			if l.queue.waits(l.current, l.places(), time.Now()) {
				l.beats.arm()
			}
			break
		}
		n := min(int(min(l.current.most-l.current.joined, uint64(l.chunk))), l.uplink.room(), l.beats.left)
		if n = l.uplink.most(n, len(l.current.owed), l.current.attempt, time.Now()); n == 0 {
			break
		}
		batch, misfits := l.queue.next(l.current, n, l.places(), time.Now())
		l.leave(misfits, "the round is none that they may answer")
		if len(batch) == 0 {
			break
		}
		l.beats.left -= len(batch)
		if err := l.join(ctx, batch); err != nil {
			return err
		}
	}
	l.retry = false
	if time.Since(l.flushed) < flushAfter {
		return nil
	}
	return l.flush()
}

// joinable reports whether the newest round takes events of this client.
func (l *loop) joinable() bool { return !l.over() && l.current.joinable() }

// gathering reports whether the members of a round wait a moment for members whose outcome is not known yet, so
// that all of them join in one order.
func (l *loop) gathering() bool {
	return l.joinable() && l.current.later() && l.current.elapsed(time.Now()) < l.Poll && l.absent() > 0
}

// room returns the number of events that can be taken in now. After the task's end any event is taken in and
// answered from the store.
func (l *loop) room() int {
	switch {
	case l.contract.agreement != nil && l.over():
		return l.chunk
	case !l.joinable() || l.queue.ready(l.current, time.Now()) > 0 || l.contract.terms == nil && l.clock.unknown:
		return 0
	}
	places := l.places()
	if l.current.later() { // after a restart members are found among their reserve, which another process held too
		most := 2 * l.current.most
		places = most - min(most, l.current.joined+l.absent()+uint64(len(l.queue.events)))
	}
	return min(int(min(places, uint64(l.chunk))), l.MaxInFlight-l.uplink.sending-l.queue.seats.taken())
}

// places returns the number of further events that may draw for the newest attempt: a client offers a round as
// many of its users as the round takes of all clients together, and the announced share of them joins. Of blocks
// of rows it offers one: each organisation reports once.
func (l *loop) places() uint64 {
	taken := l.current.joined + l.absent() + uint64(len(l.queue.drawn)+len(l.queue.seats.line))
	return l.current.most - min(taken, l.current.most)
}

// stands returns the number of events that draw for an attempt on behalf of this client: the rows of Run, which
// are read when there is room for them, or the events of Publish that wait. Rows that have taken part are not
// subtracted, for the stage does not know of their part either.
func (l *loop) stands() uint64 {
	if l.contract.agreement != nil && l.contract.agreement.Spec.Silo != nil { // it offers a round one block, of whatever many
		return 1
	}
	switch n := l.rows.Load(); n {
	case 0:
		return uint64(l.queue.holds()) + l.inbox.waiting()
	case unknownRows:
		return max(1, manifest.Users(l.contract.agreement.Task.Plan))
	default:
		return max(1, n)
	}
}

// absent counts the members of the newest round that are still charged in an earlier one. Their places are kept
// for them.
func (l *loop) absent() (n uint64) {
	if !l.current.later() {
		return 0
	}
	for _, r := range l.rounds {
		if r == l.current {
			continue
		}
		for _, b := range r.bundles {
			for _, e := range b.events {
				if e.record.Stays(l.current.phase()) {
					n++
				}
			}
		}
	}
	return n
}

// load takes up what an earlier process left charged.
func (l *loop) load() error {
	bundles := make(map[[16]byte]*bundle)
	for record, err := range l.Store.Charged() {
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		e := &event{record: record}
		l.events[record.Key] = e
		r := l.rounds[record.Draw.Round]
		if r == nil {
			r = &round{number: record.Draw.Round, manifest: record.Draw.Manifest}
			l.rounds[r.number] = r
		}
		r.joined++
		b := bundles[record.Draw.Bundle]
		if b == nil {
			b = new(bundle)
			bundles[record.Draw.Bundle] = b
			r.bundles = append(r.bundles, b)
			r.owed = append(r.owed, b)
		}
		b.events = append(b.events, e)
	}
	for _, b := range bundles {
		slices.SortFunc(b.events, func(x, y *event) int { return int(x.record.Draw.Place) - int(y.record.Draw.Place) })
	}
	if n := len(l.events); n > 0 {
		l.Logger.Info("resuming: these reports were charged in an open round and have no outcome yet", "reports", n)
	}
	return nil
}

func (l *loop) progress() {
	if l.Progress == nil {
		return
	}
	p := Progress{Summary: l.total, InFlight: l.uplink.sending, Over: l.over(), Standing: l.standing(),
		RefusedPublishes: l.uplink.refusals.count, Older: l.older, OlderSince: l.olderSince, Trouble: l.uplink.trouble,
		Troubled: l.uplink.troubled}
	p.Ahead, p.AheadSince = l.clock.foundAhead()
	if r := l.current; r != nil {
		p.Round, p.Attempt, p.Joined, p.Cohort = r.number, r.attempt.Number, r.joined, r.place.Cohort
	}
	l.Settings.Progress(p)
}
