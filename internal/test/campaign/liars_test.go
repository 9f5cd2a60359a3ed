package campaign

import (
	"context"
	crand "crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A palimpsest is a broker on which claims and batches can be overwritten.
type palimpsest struct {
	mu       sync.Mutex
	sequence uint64
	standing map[string]stream.Message
}

type rewritten struct {
	stream.Records
	on *palimpsest
}

func overwrites() broken {
	p := &palimpsest{standing: map[string]stream.Message{}}
	return broken{link: func(l *link) { l.records = rewritten{l.records, p} }}
}

func (r rewritten) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if at, _ := stream.ParseSubject(subject); at.Verb != "claim" && at.Verb != "batch" {
		return r.Records.PutOnce(ctx, subject, data)
	}
	r.on.mu.Lock()
	defer r.on.mu.Unlock()
	r.on.sequence++
	m := stream.Message{Subject: subject, Sequence: r.on.sequence, Data: data}
	r.on.standing[subject] = m
	return stream.PutResult{Ours: true, Standing: m}, nil
}

func (r rewritten) Get(ctx context.Context, subject string) (stream.Message, error) {
	r.on.mu.Lock()
	m, ok := r.on.standing[subject]
	r.on.mu.Unlock()
	if ok {
		return m, nil
	}
	return r.Records.Get(ctx, subject)
}

// A sieve acknowledges claims and keeps none.
type sieve struct{ stream.Records }

func losesClaims() broken { return broken{link: func(l *link) { l.records = sieve{l.records} }} }

func (s sieve) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if at, _ := stream.ParseSubject(subject); at.Verb == "claim" {
		return stream.PutResult{Ours: true, Standing: stream.Message{Subject: subject, Sequence: 1, Data: data}}, nil
	}
	return s.Records.PutOnce(ctx, subject, data)
}

// An inflation returns to devices sequences far above those of their reports.
type inflation struct{ stream.Transport }

func inflates() broken { return broken{link: func(l *link) { l.writer = inflation{l.writer} }} }

func (i inflation) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := i.Transport.Publish(ctx, reports)
	for i := range acks {
		if acks[i].Sequence > 0 {
			acks[i].Sequence += 1 << 20
		}
	}
	return acks, err
}

// A renamer stores every report a second time, under new ids.
type renamer struct{ stream.Transport }

func renames() broken {
	return broken{forges: true, link: func(l *link) { l.writer = renamer{l.writer} }}
}

func (r renamer) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := r.Transport.Publish(ctx, reports)
	for _, o := range reports {
		var report wire.Report
		must(stream.Unmarshal(o.Data, &report))
		for i := range report.Ids {
			report.Ids[i] = make([]byte, 16)
			_, _ = crand.Read(report.Ids[i])
		}
		copy(o.ID[:], report.Ids[0])
		var bad error
		o.Data, bad = stream.Marshal(&report)
		must(bad)
		if _, err := r.Transport.Publish(ctx, []stream.Outgoing{o}); err != nil {
			return acks, err
		}
	}
	return acks, err
}

// A void disk acknowledges every commit after the first and keeps none.
type void struct{ *storetest.Memory }

func lies() broken {
	return broken{store: func(_ *link, m *storetest.Memory) state.Store { return void{m} }}
}

// Commit implements state.Store.
func (v void) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	if next.Cursor.Round == 0 {
		return v.Memory.Commit(ctx, next, entries, kept...)
	}
	return nil
}

// A herald announces a round before it writes it down.
type herald struct {
	*storetest.Memory
	link *link
}

func announces() broken {
	return broken{store: func(l *link, m *storetest.Memory) state.Store { return herald{m, l} }}
}

// Commit implements state.Store.
func (h herald) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	if r := next.Cursor.Round; r > 0 && len(next.NextRound) > 0 {
		if _, err := h.link.PutOnce(ctx, name.Round(stream.Round(r+1)), next.NextRound); err != nil {
			return err
		}
	}
	return h.Memory.Commit(ctx, next, entries, kept...)
}

// A half has the model in another file than the cursor, and writes it first.
type half struct {
	*storetest.Memory
	model *[]byte
}

func halves() broken {
	var model []byte
	return broken{store: func(_ *link, m *storetest.Memory) state.Store { return half{m, &model} }}
}

// Commit implements state.Store.
func (h half) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	*h.model = next.Algorithm
	return h.Memory.Commit(ctx, next, entries, kept...)
}

// Load implements state.Store.
func (h half) Load(ctx context.Context) (state.Checkpoint, error) {
	c, err := h.Memory.Load(ctx)
	if err == nil {
		c.Algorithm = *h.model
	}
	return c, err
}

// A drain acknowledges each third message and keeps none of them.
type drain struct {
	stream.Transport
	sent *atomic.Int64
}

func drops() broken {
	var sent atomic.Int64
	return broken{link: func(l *link) { l.writer = drain{l.writer, &sent} }}
}

func (d drain) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks := make([]stream.Ack, len(reports))
	for i := range reports {
		if d.sent.Add(1)%3 == 0 {
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1}
			continue
		}
		one, err := d.Transport.Publish(ctx, reports[i:i+1])
		if acks[i] = one[0]; err != nil {
			return acks, err
		}
	}
	return acks, nil
}

// A denial is a broker that keeps every message, and denies at every request that it has some of them.
type denial struct{ stream.Transport }

func denies() broken { return broken{link: func(l *link) { l.writer = denial{l.writer} }} }

func (d denial) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := d.Transport.Publish(ctx, reports)
	for i, r := range reports {
		if r.ID[0]%2 == 0 && acks[i].Sequence > 0 {
			acks[i] = stream.Ack{Status: stream.Refused}
		}
	}
	return acks, err
}

func misreads() broken {
	return broken{device: func(w stream.Transport) stream.Transport { return inflation{w} }}
}

// A first price is a ledger in which an event that takes part again pays nothing.
type firstPrice struct{ ledger.Ledger }

func paysOnce() broken {
	return broken{ledger: func(l ledger.Ledger) ledger.Ledger { return firstPrice{l} }}
}

// Update implements ledger.Ledger.
func (f firstPrice) Update(clock time.Time, accounts []participation.Key,
	edit func(time.Time, [][]ledger.Charge) error) error {
	return f.Ledger.Update(clock, accounts, func(now time.Time, charges [][]ledger.Charge) error {
		before := make([][]ledger.Charge, len(charges))
		for i := range charges {
			before[i] = slices.Clone(charges[i])
		}
		err := edit(now, charges)
		for i := range before {
			for j, c := range before[i] {
				if c.Standing > 0 {
					charges[i][j].Epsilon = c.Epsilon
				}
			}
		}
		return err
	})
}
