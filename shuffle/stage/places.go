package stage

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/stream"
)

// places answer requests for places in the attempt that this process has open. Requests come on other goroutines than
// Run's; everything here is behind one lock.
type places struct {
	mu    sync.Mutex
	of    place       // the attempt, or the last one
	table *placeTable // nil: none is open that announced places
	until time.Time   // the stage's own lease
	wall  time.Time   // the same by the wall clock, which goes on while a machine sleeps

	shown   time.Duration // the lease that attempts have shown to do; 0: none did
	heard   bool          // somebody requested places
	mute    bool          // nobody did in the time of a round, so that it was opened again without places
	flooded time.Time     // when places were last requested and not used; zero: never
	serves  bool          // requests come
	counts  PlaceCounts   // of attempts that are over
	asked   float64       // users that waited at the last attempt; 0: not known
}

// Places describe the places that a stage process gives.
type Places struct {
	Lease time.Duration // of the open attempt; 0: it has none
	Live  uint64        // given, and neither used nor ended
	PlaceCounts
	Refused bool // the broker does not hand out requests, so that attempts open without places
	Flooded bool // places were requested and not used, so that attempts open without places
}

// status returns what is known.
func (p *places) status(now time.Time) Places {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Places{PlaceCounts: p.counts, Flooded: p.floodedAt(now)}
	if t := p.table; t != nil {
		t.expire(now)
		out.Lease, out.Live = t.lease, t.live
		out.PlaceCounts.add(t.counts)
	}
	return out
}

// shunned is the time for which attempts open without places after a flood of them.
const shunned = time.Hour

// floodedAt reports whether a flood of places was seen recently.
func (p *places) floodedAt(now time.Time) bool {
	return !p.flooded.IsZero() && now.Sub(p.flooded) < shunned
}

// lease returns how long places of a new attempt are kept; 0: it has none. If no device ever requested one, a round
// that is opened again has none: the broker may not permit devices to request places.
func (p *places) lease(deadline time.Duration, number stream.Attempt) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.serves || p.floodedAt(time.Now()) || p.mute && !p.heard && number > 1 {
		return 0
	}
	return leaseWithin(p.shown, deadline)
}

// begin gives the places of an attempt from now on.
func (p *places) begin(of place, t *placeTable) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.table = of, t
}

// end forgets the places of an attempt that is over. It may be called again.
func (p *places) end(t *placeTable, ramp stream.Ramp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == nil || p.table != t {
		return
	}
	p.table, p.shown = nil, t.shows()
	p.counts.add(t.counts)
	if p.asked = 0; t.asks.users > 0 {
		p.asked = t.asks.waiting(ramp)
	}
}

// waited returns how many users waited at the last attempt, estimated from the requests; 0: not known.
func (p *places) waited() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// holds notes until when this process has the lease; zero: it has none. Without it no request gets an answer.
func (p *places) holds(until, wall time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until, p.wall = until, wall
}

// answer answers one request, or returns nil. It returns at once.
func (p *places) answer(subject string, data []byte) []byte {
	at, err := stream.ParseSubject(subject)
	if err != nil || at.Verb != "place" {
		return nil
	}
	r, err := stream.ParsePlaceRequest(data)
	if err != nil {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.until) || !now.Round(0).Before(p.wall) {
		return nil
	}
	switch of := (place{at.Round, at.Attempt}); {
	case of == p.of && p.table != nil:
		p.heard = true
		return p.table.answer(now, r).Record()
	case of == p.of || of.round < p.of.round || of.round == p.of.round && of.attempt < p.of.attempt:
		return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceOver}.Record()
	}
	return nil // no process has opened it as long as we have the lease
}

// opened takes off the places of users who were counted.
func (p *places) opened(t *placeTable, users uint64) {
	if t != nil && users > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.opened(users)
	}
}

// waits notes how many messages waited unopened at a time, and how many were opened. A message is taken to hold as many
// users as those that were opened have had: garbage holds none, and a bundle many.
func (p *places) waits(t *placeTable, messages, examined uint64, known time.Time) {
	if t == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	each := float64(t.accepted+1) / float64(examined+1)
	users := uint64(float64(messages) * each)
	if messages > 0 {
		users = max(users, 1)
	}
	t.waits(examined, messages, users, known)
}

// decides notes how many users wait for the helper's decision.
func (p *places) decides(t *placeTable, users uint64) {
	if t != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.undecided = users
	}
}

// lives returns until when a place of the attempt lives; the zero time if none does.
func (p *places) lives(t *placeTable, now time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.lives(now)
}

// flood looks, once an attempt, whether most of its places ended unused, and returns what follows. Places that could be
// kept for longer are, from the next attempt on: devices may be slower than they last. Otherwise somebody floods them,
// and no attempt has any for an hour.
func (p *places) flood(t *placeTable, now time.Time, deadline time.Duration) (flooded, off bool) {
	if t == nil {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.warned || p.floodedAt(now) || !t.flooded(now, deadline) {
		return false, false
	}
	t.warned = true
	if off = t.lease >= leaseWithin(longestLease, deadline); off {
		p.flooded = now
	}
	return true, off
}

// unheard reports whether no request for a place ever came, in the time of a round.
func (p *places) unheard(t *placeTable, now time.Time) bool {
	if t == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	after := t.deadline
	if after.IsZero() {
		after = t.started.Add(longestLease)
	}
	p.mute = !p.heard && t.accepted+t.unopened == 0 && now.After(after)
	return p.mute
}

// A placeDesk has the broker hand requests for places to the stage.
type placeDesk struct {
	*environment
	served bool         // the broker hands out requests for places, or refuses to
	serves time.Time    // when it is asked again; zero: it was not yet
	caught panics.First // of the goroutines that answer requests, beside Run
}

// serve subscribes to requests for places, if the task's plan has them. It retries until the broker accepts or refuses.
func (d *placeDesk) serve(ctx context.Context) {
	now := time.Now()
	if d.served || d.task == nil || !d.task.Plan.Places || now.Before(d.serves) {
		return
	}
	if d.PlaceServer == nil {
		d.served = true
		return
	}
	err := d.PlaceServer.ServePlaces(ctx, d.Task, func(subject string, data []byte) (answer []byte) {
		d.caught.Do(func() { answer = d.places.answer(subject, data) })
		return answer
	})
	if err != nil && !errors.Is(err, stream.ErrRefused) {
		d.serves = now.Add(tryAgain)
		d.Logger.DebugContext(ctx, "cannot ask for requests for places yet", "error", err)
		return
	}
	d.served = true
	if err != nil {
		d.Logger.Warn("no requests for places come, so devices charge before they know that there is room: "+
			"docs/how-to/operations.md, Places, has the permission", "subject", d.Task.Places(), "error", err)
		return
	}
	d.places.mu.Lock()
	d.places.serves = true
	d.places.mu.Unlock()
}

// tryAgain is the time until the next attempt to subscribe to requests for places, after the broker did not reply.
const tryAgain = 30 * time.Second

// served reports whether requests come.
func (p *places) served() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serves
}
