package device

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// MaxKey is the length of the longest key, in bytes.
const MaxKey = task.MaxKey

// submitted is the source to which a store is pinned if its events come with keys of their own, so that no user takes
// part again as the row of a file.
const submitted = "http"

// maxUnfitLogged bounds the events that are logged as not fitting.
const maxUnfitLogged = 20

var (
	// ErrNoEvent means that no event of a key is known: it was not submitted, or waited when its process ended.
	ErrNoEvent = errors.New("no event of this key is known: submit it")
	// ErrNotAccepted means that an event never took part: the task ended before a round took it.
	ErrNotAccepted = errors.New("no round took the event: it is in none")

	errNoSubmit = errors.New("client: Submit without Settings.Submits: ticks are not made for parsing events")
)

// A desk keeps the events that were submitted and have no outcome yet. Its methods may be called from any goroutine.
type desk struct {
	store *watchedStore
	log   logger
	unfit atomic.Uint64 // events that did not fit

	parsing sync.Once
	parser  *parser // written by parsing
	refused error   // written by parsing

	mu    sync.Mutex
	known map[participation.Key]*submission // guarded by mu: those that the loop has, or is about to
}

// A logger is the part of slog.Logger that a desk uses.
type logger interface{ Warn(msg string, args ...any) }

// A submission is an event on its way.
type submission struct {
	offered chan struct{} // closed after failed is written: the loop has the event, or not
	failed  error
	done    chan struct{} // closed after outcome is written
	outcome Outcome
}

func newDesk(s *watchedStore, log logger) *desk {
	return &desk{store: s, log: log, known: make(map[participation.Key]*submission)}
}

// use returns the parser of an agreed task.
func (d *desk) use(a *consent.Agreement) (*parser, error) {
	d.parsing.Do(func() { d.parser, d.refused = newParser(a) })
	return d.parser, d.refused
}

// find returns the submission of a key, nil if there is none.
func (d *desk) find(key participation.Key) *submission {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

// begin returns the submission of a key, and whether it is a new one, which the caller offers.
func (d *desk) begin(key participation.Key) (s *submission, isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.known[key]; s != nil {
		return s, false
	}
	s = &submission{offered: make(chan struct{}), done: make(chan struct{})}
	d.known[key] = s
	return s, true
}

// end forgets a submission.
func (d *desk) end(key participation.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, key)
}

// note logs why an event does not fit, for the operator of this device: neither its content nor its key.
func (d *desk) note(unfit error) {
	if d.unfit.Add(1) > maxUnfitLogged {
		return
	}
	column, reason := "", unfit.Error()
	if bad, ok := errors.AsType[*task.RowError](unfit); ok {
		column, reason = bad.Column, bad.Reason
	}
	d.log.Warn("an event does not fit the declaration: sent as the zero vector", "column", column, "reason", reason)
}

// Submit hands over the event of a user, and returns when the device has it: in memory alone, until a round takes it
// (Ticket.Accepted). Of a task that protects people these are all events of a person, however many, whom the key names;
// else it is one. The key is the user's id in the application, 1 to MaxKey bytes, the same after a restart; a key that
// took part, or waits, is answered with its ticket, and its first events count.
//
// Submit waits while as many events wait as the device holds, and never looks at them: whatever they hold, they take
// part. It refuses a key that is empty or too long, a task of organisations, and a device that has ended; the error is
// then a *consent.RefusedError, or why it ended. After an error of the context the device does not have the event.
func (c *Device) Submit(ctx context.Context, key string, events ...Event) (Ticket, error) {
	t, err := c.Prepare(ctx, key, events...)
	if err != nil {
		return Ticket{}, err
	}
	return t, t.Submit(ctx)
}

// Prepare makes the ticket of an event without handing it over, which Ticket.Submit does: for gateways, which answer
// before the device has room. The error is one of Submit's.
func (c *Device) Prepare(ctx context.Context, key string, events ...Event) (Ticket, error) {
	if c.desk == nil {
		return Ticket{}, errNoSubmit
	}
	if err := checkKey(key); err != nil {
		return Ticket{}, err
	}
	agreement, err := c.Agreement(ctx)
	if err != nil {
		return Ticket{}, err
	}
	parser, err := c.desk.use(agreement)
	if err != nil {
		return Ticket{}, err
	}
	work := sync.OnceValues(func() (block.Block, error) {
		b, unfit := parser.block(events)
		if unfit != nil {
			c.desk.note(unfit)
		}
		return b, unfit
	})
	return Ticket{device: c, key: participation.EventKey(key), given: &given{person: key, events: len(events), work: work}}, nil
}

// Submit hands the event of a ticket that Prepare made over, as Device.Submit does.
func (t Ticket) Submit(ctx context.Context) error {
	if t.given == nil {
		return ErrNoEvent
	}
	record, err := t.device.desk.store.one(t.key)
	if err != nil || final(record) {
		return err
	}
	s, err := t.device.offer(ctx, t.key, t.given)
	t.given.sent.Store(s)
	return err
}

// Known reports whether the device has an event of the ticket's key, which waits or took part: Submit would not take the
// one that came with this ticket.
func (t Ticket) Known() (bool, error) {
	if t.device == nil {
		return false, ErrNoEvent
	}
	if t.device.desk.find(t.key) != nil {
		return true, nil
	}
	record, err := t.device.desk.store.one(t.key)
	return record.State != participation.Fresh, err
}

func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return consent.Refuse("key", fmt.Sprintf("%d bytes", len(key)), "1 to %d bytes", MaxKey)
	}
	return nil
}

// final reports whether what a store has of an event cannot change any more.
func final(r participation.Record) bool {
	return (r.State == participation.Counted || r.State == participation.Unknown) && r.Draw.Most <= 1
}

// offer gives an event to the loop, unless it has one of that key.
func (c *Device) offer(ctx context.Context, key participation.Key, g *given) (*submission, error) {
	for {
		s, isNew := c.desk.begin(key)
		if !isNew {
			select {
			case <-s.offered:
				if s.failed == nil {
					return s, nil
				}
				continue // who offered it gave up
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		e := &event{record: participation.Record{Key: key}, person: g.person, rows: 1, work: func() block.Block {
			b, _ := g.work()
			return b
		}}
		e.callbacks = []func(Outcome){func(o Outcome) {
			if spec := c.loop.contract.agreement.Spec; spec.Privacy.ByUser() && o.State != participation.Refused {
				c.loop.core.book.total.Surplus += uint64(max(0, g.events-spec.User.Items))
			}
			s.outcome = o
			c.desk.end(key)
			close(s.done)
		}}
		if s.failed = c.loop.inbox.put(ctx, e); s.failed != nil {
			s.outcome = Outcome{State: participation.Uncounted}
			c.desk.end(key)
			close(s.done)
		}
		close(s.offered)
		if errors.Is(s.failed, errEnded) {
			<-c.done
			return nil, c.ended()
		}
		return s, s.failed
	}
}

// Outcome waits until the outcome of the event of a key is known: a round that took the event has closed, or the task
// has ended. Any process that has the device's store may call it. With a context that has ended it does not wait:
// beside the context's error the Outcome is Fresh while the event waits for a round, and Charged when it is on its way.
// For a key that nobody submitted the error is ErrNoEvent.
func (c *Device) Outcome(ctx context.Context, key string) (Outcome, error) {
	if c.desk == nil {
		return Outcome{}, errNoSubmit
	}
	if err := checkKey(key); err != nil {
		return Outcome{}, err
	}
	return Ticket{device: c, key: participation.EventKey(key)}.Outcome(ctx)
}

// A Ticket represents the event of a key. Its methods may be called from any goroutine, and its text may be kept:
// Device.Ticket reads it, in a later process with the same store, too.
type Ticket struct {
	device *Device
	key    participation.Key
	given  *given // nil: the events are not known
}

// given are the events that came with a ticket.
type given struct {
	person string
	events int
	work   func() (block.Block, error) // works them out, once; the error says why one does not fit
	sent   atomic.Pointer[submission]  // nil: not handed over, or what is known is in the store
}

// Fits reports whether the events that came with the ticket are as the task declares. An event that does not fit is
// sent as the zero vector, and the local log has the reason. Fits computes the answer if no tick has done so yet. A
// ticket that was read from text has no events, and Fits is true.
func (t Ticket) Fits() bool {
	if t.given == nil {
		return true
	}
	_, unfit := t.given.work()
	return unfit == nil
}

// Accepted waits until the event takes part, durably: from then on it is charged, and sent whatever happens to this
// process. The error is ErrNotAccepted if no round took it, a *consent.RefusedError if the policy forbids it, ErrNoEvent
// if nobody submitted it, or the context's.
func (t Ticket) Accepted(ctx context.Context) error {
	_, err := t.wait(ctx, func(r participation.Record) bool { return r.State != participation.Fresh })
	return err
}

// Outcome is Device.Outcome of the ticket's key.
func (t Ticket) Outcome(ctx context.Context) (Outcome, error) {
	o, err := t.wait(ctx, nil)
	if errors.Is(err, ErrNotAccepted) {
		err = nil // Uncounted, in no round
	}
	if _, ok := errors.AsType[*consent.RefusedError](err); ok && o.State == participation.Refused {
		err = nil
	}
	return o, err
}

// wait returns the outcome of the ticket's event when it is known, or what the store has when that is enough.
func (t Ticket) wait(ctx context.Context, enough func(participation.Record) bool) (Outcome, error) {
	if t.device == nil {
		return Outcome{}, ErrNoEvent
	}
	d, ended := t.device.desk, t.device.done
	for {
		var s *submission
		if t.given != nil {
			s = t.given.sent.Load()
		}
		if s == nil {
			s = d.find(t.key)
		}
		r, written, err := d.store.look(t.key)
		if err != nil {
			return Outcome{}, err
		}
		o, over := standing(r), false
		switch {
		case enough != nil && enough(r), final(r):
			over = true
		case s != nil:
		case r.State == participation.Fresh:
			over, err = true, ErrNoEvent
		default: // nobody here waits for another round
			over = r.State != participation.Charged
		}
		if over {
			d.store.forget(t.key, written)
			return o, err
		}
		var done <-chan struct{}
		if s != nil {
			done = s.done
		}
		select { // what is known comes before that nobody waits any more
		case <-done:
			d.store.forget(t.key, written)
			return t.device.told(s)
		default:
		}
		select {
		case <-done:
		case <-written:
		case <-ended:
			ended = nil
			if s == nil { // charged, and a later process learns more
				d.store.forget(t.key, written)
				return o, t.device.ended()
			}
		case <-ctx.Done():
			d.store.forget(t.key, written)
			return o, ctx.Err()
		}
		d.store.forget(t.key, written)
	}
}

// told returns what the loop said of a submission.
func (c *Device) told(s *submission) (Outcome, error) {
	o := s.outcome
	switch {
	case o.State == participation.Refused && o.Refused != nil:
		return o, o.Refused
	case o.State != participation.Uncounted || o.Round != 0:
		return o, nil
	}
	select {
	case <-c.loop.ended:
		return o, ErrNotAccepted
	default: // the device ended before a round came: a later one may be given the event again
		<-c.done
		return o, c.ended()
	}
}

// standing returns how far an event is by its record: Fresh, Charged, or how a round of it ended.
func standing(r participation.Record) Outcome {
	o := Outcome{State: r.State, Round: r.Draw.Round, Open: r.State == participation.Charged}
	if o.State == participation.Charged && r.Outcome() == participation.Counted { // in an earlier round of its phase
		o.State = participation.Counted
	}
	return o
}

// MarshalText returns the ticket as a text of letters, digits, '.', '-' and '_', which names the task and a hash of the
// key: who can guess the key recognises it.
func (t Ticket) MarshalText() ([]byte, error) {
	if t.device == nil {
		return nil, ErrNoEvent
	}
	return []byte(string(t.device.loop.Task) + "." + base64.RawURLEncoding.EncodeToString(t.key[:])), nil
}

// Ticket reads the text of a ticket of this device's task.
func (c *Device) Ticket(text []byte) (Ticket, error) {
	if c.desk == nil {
		return Ticket{}, errNoSubmit
	}
	t := Ticket{device: c}
	at := strings.LastIndexByte(string(text), '.')
	if at < 0 {
		return Ticket{}, errors.New("ticket: want a text that Ticket.MarshalText returned")
	}
	if of := string(text[:at]); of != string(c.loop.Task) {
		return Ticket{}, fmt.Errorf("ticket: of the task %q: want one of %s", of, c.loop.Task)
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(string(text[at+1:]))
	if err != nil || len(key) != len(t.key) {
		return Ticket{}, errors.New("ticket: want a text that Ticket.MarshalText returned")
	}
	copy(t.key[:], key)
	return t, nil
}
