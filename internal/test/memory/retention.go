package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/retention"
)

var _ retention.Broker = (*Broker)(nil)

// Newest implements retention.Broker.
func (b *Broker) Newest(ctx context.Context, task stream.Task) (retention.Record, error) {
	if err := b.enter(ctx, "newest round of "+string(task), 0); err != nil {
		return retention.Record{}, err
	}
	defer b.mu.Unlock()
	r := b.tenant(task).records[stream.Rounds]
	for _, m := range slices.Backward(r.order) {
		if r.bySubject[m.Subject] == m && matches(task.Rounds(), m.Subject) {
			return r.record(m), nil
		}
	}
	return retention.Record{}, fmt.Errorf("newest round of %s: %w", task, stream.ErrNotFound)
}

// Records implements retention.Broker.
func (b *Broker) Records(ctx context.Context, task stream.Task, s stream.Stream) iter.Seq2[retention.Record, error] {
	return func(yield func(retention.Record, error) bool) {
		if err := b.enter(ctx, fmt.Sprintf("records of %s", task.Name(s)), 0); err != nil {
			yield(retention.Record{}, err)
			return
		}
		var all []retention.Record
		if r := b.tenant(task).records[s]; r != nil {
			for _, m := range r.order {
				if r.bySubject[m.Subject] == m {
					all = append(all, r.record(m))
				}
			}
		}
		b.mu.Unlock()
		for _, m := range all {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Remove implements retention.Broker.
func (b *Broker) Remove(ctx context.Context, task stream.Task, s stream.Stream, sequences []uint64) error {
	if s != stream.Rounds && s != stream.Attempts && s != stream.Joins && s != stream.Batches {
		return fmt.Errorf("remove records of %v: %w", s, stream.ErrRefused)
	}
	if err := b.enter(ctx, "remove records of "+task.Name(s), 0); err != nil {
		return err
	}
	defer b.mu.Unlock()
	r := b.tenant(task).records[s]
	gone := make(map[uint64]bool, len(sequences))
	for _, n := range sequences {
		gone[n] = true
	}
	r.order = slices.DeleteFunc(r.order, func(m *stream.Message) bool {
		if gone[m.Sequence] && r.bySubject[m.Subject] == m {
			delete(r.bySubject, m.Subject)
			delete(r.times, m.Sequence)
		}
		return gone[m.Sequence]
	})
	return nil
}

func (r *records) record(m *stream.Message) retention.Record {
	return retention.Record{Subject: m.Subject, Sequence: m.Sequence, Time: r.times[m.Sequence]}
}
