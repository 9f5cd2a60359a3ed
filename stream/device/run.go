package device

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/learner/task"
)

// errRows: the device was made for events that come with keys of their own, and its store belongs to those.
var errRows = errors.New(
	"client: Run without Settings.Rows: the task says in events.key or user.column what rows are to be known by")

// errUserKeys is returned by Run with UserKeys: a row's key is its number or random, so with accounts by key a
// user would pay separately in every task.
var errUserKeys = errors.New("client: UserKeys with Run: rows are not keyed by user, so no user's total would bind; " +
	"use Publish with an participation.EventKey, or leave UserKeys unset")

// unknownRows is the row count of a Run that was not told it.
const unknownRows = math.MaxUint64

// Expect announces the number of rows that Run will be given, and must be called before Run: the client then takes its
// proper share of each round beside other clients. Without Expect it behaves as if it had all users of the plan, and
// several such clients send more to the first rounds than those take.
func (c *Device) Expect(rows uint64) { c.loop.core.rows.Store(min(max(rows, 1), unknownRows-1)) }

// Run publishes rows, each a user, as they come, and stops the client. It returns when the rows have ended and the
// outcome of every one is known, when the task has ended and no row came for a Poll, or when ctx ends; then charged
// rows are Unknown, and a later Run with the same store and Source goes on.
//
// A row that cannot be read or mapped is sent as the zero vector, counted in Invalid, and logged with its line. An
// error of rows other than a *task.RowError ends the reading, and is returned when what was read before is settled.
// Rows are pulled when a round has room for them; at most a few chunks are held before, and as many rows as
// Settings.Shuffle says.
//
// Whatever order rows come in, each is known by its place in its file, and a store keeps the seed of the order: a
// later run sends none twice, leaves none out, and asks them in the same order, if Shuffle is the same.
//
// Of a silo in many passes all rows are one block: they are read to their end before anything is sent, and held as
// long as its rounds last. Fewer than took part before are an error, and the last ones of more are left over.
//
// Of a silo whose people are protected all rows are read to their end, too, and everybody is in one block for ever:
// the same in every run.
//
// Rows have no user's id, so Run with Settings.UserKeys is an error, and nothing is done.
//
// Run does not wait for a pull that blocks, such as a terminal's: rows must be safe to be pulled once more after Run.
func (c *Device) Run(ctx context.Context, rows iter.Seq2[task.Row, error]) (Summary, error) {
	if c.loop.UserKeys {
		return Summary{}, errUserKeys
	}
	select {
	case <-c.done:
		return Summary{}, c.ended()
	default:
	}
	c.loop.core.rows.CompareAndSwap(0, unknownRows)
	c.run()
	t := newTally()
	pulled := make(chan error, 1)
	go func() { pulled <- panics.Caught(func() error { return c.pull(t, rows) }) }()
	ended := c.loop.ended
	var idle <-chan time.Time // ticks after the task's end
	var seen uint64
	var failed error
wait:
	for {
		reads, open := t.waiting()
		if pulled == nil && open == 0 {
			break
		}
		select {
		case failed = <-pulled:
			pulled = nil
		case <-t.changed:
		case <-ended:
			ended = nil
			ticker := time.NewTicker(c.loop.Poll)
			defer ticker.Stop()
			idle, seen = ticker.C, reads
		case <-idle:
			reads, open = t.waiting() // an offer that nobody answered yet did not wake this loop
			if reads == seen && open == 0 {
				break wait
			}
			seen = reads
		case <-c.done:
			break wait
		case <-ctx.Done():
			failed = ctx.Err()
			break wait
		}
	}
	if err := c.Close(); err != nil {
		failed = err
	}
	if n := t.summary().Invalid; n > maxInvalidLogged {
		c.loop.Logger.Warn("more invalid rows, not logged one by one", "rows", n-maxInvalidLogged)
	}
	if n := t.summary().LeftOver; n > 0 {
		why, block := "rows at the ends of files are too few for a block, and were not sent: as long as the task goes on, a later run takes them with those that are added", "rows_of_a_block"
		switch a := c.loop.contract.agreement; {
		case a.Spec.Privacy.ByUser():
			why, block = "these rows are of people who fill no block, or came after this silo first took part: they are in no report of this task", "people_of_a_block"
		case a.Whole():
			why = "there are more rows than this silo first took part with, or than a report of the task can be about: the last ones are in none"
		}
		c.loop.Logger.Warn(why, "rows", n, block, max(c.loop.contract.kept, c.loop.contract.bound().Units()))
	}
	if n := t.held(); n > 0 {
		c.loop.Logger.Info("rows that were read were offered to no round", "rows", n)
	}
	return t.summary(), failed
}

// pull offers rows until they end, the client ends, or they fail.
func (c *Device) pull(t *tally, rows iter.Seq2[task.Row, error]) error {
	agreement, err := c.Agreement(c.ctx)
	if err != nil {
		return nil // Close returns the error
	}
	names := naming{keys: agreement.Spec.Events.Key != "", source: c.loop.Source, live: c.loop.Source == "",
		stream: c.loop.streams()}
	if (names.keys || agreement.Spec.Privacy.ByUser() || agreement.Spec.Silo != nil) && !c.loop.Rows {
		return errRows
	}
	if names.live {
		names.source = rand.Text()
	}
	m := mapper{loop: c.loop, tally: t, names: names, decoy: agreement.Features.Decoy()}
	events := m.events(rows)
	switch {
	case agreement.Spec.Silo != nil && agreement.Spec.Privacy.ByUser():
		events = m.patients(c.ctx, rows)
	case agreement.Whole():
		events = m.whole(c.ctx, rows)
	case agreement.Spec.Silo != nil:
		events = m.blocks(c.ctx, rows)
	case agreement.Spec.Privacy.ByUser():
		events = m.persons(c.ctx, rows)
	}
	for e := range task.Shuffled(events, c.loop.Shuffle, ordering(c.loop.contract.order)) {
		t.offered(e.rows)
		if err := c.loop.inbox.put(c.ctx, e); err != nil {
			t.withdrawn(e.rows)
			break
		}
	}
	return m.failed
}
