package device

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// join charges waiting events to the newest round, with a draw of their own each, and only then sends them.
func (l *loop) join(ctx context.Context, events []*event) error {
	r := l.current
	events, refused, err := l.accounts.charge(events, r)
	if err != nil {
		return err
	}
	l.refuse(refused)
	if len(events) == 0 {
		return nil
	}
	if err := l.predraw(ctx, events); err != nil {
		return err
	}
	var bundles []*bundle
	for members := range slices.Chunk(events, min(l.Bundle, int(r.place.Phase.Mechanism.MaxBundle))) {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails: it ends the process instead
		for place, e := range members {
			d := *e.early
			e.early, d.Bundle, d.Place = nil, id, uint32(place)
			if err := e.record.Join(d); err != nil {
				return err
			}
			if d.Final && d.Most <= 1 {
				e.release()
			}
		}
		bundles = append(bundles, &bundle{events: members})
	}
	r.joined += uint64(len(events))
	r.bundles = append(r.bundles, bundles...)
	return l.send(r, bundles)
}

// predraw draws the reports of events in the newest round that have none yet. One that was drawn before a place was
// there, and got none, is the same in all attempts at the round; for another round it is forgotten, as nobody has seen
// it.
func (l *loop) predraw(ctx context.Context, events []*event) error {
	r := l.current
	size := l.terms.Phases[l.phase].Params.ReportBytes()
	l.reports.Reseed() // a machine may have been cloned since
	for _, e := range events {
		if e.early != nil && e.early.Manifest == r.manifest {
			continue
		}
		if l.onReport != nil {
			l.onReport(r.number, e.vector(), l.terms.Phases[l.phase].Params)
		}
		counts, err := l.reports.ReportUntil(ctx, make([]byte, 0, size), e.vector())
		if err != nil {
			return err
		}
		e.early = &participation.Draw{Round: r.number, Phase: r.phase(), Step: stream.Step(r.message.Step),
			Most: r.place.Stint.Rounds, Final: l.agreement.Final, Manifest: r.manifest, Counts: counts}
		_, _ = rand.Read(e.early.Report[:])
	}
	return nil
}

// refuse tells users who may not pay for a round why the policy refuses.
func (l *loop) refuse(refused []refusal) {
	for _, r := range refused {
		delete(l.events, r.event.record.Key)
		o := Outcome{State: participation.Refused, Refused: r.why}
		if p := &r.event.record; p.State != participation.Fresh {
			o.State, o.Round = p.Outcome(), p.Draw.Round // of the rounds that it joined before
		}
		l.tell(r.event, o)
	}
	if n := len(refused); n > 0 {
		l.Logger.Warn("the policy lets users pay for no further round: not sent, or not again", "users", n, "because",
			refused[0].why)
	}
}

// A delivery is one publish of some bundles to one attempt, and its answer. What it holds does not change until the
// loop has that: a bundle in flight is neither settled nor sent again.
type delivery struct {
	round   *round
	open    *wire.Open
	attempt participation.Attempt
	bundles []*bundle
	due     time.Time // the tick on which it leaves
	// for which places of the attempt are kept, if these are users of an earlier one whom it is told of; 0: it is not
	announces time.Duration
	acks      []stream.Ack // one a bundle; short or empty where nothing was answered
	err       error
}

// send notes a publish of bundles to the newest attempt, durably, and then makes it. All of them may be sent there.
func (l *loop) send(r *round, bundles []*bundle) error {
	change := participation.Change{Rounds: map[stream.Round]stream.Hash{r.number: r.manifest}}
	again := false
	for _, b := range bundles {
		again = again || len(b.record().Sends) > 0 && !b.record().SentTo(r.attempt)
		for _, e := range b.events {
			e.record.Sending(r.attempt, l.agreement.HasFloors())
			change.Events = append(change.Events, e.record)
		}
		delete(l.dirty, b)
	}
	if err := l.Store.Write(change); err != nil {
		return fmt.Errorf("charge events: %w", err)
	}
	for _, b := range bundles {
		b.inFlight, b.tried = true, true
		l.sending += len(b.events)
	}
	d := delivery{round: r, open: r.open, attempt: r.attempt, bundles: bundles, due: l.beats.next(time.Now())}
	if r.keeps() > 0 && l.drawsFirst() {
		d.due = time.Now() // it was drawn before it asked, so this tells nothing of the work
	}
	if again {
		d.announces = r.keeps()
	}
	l.deliveries.Go(func() {
		d.acks, d.err = l.publish(l.online, d)
		l.delivered.put(d)
	})
	l.progress()
	return nil
}

// publish seals and sends, on its tick. It runs outside the loop's goroutine and changes none of its state.
func (l *loop) publish(ctx context.Context, d delivery) ([]stream.Ack, error) {
	if err := Until(ctx, d.due); err != nil {
		return nil, err
	}
	if d.announces > 0 {
		online := ctx // ctx is another one below
		l.deliveries.Go(func() { l.announce(online, d) })
	}
	out := make([]stream.Outgoing, len(d.bundles))
	subject := l.Task.Report(d.round.number, d.attempt.Number)
	sealing := seal.Context{ManifestHash: d.round.manifest, Attempt: d.open.Attempt, StageKey: l.agreement.Task.StageKey,
		Public: d.open.PublicKey}
	for i, b := range d.bundles {
		var ids [][16]byte
		var plaintext []byte
		for _, e := range b.events {
			ids = append(ids, e.record.Draw.Report)
			plaintext = append(plaintext, e.record.Draw.Counts...)
		}
		report, err := seal.Seal(d.open.Suite, sealing, l.agreement.Hash, ids, plaintext)
		clear(plaintext)
		if err != nil {
			return nil, err
		}
		data, err := stream.Marshal(report)
		if err != nil {
			return nil, err
		}
		out[i] = stream.Outgoing{Subject: subject, ID: messageID(ids[0], d.attempt), Data: data}
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	return l.Transport.Publish(ctx, out)
}

// messageID returns the id that all publishes of one message to one attempt share. Two attempts must not share it:
// their reports lie in one stream, and the broker would drop the second message as a duplicate of the first.
// Attempts of the same number differ in their Open: the broker lost the first one's.
func messageID(report [16]byte, attempt participation.Attempt) [16]byte {
	b := append([]byte("panlearn message id\x00"), report[:]...)
	h := sha256.Sum256(append(binary.BigEndian.AppendUint64(b, uint64(attempt.Number)), attempt.Open[:]...))
	return [16]byte(h[:16])
}

// answered takes the answer of a delivery.
func (l *loop) answered(d delivery) {
	events := 0
	for i, b := range d.bundles {
		b.inFlight = false
		l.sending -= len(b.events)
		events += len(b.events)
		if i < len(d.acks) {
			for _, e := range b.events {
				e.record.Acked(d.attempt, d.acks[i])
			}
			l.dirty[b] = true
		}
		if !b.record().Answered(d.round.attempt) {
			d.round.owed = append(d.round.owed, b)
		}
	}
	l.window.answered(events, time.Since(d.due))
	l.note(d, time.Now())
	l.progress()
}

// resend sends the bundles of the newest round that its newest attempt has not, or may not have: at once to a new
// attempt, at the pace of the timer where an answer is missing.
func (l *loop) resend() error {
	r := l.current
	if !r.receives() || r.message == nil {
		return nil
	}
	var due, later, ended []*bundle
	n, now := 0, time.Now()
	for _, b := range r.owed {
		record, a := b.record(), r.attempt
		switch {
		case b.inFlight || record.Answered(a) || !record.MaySend(a, l.agreement.HasFloors()):
			// Its answer, settling or a newer attempt decides about it.
		case !record.SentTo(a) && b.exhausted(l.Policy.Reports()):
			ended = append(ended, b) // it was sent often enough
		case l.sending+n >= l.window.now || (record.SentTo(a) && b.tried && !l.retry):
			later = append(later, b)
		default:
			due = append(due, b)
			n += len(b.events)
		}
	}
	if tries := l.refusals.tries(len(due), r.attempt, now); tries < len(due) {
		due, later = due[:tries], append(later, due[tries:]...)
	}
	r.owed = later
	if err := l.giveUp(r, ended); err != nil {
		return err
	}
	for batch := range slices.Chunk(due, chunkMessages) {
		if err := l.send(r, batch); err != nil {
			return err
		}
	}
	return nil
}

// flush stores the answers that are not stored yet. A store that misses some is safe: it takes a publish for
// unanswered.
func (l *loop) flush() error {
	l.flushed = time.Now()
	var events []*event
	for b := range l.dirty {
		events = append(events, b.events...)
	}
	clear(l.dirty)
	for some := range slices.Chunk(events, settleChunk) {
		change := participation.Change{Events: make([]participation.Record, len(some))}
		for i, e := range some {
			change.Events[i] = e.record
		}
		if err := l.Store.Write(change); err != nil {
			return fmt.Errorf("store acknowledgements: %w", err)
		}
	}
	return nil
}
