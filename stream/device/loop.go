package device

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A chunk of events becomes durable in one write and travels in one publish: small enough that the stage opens the
// first reports of a round while the last ones are sealed, large enough that the cost of the synced writes does not
// matter. Bundles are sealed as wholes, so their chunks may be larger.
const (
	chunkMessages = 256
	maxChunk      = 1024 // events
)

// flushAfter is the longest time that answers wait to be stored. Most of their events are settled earlier, and are
// written then.
const flushAfter = 10 * time.Second

// A loop performs what the machines decide, and returns the results to them. One goroutine, run, owns all of it; the
// only others are the courier's, which read nothing that the loop changes meanwhile. The package comment draws the
// machines.
type loop struct {
	Settings
	contract *contract
	rounds   *rounds
	core     *core

	admission *admission
	usher     *usher
	sender    *sender
	settler   *settler
	times     times

	records  *records
	accounts accounts
	clock    clock
	reports  *reports
	courier  *courier
	inbox    *inbox
	granting *granting
	wakes    <-chan stream.Wake // nil: the broker gives none
	ended    chan struct{}      // closed when the task's End was read

	onEffect func(effect, result) // shows each effect to a test; nil: to nobody
}

func newLoop(c Settings) *loop {
	chunk := min(chunkMessages*c.Bundle, maxChunk)
	l := &loop{
		Settings: c, clock: newClock(), inbox: newInbox(2 * chunk), ended: make(chan struct{}),
		contract: &contract{agreed: make(chan struct{})},
		records:  &records{port: c.Transport, task: c.Task, timeout: c.Timeout, log: c.Logger, told: make(map[string]bool)},
		accounts: accounts{ledger: c.Ledger, policy: c.Policy, perUser: c.UserKeys, log: c.Logger},
		times:    times{pace: pace{least: c.Poll, most: c.MaxPoll, wait: c.Poll, chance: system}},
	}
	l.accounts.now = l.clock.now
	l.rounds = &rounds{now: time.Now, log: c.Logger, chance: system, contract: l.contract, poll: c.Poll,
		known: roundTable{of: make(map[stream.Round]*round)}}
	l.rounds.back = &setback{rounds: l.rounds}
	sharer := newSharer()
	l.core = &core{now: time.Now, log: c.Logger, chance: system,
		rules: rules{settings: &l.Settings, contract: l.contract, rounds: l.rounds}, uplink: newUplink(&c, chunk, system), clock: &l.clock, sharer: sharer, beats: newBeats(time.Now(), chunk, 2*chunk),
		inbox: l.inbox, chunk: chunk, events: make(map[participation.Key]*event), queue: newQueue(system),
		ungranted: make(map[participation.Key]*event), unstored: make(map[*bundle]bool), book: book{early: make(map[participation.Key]bool)}}
	l.admission, l.settler = &admission{l.core}, &settler{l.core}
	l.sender = &sender{core: l.core, settler: l.settler, flushed: time.Now()}
	l.usher = &usher{core: l.core, sender: l.sender}
	l.granting = newGranting(c.Grants, c.GrantStore, c.Logger)
	l.reports = &reports{settings: &l.Settings, contract: l.contract, beats: l.core.beats, chance: system, chunk: chunk}
	l.courier = &courier{task: c.Task, transport: c.Transport, timeout: c.Timeout, contract: l.contract, chance: system,
		moment: l.core.moment, sharer: sharer, delivered: newAnswers[delivery](), replies: newAnswers[*ask]()}
	return l
}

// newClock returns a clock that reads the machine's.
func newClock() clock {
	return clock{read: func() time.Time { return time.Now().Round(0) }, steady: time.Now}
}

// answersWithin bounds how long a client that ends waits for the broker's replies: an event that was sent without a
// reply stays in doubt for ever if its round closes before a later client has sent it again.
const answersWithin = 2 * time.Second

// run works until ctx ends (nil), or until the policy refuses or the store fails. Every event is answered when it
// returns.
func (l *loop) run(ctx context.Context) error {
	online, cut := context.WithCancel(context.WithoutCancel(ctx))
	l.courier.online = online
	ctx, cancel := context.WithCancel(ctx)
	do := func(e effect) result { return l.perform(ctx, e) }
	l.rounds.do, l.core.do = do, do
	err := l.work(ctx)
	cancel()
	late := time.AfterFunc(answersWithin, cut)
	l.courier.group.Wait()
	late.Stop()
	cut()
	return l.shutdown(err)
}

// work waits for inputs, and does what is due, until ctx ends or an error ends the device.
func (l *loop) work(ctx context.Context) error {
	if err := l.loadCharged(); err != nil {
		return err
	}
	l.wakes = l.records.watch(ctx)
	l.times.soon(time.Now(), l.core.spread())
	timer, tick := time.NewTimer(0), time.NewTimer(time.Hour)
	defer timer.Stop()
	defer tick.Stop()
	for {
		timer.Reset(l.untilAlarm(time.Now()))
		var ready <-chan struct{}
		if l.core.room() > 0 {
			ready = l.inbox.ready
		}
		var ticks <-chan time.Time
		if at := l.core.beats.due; !at.IsZero() {
			tick.Reset(time.Until(at))
			ticks = tick.C
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
			err = l.takeWake(w)
		case <-timer.C:
			err = l.actOnTime(ctx, time.Now())
		case <-l.courier.delivered.ready:
			for _, d := range l.courier.delivered.take() {
				l.sender.takeAnswer(d)
			}
		case <-l.courier.replies.ready:
			for _, a := range l.courier.replies.take() {
				l.usher.takeReply(a)
			}
		case <-l.granting.done.ready:
			err = l.sender.takeGrants(l.granting.done.take())
		case <-l.inbox.first:
			err = l.pollBeforeJoin()
		case <-ready:
			err = l.pollBeforeJoin()
			l.core.beats.arm(time.Now())
		case <-ticks:
			err = l.joinOnTick()
			l.inbox.take(0) // what is left waits for another tick
		}
		if err == nil {
			err = l.doWhatIsDue()
		}
		if err != nil && err == ctx.Err() { // while a report was worked out
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// untilAlarm returns the time until the loop has something to do by itself. It also sets the time over which the
// adapter spreads its reconnections.
func (l *loop) untilAlarm(now time.Time) time.Duration {
	if s, ok := l.Transport.(stream.Spreader); ok {
		s.Spread(l.core.spread())
	}
	return l.times.rest(now, l.core.restless(), l.core.busy(), l.core.alarms(now)).Sub(now)
}

// actOnTime performs the work that is due now.
func (l *loop) actOnTime(ctx context.Context, now time.Time) error {
	if l.times.retries(now) {
		l.sender.retry = true
	}
	l.rounds.judgeDue(now, l.core.busy)
	l.rounds.pairDue(now, l.core.busy)
	if now.Before(l.times.due) {
		return nil
	}
	if l.wakes == nil {
		l.wakes = l.records.watch(ctx)
	}
	return l.poll()
}

// pollBeforeJoin polls before an event joins a client that had nothing to do and so has not polled for long.
func (l *loop) pollBeforeJoin() error {
	now := time.Now()
	switch {
	case !l.times.idle && !l.times.resting || l.rounds.over():
		return nil
	case now.Sub(l.rounds.looked) < l.Poll:
		l.times.resting = false
		l.times.soon(now, l.Poll)
		return nil
	}
	return l.poll()
}

// joinOnTick has events that have come until now join; events that come meanwhile wait for the next tick.
func (l *loop) joinOnTick() error {
	beats := l.core.beats
	beats.begin()
	defer beats.end()
	come := min(l.inbox.len(), beats.quota)
	for {
		if err := l.doWhatIsDue(); err != nil {
			return err
		}
		n := min(l.core.room(), l.core.chunk, come)
		if n <= 0 {
			return nil
		}
		if err := l.admission.admit(l.inbox.take(n)); err != nil {
			return err
		}
		come -= n
	}
}

// doWhatIsDue does all that can be done without waiting.
func (l *loop) doWhatIsDue() error {
	l.core.queue.recallFor(l.core.rounds.known.newest, l.core.represented)
	if l.contract.agreement != nil && l.core.busy() {
		l.core.compareClock()
	}
	if err := l.settler.settleClosed(); err != nil {
		return err
	}
	if l.rounds.over() {
		return l.settler.endWaiting()
	}
	if err := l.sender.sendOwed(); err != nil {
		return err
	}
	l.core.dismiss(l.core.queue.sort(l.rounds.known.newest, l.core.settled),
		"they took part as often as they may, or their phase is over")
	if l.rounds.known.newest.keeps() > 0 {
		if err := l.usher.seatLine(); err != nil {
			return err
		}
	}
	if err := l.sender.joinWaiting(); err != nil {
		return err
	}
	l.sender.retry = false
	if time.Since(l.sender.flushed) < flushAfter {
		return nil
	}
	return l.sender.storeAnswers()
}

// loadCharged takes up the events that an earlier process left charged.
func (l *loop) loadCharged() error {
	bundles := make(map[[16]byte]*bundle)
	for record, err := range l.Store.Charged() {
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		l.core.takeCharged(record, bundles)
	}
	if err := l.loadGrants(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if n := len(l.core.events); n > 0 {
		l.Logger.Info("resuming: these reports were charged in an open round and have no outcome yet", "reports", n)
	}
	return nil
}

// shutdown stores the replies that have come, and answers all callers. err is the reason why the loop ends, nil for a
// stop.
func (l *loop) shutdown(err error) error {
	for _, d := range l.courier.delivered.take() { // no delivery is left that could add another
		l.sender.takeAnswer(d)
	}
	// A store that failed is not written again: its content is older, and so more careful.
	var refused *consent.RefusedError
	if err == nil || errors.As(err, &refused) {
		if failed := l.sender.storeAnswers(); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	left := l.inbox.close() // an earlier process may have sent them
	stored, failed := l.admission.lookUp(left)
	for i := range stored {
		left[i].record = stored[i]
	}
	err = errors.Join(err, failed)
	l.core.abandon(left, refused)
	l.core.abandon(slices.SortedFunc(maps.Values(l.core.events), byKey), refused)
	clear(l.core.events)
	l.tellProgress()
	return err
}

// tellProgress passes the device's progress on.
func (l *loop) tellProgress() {
	if l.Progress == nil {
		return
	}
	u := l.core.uplink
	p := Progress{Summary: l.core.book.total, InFlight: u.sending, Over: l.rounds.over(), Standing: l.standing(),
		RefusedPublishes: u.refusals.count, Older: l.rounds.back.older, OlderSince: l.rounds.back.since, Trouble: u.trouble,
		Troubled: u.troubled}
	p.Ahead, p.AheadSince = l.clock.foundAhead()
	if r := l.rounds.known.newest; r != nil {
		p.Round, p.Attempt, p.Joined, p.Cohort = r.number, r.attempt.Number, r.joined, r.place.Cohort
	}
	l.Settings.Progress(p)
}
