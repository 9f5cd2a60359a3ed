package memory

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// records is one stream that holds one message a subject.
type records struct {
	last      uint64
	bySubject map[string]*stream.Message
	order     []*stream.Message    // ascending sequence; overwritten ones stay until they are half
	times     map[uint64]time.Time // when each message was stored, by sequence
}

func newRecords() *records {
	return &records{bySubject: map[string]*stream.Message{}, times: map[uint64]time.Time{}}
}

func (r *records) store(subject string, data []byte) *stream.Message {
	r.last++
	m := &stream.Message{Subject: subject, Sequence: r.last, Data: bytes.Clone(data)}
	if old := r.bySubject[subject]; old != nil {
		delete(r.times, old.Sequence)
	}
	r.bySubject[subject], r.times[m.Sequence] = m, time.Now()
	r.order = append(r.order, m)
	if len(r.order) > 2*len(r.bySubject)+16 {
		kept := r.order[:0]
		for _, m := range r.order {
			if r.bySubject[m.Subject] == m {
				kept = append(kept, m)
			}
		}
		clear(r.order[len(kept):])
		r.order = kept
	}
	return m
}

func copied(m *stream.Message) stream.Message {
	return stream.Message{Subject: m.Subject, Sequence: m.Sequence, Data: bytes.Clone(m.Data)}
}

// read returns the copy of a message that a reader gets, with its time.
func (r *records) read(m *stream.Message) stream.Message {
	out := copied(m)
	out.Time = r.times[m.Sequence]
	return out
}

// PutOnce implements stream.Records.
func (b *Broker) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	task, s, err := stream.CheckPut(subject)
	if err != nil {
		return stream.PutResult{}, err
	}
	if err := b.enter(ctx, "put "+subject, len(data)); err != nil {
		return stream.PutResult{}, err
	}
	defer b.mu.Unlock()
	fault := b.fault(Put, subject)
	if fault == Lost {
		return stream.PutResult{}, fmt.Errorf("put %s: %w", subject, ErrDisconnected)
	}
	t := b.tenant(task)
	standing := t.records[s].bySubject[subject]
	if standing == nil {
		standing = t.records[s].store(subject, data)
		b.announce(t, s, standing)
	}
	if fault == LostAck {
		return stream.PutResult{}, fmt.Errorf("put %s: no acknowledgement: %w", subject, ErrDisconnected)
	}
	return stream.PutResult{Ours: bytes.Equal(standing.Data, data), Standing: copied(standing)}, nil
}

// Get implements stream.Records.
func (b *Broker) Get(ctx context.Context, subject string) (stream.Message, error) {
	task, s, err := stream.CheckGet(subject)
	if err != nil {
		return stream.Message{}, err
	}
	if err := b.enter(ctx, "get "+subject, 0); err != nil {
		return stream.Message{}, err
	}
	defer b.mu.Unlock()
	r := b.tenant(task).records[s]
	m := r.bySubject[subject]
	if m == nil || b.fault(Get, subject) == Lag {
		return stream.Message{}, fmt.Errorf("get %s: %w", subject, stream.ErrNotFound)
	}
	return r.read(m), nil
}

// Latest implements stream.Records. Under Lag it misses the newest message.
func (b *Broker) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	task, s, err := stream.CheckLatest(pattern)
	if err != nil {
		return stream.Message{}, err
	}
	if err := b.enter(ctx, "latest "+pattern, 0); err != nil {
		return stream.Message{}, err
	}
	defer b.mu.Unlock()
	r := b.tenant(task).records[s]
	skip := b.fault(Latest, pattern) == Lag
	for i := len(r.order) - 1; i >= 0; i-- {
		m := r.order[i]
		if r.bySubject[m.Subject] != m || !matches(pattern, m.Subject) {
			continue
		}
		if !skip {
			return r.read(m), nil
		}
		skip = false
	}
	return stream.Message{}, fmt.Errorf("latest %s: %w", pattern, stream.ErrNotFound)
}

// matches handles patterns that end in one *, which are all that stream.CheckLatest lets through.
func matches(pattern, subject string) bool {
	rest, ok := strings.CutPrefix(subject, strings.TrimSuffix(pattern, "*"))
	return ok && rest != "" && !strings.Contains(rest, ".")
}

// Swap implements stream.Records.
func (b *Broker) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	task, s, err := stream.CheckSwap(subject)
	if err != nil {
		return 0, err
	}
	if err := b.enter(ctx, "swap "+subject, len(data)); err != nil {
		return 0, err
	}
	defer b.mu.Unlock()
	fault := b.fault(Swap, subject)
	if fault == Lost {
		return 0, fmt.Errorf("swap %s: %w", subject, ErrDisconnected)
	}
	r := b.tenant(task).records[s]
	var last uint64
	if m := r.bySubject[subject]; m != nil {
		last = m.Sequence
	}
	if last != expected {
		return 0, fmt.Errorf("swap %s: last sequence %d, expected %d: %w", subject, last, expected, stream.ErrConflict)
	}
	m := r.store(subject, data)
	if fault == LostAck || fault == LostAckRead {
		return 0, fmt.Errorf("swap %s: no acknowledgement: %w", subject, ErrDisconnected)
	}
	return m.Sequence, nil
}

// enter checks what every call checks and takes the lock, which the caller then releases.
func (b *Broker) enter(ctx context.Context, what string, size int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if size > b.config.MaxPayload {
		return fmt.Errorf("%s: %w: %d bytes, the broker takes %d", what, stream.ErrRefused, size, b.config.MaxPayload)
	}
	b.mu.Lock()
	if b.disconnected {
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", what, ErrDisconnected)
	}
	return nil
}
