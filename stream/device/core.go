package device

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A core holds the events of this client, and the state on which all decisions about them depend. It has no clock,
// network, store or generator of its own: now and chance come from outside, and do performs effects.
type core struct {
	do     perform
	now    func() time.Time
	log    *slog.Logger
	chance chance

	rules
	uplink *uplink
	clock  *clock
	sharer *sharer
	beats  *beats
	inbox  *inbox
	chunk  int           // events that become durable in one write
	rows   atomic.Uint64 // that Run will be given, see Device.Expect; 0: Run was not called

	events    map[participation.Key]*event // waiting or charged
	queue     *queue                       // those that wait
	ungranted map[participation.Key]*event // waiting for their token
	unstored  map[*bundle]bool             // with a reply that is not stored yet
	book      book
}

// room returns the number of events that can be taken in now. After the task's end any event is taken in and
// answered from the store.
func (c *core) room() int {
	r := c.rounds.known.newest
	switch {
	case c.contract.agreement != nil && c.rounds.over():
		return c.chunk
	case !c.rounds.joinable() || c.queue.ready(r, c.now()) > 0 || c.contract.terms == nil && c.clock.unknown:
		return 0
	}
	places := c.places()
	if uint64(len(c.ungranted)) >= max(uint64(c.chunk), min(places, mostUngranted)) {
		return 0
	}
	if r.later() { // after a restart members are found among their reserve, which another process held too
		most := 2 * r.most
		places = most - min(most, r.joined+c.rounds.known.absent()+uint64(len(c.queue.events)))
	}
	return min(int(min(places, uint64(c.chunk))), c.settings.MaxInFlight-c.uplink.sending-c.queue.seats.taken())
}

// mostUngranted bounds the events that wait for a token: an issuer is asked for them on one tick, and signs about 300 a
// second and core.
const mostUngranted = 4096

// places returns the number of further events that may draw for the newest attempt: a client offers a round as
// many of its users as the round takes of all clients together, and the announced share of them joins. Of blocks
// of rows it offers one: each organisation reports once.
func (c *core) places() uint64 {
	taken := c.rounds.known.newest.joined + c.rounds.known.absent() + uint64(len(c.queue.drawn)+len(c.queue.seats.line))
	return c.rounds.known.newest.most - min(taken, c.rounds.known.newest.most)
}

// represented returns the number of events for which this client draws in an attempt: the rows of Run, which are read
// when there is room for them, or the events of Publish that wait. Rows that have taken part are not subtracted,
// because the stage does not subtract them either.
func (c *core) represented() uint64 {
	agreement := c.contract.agreement
	if agreement != nil && agreement.Spec.Silo != nil { // it offers a round one block, however many it has
		return 1
	}
	switch n := c.rows.Load(); n {
	case 0:
		return uint64(c.queue.holds()) + uint64(len(c.ungranted)) + c.inbox.waiting()
	case unknownRows:
		return max(1, manifest.Users(agreement.Task.Plan))
	default:
		return max(1, n)
	}
}

// A business names what a client still has to do in the task.
type business int

// nothing: no event here waits or is charged. anOutcome: all events here were sent, and have their replies. aPlace:
// events wait for a round. anAnswer: a publish has no reply yet.
const (
	nothing business = iota
	anOutcome
	aPlace
	anAnswer
)

// business returns what the client still has to do.
func (c *core) business() business {
	b := nothing
	for _, r := range c.rounds.known.of {
		switch {
		case c.uplink.sending > 0 || len(r.owed) > 0:
			return anAnswer
		case len(r.bundles) > 0:
			b = anOutcome
		}
	}
	if c.queue.holds() > 0 || c.inbox.holds() > 0 || len(c.ungranted) > 0 {
		return aPlace
	}
	return b
}

// busy reports whether the client has anything left to do.
func (c *core) busy() bool { return c.business() != nothing }

// restless reports whether the passing of time alone may give the loop something to do: a publish to repeat, an
// event whose time to join comes, an answer to store, or the end of waiting for a Close.
func (c *core) restless() bool {
	switch has := c.business(); {
	case has == anAnswer || len(c.unstored) > 0:
		return true
	case has == aPlace:
		return c.rounds.joinable() || c.rounds.over()
	default:
		return has == anOutcome && c.rounds.over()
	}
}

// patience returns the bound on the mean time between two polls. A lost wake must not make an event miss more than a
// few rounds. woken is true if the broker sends wakes.
func (c *core) patience(woken bool) time.Duration {
	least, most := c.settings.Poll, c.settings.MaxPoll
	switch deadline := c.deadline(); {
	case !woken:
		return least
	case c.contract.agreement == nil:
		return most
	case c.rounds.over():
		return min(max(c.settings.CloseWait/4, least), most)
	case deadline == 0:
		return most
	default:
		return min(max(2*deadline, least), most)
	}
}

// deadline returns the deadline of the newest round, or the plan's where this client knows no round; 0 for none.
func (c *core) deadline() time.Duration {
	switch r := c.rounds.known.newest; {
	case r != nil && r.message != nil:
		return r.place.Deadline
	case c.contract.agreement == nil:
		return 0
	default:
		return manifest.Deadline(c.contract.agreement.Task.Plan)
	}
}

// spread returns the time over which the devices of the task that lost the broker together read, or connect, again.
func (c *core) spread() time.Duration {
	agreement := c.contract.agreement
	if agreement == nil {
		return c.settings.Poll / 4
	}
	return apart(manifest.Users(agreement.Task.Plan), max(uint64(len(c.events)+c.inbox.holds()), c.represented()),
		c.settings.MaxPoll)
}

// apart returns the time over which to spread an action of all devices of so many users, if each has as many events as
// this one. It is at most most.
func apart(users, events uint64, most time.Duration) time.Duration {
	seconds := float64(users) / float64(max(events, 1)) / comeback
	return time.Duration(min(seconds*float64(time.Second), float64(most)))
}

// alarms returns the times at which the passing of time gives the loop something to do: an event joins or asks again,
// or an outcome is read.
func (c *core) alarms(now time.Time) (at []time.Time) {
	if due, ok := c.queue.due(c.rounds.known.newest, now); ok && c.rounds.joinable() && c.uplink.refusals.wait == 0 {
		if least := now.Add(joinEvery); due.Before(least) {
			due = least
		}
		at = append(at, due)
	}
	for _, r := range c.rounds.known.of {
		if r.unjudged() {
			at = append(at, r.judged)
		}
		if !r.halved.IsZero() {
			at = append(at, r.halved)
		}
	}
	return at
}

// takeCharged takes up an event that an earlier process left charged, and adds it to its bundle in bundles, the bundles
// taken up before.
func (c *core) takeCharged(record participation.Record, bundles map[[16]byte]*bundle) {
	e := &event{record: record}
	c.events[record.Key] = e
	r := c.rounds.known.of[record.Draw.Round]
	if r == nil {
		r = &round{number: record.Draw.Round, manifest: record.Draw.Manifest}
		c.rounds.known.of[r.number] = r
	}
	r.joined++
	b := bundles[record.Draw.Bundle]
	if b == nil {
		b = new(bundle)
		bundles[record.Draw.Bundle] = b
		r.bundles = append(r.bundles, b)
		r.owed = append(r.owed, b)
	}
	at, _ := slices.BinarySearchFunc(b.events, e, func(x, y *event) int {
		return int(x.record.Draw.Place) - int(y.record.Draw.Place)
	})
	b.events = slices.Insert(b.events, at, e)
}

// answer passes the outcome of an event to its callers.
func (c *core) answer(e *event) {
	o := Outcome{State: e.record.Outcome(), Round: e.record.Draw.Round, Open: e.record.State == participation.Charged}
	if !c.spent(e) && !c.stays(e) {
		o.Refused = c.dear(e)
	}
	c.book.tell(e, o)
}

// forget removes an event whose outcome is known, and passes the outcome to its callers.
func (c *core) forget(e *event) {
	delete(c.events, e.record.Key)
	c.answer(e)
}

// dismiss forgets events that wait for a round, because none will come.
func (c *core) dismiss(events []*event, why string) {
	for _, e := range events {
		c.forget(e)
	}
	if n := len(events); n > 0 {
		c.log.Info("users wait for no further round", "users", n, "because", why)
	}
}

// abandon answers the callers of events whose outcome this process will not learn. The next process may learn the
// outcome of a charged one.
func (c *core) abandon(events []*event, refused *consent.RefusedError) {
	charged := 0
	for _, e := range events {
		if e.record.State == participation.Charged {
			charged++
		}
		if refused != nil && e.record.State == participation.Fresh {
			c.book.tell(e, Outcome{State: participation.Refused, Refused: refused})
			continue
		}
		c.answer(e)
	}
	if charged > 0 {
		c.log.Info("stopped before the outcome of these reports was known: they are charged, and a later run learns it",
			"reports", charged)
	}
}

// A book counts outcomes, and passes each to its callers.
type book struct {
	total Summary                    // of settled events, for Progress
	early map[participation.Key]bool // events of an earlier process, settled before a caller here asked about them
}

// tell passes an outcome to all callers that asked about an event. An event that an earlier process left charged may
// be settled before anybody here asks about it. It is counted once then, and not again when its row comes.
func (b *book) tell(e *event, o Outcome) {
	switch key := e.record.Key; {
	case !e.present && len(e.callbacks) == 0:
		b.early[key] = true
		b.total.add(o, e.units())
	case b.early[key]:
		delete(b.early, key)
	default:
		b.total.add(o, e.units())
	}
	for _, tell := range e.callbacks {
		tell(o)
	}
	e.callbacks = nil
}
