package stage

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An exchange decides when each request of an attempt is sent again, and when the helper is pinged.
type exchange struct {
	lease     time.Duration
	sent      map[uint64]*sending // requests without a reply, by number
	roundTrip time.Duration       // of the last request that got its reply at once; 0: none did
	replies   time.Duration       // time of the last reply beyond a round trip
	heard     time.Time           // when the helper's last verified message came
	pinged    time.Time           // zero: not yet
	pings     int                 // without a reply
}

// A sending is one request on its way.
type sending struct {
	first, next time.Time
	times       int
}

// sends notes a request that was sent for the first time.
func (x *exchange) sends(n uint64, now time.Time) {
	if x.sent == nil {
		x.sent = map[uint64]*sending{}
	}
	x.sent[n] = &sending{first: now, next: now.Add(split.Again(x.roundTrip, x.replies, x.lease, 0))}
}

// answered records the reply to a request.
func (x *exchange) answered(n uint64, now time.Time) {
	s := x.sent[n]
	if s == nil {
		return
	}
	if took := now.Sub(s.first); s.times == 0 {
		if x.roundTrip == 0 || took < x.roundTrip {
			x.roundTrip = took
		}
		x.replies = took - x.roundTrip
	}
	delete(x.sent, n)
}

// due reports whether a request is to be sent again, and notes that it is.
func (x *exchange) due(n uint64, now time.Time) bool {
	s := x.sent[n]
	if s == nil || now.Before(s.next) {
		return false
	}
	s.times++
	s.next = now.Add(split.Again(x.roundTrip, x.replies, x.lease, s.times))
	return true
}

// asks reports whether to send the helper a request now: a quarter of the lease after its last message or the last
// request, if no request is unanswered.
func (x *exchange) asks(now time.Time) bool {
	if len(x.sent) > 0 || now.Before(x.asksAt()) {
		return false
	}
	x.pinged = now
	x.pings++
	return true
}

// unanswered reports whether the helper has not answered three pings, or has not answered a request that was sent again
// three times and has been silent for half a lease.
func (x *exchange) unanswered(now time.Time) bool {
	for _, s := range x.sent {
		if s.times > 2 && now.Sub(x.heard) > x.lease/2 {
			return true
		}
	}
	return x.pings > 2
}

func (x *exchange) asksAt() time.Time {
	last := x.heard
	if x.pinged.After(last) {
		last = x.pinged
	}
	return last.Add(x.lease / 4)
}

// next returns when something is to be sent again.
func (x *exchange) next() time.Time {
	if len(x.sent) == 0 {
		return x.asksAt()
	}
	var at time.Time
	for _, s := range x.sent {
		if at.IsZero() || s.next.Before(at) {
			at = s.next
		}
	}
	return at
}

// A link carries the messages of one prepare subject, and keeps the helper's answers until Run's goroutine takes them.
type link struct {
	subject string
	send    func([]byte) error
	answers chan []byte // nil: the helper does not listen
	close   context.CancelFunc
}

// linked bounds the answers that wait: two windows of requests. More are dropped, and the helper sends them again when
// a request is repeated.
const linked = 64

// Room in the longest answer beside what grows with a task: for a reply, requests of usual bundles with it.
const (
	answerRoom = 64 << 10 // bytes
	userRoom   = 64       // bytes for each user of a bundle: an outcome and a prep message of 32 bytes
)

// longestAnswer returns the length in bytes of the longest answer that a helper gives in a task: its Share, or the reply
// to a request of one large bundle. Anybody can send others, so longer ones are not kept.
func longestAnswer(plan *wire.Plan) int {
	most := 0
	for _, f := range plan.GetPhases() {
		m := f.GetMechanism()
		most = max(most, int(m.GetDim())*stream.ElementSize, int(m.GetMaxBundle())*userRoom)
	}
	return most + answerRoom
}

// A dialer keeps the link to the helper's instance that was called last.
type dialer struct {
	*environment
	link *link // nil: none is open
}

// dial returns the link of a helper's instance.
func (d *dialer) dial(ctx context.Context, instance split.Instance) (*link, error) {
	subject := d.Task.Prepare(instance)
	if d.link != nil && d.link.subject == subject {
		return d.link, nil
	}
	d.hangUp()
	l := &link{subject: subject, answers: make(chan []byte, linked)}
	ctx, l.close = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	longest := longestAnswer(d.task.Plan)
	l.send, err = d.Leader.Exchange.Exchange(ctx, subject, func(answer []byte) {
		if len(answer) > longest {
			return
		}
		select {
		case l.answers <- answer:
		default:
		}
	})
	if err != nil {
		l.close()
		return nil, err
	}
	d.link = l
	return l, nil
}

// hangUp closes the link.
func (d *dialer) hangUp() {
	if d.link != nil {
		d.link.close()
		d.link = nil
	}
}

// ask sends the finish of an attempt to the helper. It returns the first answer before todo.until that ends the
// attempt, and nil if none comes or nobody listens. It ignores other answers: a forged or repeated one would otherwise
// make the stage send the finish again at once, without end.
func (s *Stage) ask(ctx context.Context, todo effects) ([]byte, error) {
	l, err := s.dialer.dial(ctx, todo.instance)
	if err != nil {
		return nil, err
	}
	if err := l.send(todo.data); err != nil {
		return nil, err
	}
	until := todo.until
	if due := s.lease.due; !due.IsZero() && due.Before(until) {
		until = due
	}
	over := time.After(time.Until(until))
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case answer := <-l.answers:
			switch {
			case answer == nil: // nobody listens: wait before it is asked again
				s.sleep(ctx, until)
				return nil, nil
			case s.ends(todo.x, answer):
				return answer, nil
			}
		case <-over:
			return nil, nil
		}
	}
}

// ends reports whether an answer is the helper's message about the end of a prepared attempt.
func (e *environment) ends(x split.Attempt, answer []byte) bool {
	message, ok := e.heard(answer, nil)
	if !ok {
		return false
	}
	switch m := message.(type) {
	case split.Share:
		return m.X.Round == x.Round
	case *split.Gone:
		return m.X == x
	case *split.Differs:
		return m.X == x
	}
	return false
}

// collectShared examines reports for an attempt of two operators, as collect does, and keeps up the exchange: it takes
// the helper's answers, sends opened bundles, and repeats requests without an answer.
func (s *Stage) collectShared(ctx context.Context, todo effects) error {
	f, a := &s.fetcher, todo.attempt
	p := a.pair
	l, err := s.dialer.dial(ctx, p.instance)
	if err != nil {
		return err
	}
	until := todo.until
	for _, at := range []time.Time{p.exchange.next(), s.lease.due} {
		if !at.IsZero() && at.Before(until) {
			until = at
		}
	}
	timeout := max(0, time.Until(until))
	if p.takes() {
		f.ask(ctx, s.Prefetch, a.room(), timeout, s.LeaseTTL/4)
	}
	if len(f.ready) == 0 || !p.takes() {
		answer, came, err := f.waitOr(ctx, until, l.answers)
		if err != nil {
			return err
		}
		if came {
			a.hear(l, answer, time.Now())
		}
	}
	for range len(l.answers) {
		a.hear(l, <-l.answers, time.Now())
	}
	if p.over() != nil {
		return nil
	}
	if err := s.examineShared(ctx, a); err != nil {
		return err
	}
	return a.sendAll(l, time.Now())
}

// examineShared opens the reports that are ready, and acknowledges them, as collect does: opened reports are in a
// request, or wait for the next one.
func (s *Stage) examineShared(ctx context.Context, a *attempt) error {
	f := &s.fetcher
	reports := f.ready[:min(len(f.ready), chunk)]
	a.places.waits(a.table, uint64(len(f.ready))+f.behind, a.backlog.examined, f.landedAt)
	n := a.lead(reports)
	a.places.decides(a.table, a.pair.leader.Unanswered())
	now := time.Now()
	if !s.lease.holds(now) {
		return nil
	}
	for i := range reports[:n] {
		d := &reports[i]
		a.backlog.saw(d.Sequence, d.Pending, d.Came, now)
		if a.opener.precedes(d.Subject) {
			f.keep(d.Ack, now)
		} else {
			s.acknowledge(d.Ack)
		}
	}
	f.done(n)
	s.queue.tellFloods(now, f.redelivered)
	return s.acknowledgeKept(ctx, now)
}

// waitOr waits until a time for the fetch that is under way or an answer of the helper.
func (f *fetcher) waitOr(ctx context.Context, until time.Time, answers <-chan []byte) (answer []byte, came bool, err error) {
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-time.After(time.Until(until)):
		return nil, false, nil
	case answer := <-answers:
		return answer, true, nil
	case got := <-f.flight:
		f.land(got)
		return nil, false, got.err
	}
}

// errSent means that a message of the exchange could not be made.
var errSent = errors.New("exchange")

// sendAll sends opened bundles, requests without a reply in time, and a ping if there is nothing else to send.
func (a *attempt) sendAll(l *link, now time.Time) error {
	p := a.pair
	for p.cuts() {
		r, ok := p.leader.Cut()
		if !ok {
			break
		}
		p.exchange.sends(r.N, now)
		if err := a.sendSealed(l, p.key, r); err != nil {
			return err
		}
	}
	for _, r := range p.leader.Unreplied() {
		if p.exchange.due(r.N, now) {
			if err := a.sendSealed(l, p.key, r); err != nil {
				return err
			}
		}
	}
	if p.exchange.asks(now) {
		return a.sendPlain(l, &split.Ping{X: p.x, Highest: a.released.Round})
	}
	return nil
}

// cuts reports whether the opened bundles go into a request now: one is full, none is on its way, or nothing more can
// be taken.
func (p *pairing) cuts() bool {
	users, full := p.leader.Pending()
	return users > 0 && (full || len(p.exchange.sent) == 0 || !p.takes())
}

// sendSealed sends a request to the holder of an HPKE key.
func (e *environment) sendSealed(l *link, key []byte, r split.Request) error {
	data, err := splitwire.Seal(e.Identity, e.task.Suite, key, &r)
	if err != nil {
		return errors.Join(errSent, err)
	}
	return l.send(data)
}

func (e *environment) sendPlain(l *link, message any) error {
	data, err := splitwire.Sign(e.Identity, message)
	if err != nil {
		return errors.Join(errSent, err)
	}
	return l.send(data)
}

// hear takes one answer of the helper. An answer that does not verify, or is about another attempt, is ignored: anybody
// may have sent it.
func (a *attempt) hear(l *link, answer []byte, now time.Time) {
	p := a.pair
	message, ok := a.heard(answer, a.opener.key)
	if !ok {
		return
	}
	if s, ok := message.(split.Share); ok {
		p.shown = p.shown || s.X.Round == uint64(a.round.number)
		return
	}
	switch m := message.(type) {
	case *split.Reply:
		if m.X != p.x {
			return
		}
		users := a.users()
		decided, err := p.leader.Handle(*m)
		if err != nil {
			return // over returns the error
		}
		p.exchange.answered(m.N, now)
		for _, d := range decided {
			if hash, ok := p.tokens[d.ID]; ok {
				delete(p.tokens, d.ID)
				if d.Outcome == split.Accepted {
					a.taking.counted = append(a.taking.counted, hash)
				}
			}
			if d.Outcome != split.Refused { // the leader's own, which was counted
				a.decided(d.Outcome)
			}
		}
		if a.users() > users {
			a.term.newest = now
		}
	case *split.Pong:
		if m.X != p.x {
			return
		}
		if m.Show > 0 && m.Show == a.released.Round {
			_ = l.send(a.signed) // it asks again
		}
	case *split.Gone:
		if m.X != p.x {
			return
		}
		p.gone = m
	case *split.Differs:
		if m.X != p.x {
			return
		}
		p.gone = &split.Gone{X: m.X, Instance: m.Instance}
	}
	p.exchange.heard, p.exchange.pings = now, 0
	a.helper = time.Time{}
}

// heard verifies an answer of the helper, and opens it. Nil bytes mean that the broker has no listener for the request.
func (e *environment) heard(answer []byte, key *seal.RoundKey) (message any, ok bool) {
	if answer == nil {
		return nil, false
	}
	if splitwire.IsShare(answer) {
		s, err := splitwire.VerifyShare(answer, e.Leader.HelperKey)
		return s, err == nil && stream.Hash(s.X.Task) == e.taskHash
	}
	m, x, err := splitwire.Verify(answer, e.Leader.HelperKey)
	if err != nil || stream.Hash(x.Task) != e.taskHash {
		return nil, false
	}
	message, err = splitwire.Open(m, key)
	return message, err == nil
}
