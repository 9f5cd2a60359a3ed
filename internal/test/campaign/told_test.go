package campaign

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A telling is one answer to the owner of an event.
type telling struct {
	life int // of the publisher, from 1
	at   time.Time
	device.Outcome
}

// example returns a row as the API takes it.
func (p *publisher) example(row int) convex.Example {
	return convex.Example{Index: []int32{int32(p.user(row))}, Value: []float64{1}, Label: -1}
}

// ask publishes every user by a call of its own, and notes the outcome of each.
func (p *publisher) ask(ctx context.Context, l *link, c *device.Device) error {
	var calls sync.WaitGroup
	for i := range p.many {
		calls.Go(func() {
			time.Sleep(time.Duration(i+1) * p.w.Pace)
			if got, err := c.Publish(context.Background(), p.key(i), p.example(i)); err == nil {
				p.heard(l, i, got)
			}
		})
	}
	answered := make(chan struct{})
	go func() {
		calls.Wait()
		close(answered)
	}()
	select {
	case <-ctx.Done():
	case <-answered:
	case <-c.Done():
	}
	err := c.Close()
	<-answered
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// heard notes the outcome that a user got, if the process that returned it lives.
func (p *publisher) heard(l *link, row int, o device.Outcome) {
	if l.enter() == errGone {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.user(row)
	p.told[u] = append(p.told[u], telling{p.lives, time.Now(), o})
}

// An answer holds the acknowledgement that a device saw of one publish; none if none came.
type answer struct {
	attempt stream.Attempt
	stream.Ack
}

// A witness is the writer of a life, and sees the answers that the client sees.
type witness struct {
	stream.Transport
	p *publisher
}

// transport returns the way of a life's reports: its link, the broker's lies, and a witness of what the device
// is shown.
func (p *publisher) transport(l *link) stream.Transport {
	var w stream.Transport = &witness{&liar{l, p}, p}
	if p.w.broken.device != nil {
		w = p.w.broken.device(w)
	}
	return w
}

// Publish implements stream.ReportWriter.
func (t *witness) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := t.Transport.Publish(ctx, reports)
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range reports {
		at, bad := stream.ParseSubject(r.Subject)
		must(bad)
		if acks[i].Status == stream.Refused && p.lie != refusal {
			p.refused++
		}
		if acks[i].Sequence == 0 {
			p.doubts[uint64(at.Round)] = true
		}
		for _, t := range p.inside(r) {
			p.shown[t] = append(p.shown[t], answer{at.Attempt, acks[i]})
		}
	}
	return acks, err
}

// inside returns the tickets of the reports that a message holds; p.mu is held.
func (p *publisher) inside(o stream.Outgoing) (all []ticket) {
	var r wire.Report
	must(stream.Unmarshal(o.Data, &r))
	for _, id := range r.Ids {
		if t, known := p.reports[[16]byte(id)]; known {
			all = append(all, t)
		}
	}
	return all
}

// auditTold compares all outcomes that a user got, in all lives of its publisher, with the batches that hold the user.
func (w *world) auditTold(d *publisher, user int, p participation.Record, r record, at []seat, out *result) {
	for i, t := range d.told[user] {
		out.told[t.State]++
		if i > 0 && t.life > d.told[user][i-1].life {
			out.toldAgain++
		}
		switch t.State {
		case participation.Counted:
			for _, later := range d.told[user][i+1:] {
				if later.State != participation.Counted {
					w.violate("user %d was told %v, and later %v", user, t, later)
				}
			}
			// In a further round of an interactive phase it may be charged again; an earlier one counted it.
			if p.Outcome() != participation.Counted || !w.samePhase(r, uint64(t.Round), uint64(p.Draw.Round)) {
				w.violate("user %d was told %v; its device says %v in round %d", user, t, p.State, p.Draw.Round)
			}
		case participation.Uncounted, participation.Refused:
			if first, charged := d.charged[user]; t.Round == 0 && charged && first.Before(t.at) {
				w.violate("user %d was told that it was never sent, and it was charged before", user)
			}
			for _, s := range at {
				if s.round <= uint64(t.Round) {
					w.violate("user %d was told %v, and is in the batch of round %d", user, t, s.round)
				}
			}
		}
	}
}

// auditShown holds what a device believes against what it was shown, true or not: an event is counted if an answer
// lies at or below the cutoff of its round, uncounted if every answer lies above it, or says that nothing was
// stored.
func (w *world) auditShown(d *publisher, user int, r record, p participation.Record) {
	counted := false
	for t, answers := range d.shown {
		b := r.batches[t.round]
		if t.user != user || !w.samePhase(r, t.round, uint64(p.Draw.Round)) || b == nil || b.Void {
			continue
		}
		for _, a := range answers {
			counted = counted || (a.Sequence > 0 && a.Sequence <= b.Cutoff && a.attempt == stream.Attempt(b.Attempt))
		}
	}
	switch p.State {
	case participation.Counted:
		if !counted {
			w.violate("user %d: counted in round %d, and no answer that it was shown says so", user, p.Draw.Round)
		}
	case participation.Uncounted:
		answers := d.shown[ticket{user, uint64(p.Draw.Round)}]
		b := r.batches[uint64(p.Draw.Round)]
		beyond := func(a answer) bool {
			return a.Status == stream.Refused || (a.Sequence > b.GetCutoff() && uint64(a.attempt) == b.GetAttempt())
		}
		if counted || len(answers) == 0 || b == nil || b.Void || !all(answers, beyond) {
			w.violate("user %d: uncounted in round %d, and it was shown %v", user, p.Draw.Round, answers)
		}
	}
}

func all[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !holds(v) })
}

// TestToldCountedInAnOpenPhase: a user who was counted in a round of an interactive phase, and takes part in the next,
// gets the outcome counted, though its device is charged for that one too; a user who was not must not get it.
func TestToldCountedInAnOpenPhase(t *testing.T) {
	for before, want := range map[participation.State]int{participation.Counted: 0, participation.Unknown: 1} {
		w := &world{plan: together()}
		told := telling{1, time.Now(), device.Outcome{State: participation.Counted, Round: 2, Open: true}}
		p := participation.Record{State: participation.Charged, Before: before, Draw: participation.Draw{Round: 2}}
		w.auditTold(&publisher{told: map[int][]telling{0: {told}}}, 0, p, record{}, nil,
			&result{told: map[participation.State]int{}})
		if len(w.violations) != want {
			t.Errorf("in doubt or counted before, %v: %q", before, w.violations)
		}
	}
}
