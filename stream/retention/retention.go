// Package retention removes the records of a task that nobody needs any more, so that the streams of a task that runs
// for years do not grow: the Round, Open, Claim, Close and Batch of rounds that are older than an age and more than
// [stream.KeptRounds] behind the newest, and in a task of two operators their Join and Share. Task, stage, helper and
// End stay.
//
// It is the administrator's part, by a [Broker] that can remove. All times are the broker's own: no clock of this
// process decides anything. docs/reference/protocol.md argues why the remaining records mislead nobody, also not a
// process that comes back late.
package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Every is the default interval at which records are removed.
const Every = time.Hour

// A Record is one message of a stream, without its data.
type Record struct {
	Subject  string
	Sequence uint64
	Time     time.Time // when the broker stored it, by its clock
}

// A Broker performs the operations on the records of a task that only an administrator may do.
type Broker interface {
	// Newest returns the Round that was announced last, or stream.ErrNotFound if there is none.
	Newest(ctx context.Context, task stream.Task) (Record, error)
	// Records yields the records of Rounds, Attempts, Joins or Batches, by sequence; none where the task has no such stream. Those removed meanwhile may be missing.
	Records(ctx context.Context, task stream.Task, s stream.Stream) iter.Seq2[Record, error]
	// Remove removes messages of such a stream by their sequences. A missing message is no error.
	Remove(ctx context.Context, task stream.Task, s stream.Stream, sequences []uint64) error
}

// Removed describes the result of a sweep.
type Removed struct {
	Newest  stream.Round `json:"newest"`  // announced
	Before  stream.Round `json:"before"`  // the rounds below it have no records any more; 0: nothing was old enough
	Records uint64       `json:"records"` // that this sweep removed
}

// Sweep removes records that are older than age. A round's time is the time of its batch, and now is the time of the
// newest Round. Sweep may be called again, also after it was cut short, and beside another sweep.
//
// Rounds go first and batches last: the batches tell how far a sweep has to go, so a sweep that was cut short is done
// again. Shares go before batches, so that a leader that looks finds no Share of a round whose batch is gone.
func Sweep(ctx context.Context, b Broker, task stream.Task, age time.Duration) (Removed, error) {
	if age <= 0 {
		return Removed{}, fmt.Errorf("retention: age %v: want more than 0", age)
	}
	newest, err := b.Newest(ctx, task)
	if errors.Is(err, stream.ErrNotFound) {
		return Removed{}, nil
	}
	if err != nil {
		return Removed{}, fmt.Errorf("retention: newest round: %w", err)
	}
	number, ok := roundOf(newest)
	if !ok {
		return Removed{}, fmt.Errorf("retention: newest round: the broker shows %q", newest.Subject)
	}
	out := Removed{Newest: number}
	if number <= stream.KeptRounds {
		return out, nil
	}
	old := func(r stream.Round, m Record) bool {
		return r+stream.KeptRounds < number && newest.Time.Sub(m.Time) > age
	}
	batches, err := oldest(ctx, b, task, stream.Batches, func(r stream.Round, m Record) bool {
		if old(r, m) {
			out.Before = max(out.Before, r+1)
			return true
		}
		return false
	})
	if err != nil || out.Before == 0 {
		return out, err
	}
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Joins} {
		list, err := oldest(ctx, b, task, s, func(r stream.Round, _ Record) bool { return r < out.Before })
		if err == nil {
			err = out.remove(ctx, b, task, s, list)
		}
		if err != nil {
			return out, err
		}
	}
	return out, out.remove(ctx, b, task, stream.Batches, batches)
}

// oldest returns the sequences of the first records of a stream with a chosen round, up to the first record without
// one.
func oldest(ctx context.Context, b Broker, task stream.Task, s stream.Stream, chosen func(stream.Round,
	Record) bool) ([]uint64, error) {
	var list []uint64
	for m, err := range b.Records(ctx, task, s) {
		if err != nil {
			return nil, fmt.Errorf("retention: records of %v: %w", s, err)
		}
		r, ok := roundOf(m)
		if !ok {
			continue // it belongs to the task as a whole
		}
		if !chosen(r, m) {
			break
		}
		list = append(list, m.Sequence)
	}
	return list, nil
}

// remove removes records, the oldest rounds first.
func (r *Removed) remove(ctx context.Context, b Broker, task stream.Task, s stream.Stream, sequences []uint64) error {
	if len(sequences) == 0 {
		return nil
	}
	if err := b.Remove(ctx, task, s, sequences); err != nil {
		return fmt.Errorf("retention: remove records of %v: %w", s, err)
	}
	r.Records += uint64(len(sequences))
	return nil
}

// roundOf returns the round of a record that has one.
func roundOf(m Record) (stream.Round, bool) {
	a, err := stream.ParseSubject(m.Subject)
	return a.Round, err == nil && a.Round > 0
}
