package device

import (
	"context"
	"errors"
	"slices"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Publish sends one event and waits until its outcome is known: a round that takes it has closed, or the task has
// ended. key names the user's event; for a key that took part before, in this process or an earlier one, it returns the
// known outcome and sends nothing. An example that does not fit the task (see Agreement.Valid) is sent as the zero
// vector. A task whose reports are about people or blocks of rows refuses Publish: use PublishBlock.
//
// With an error, only the Outcome is known: Unknown if ctx ended while the event was under way; Publish with the same
// key asks again. If the policy refuses, the Outcome is Refused and the error a *RefusedError.
func (c *Device) Publish(ctx context.Context, key participation.Key, e convex.Example) (Outcome, error) {
	x := cloned(e)
	return c.PublishFunc(ctx, key, func() convex.Example { return x })
}

// PublishFunc is Publish of an example that e works out when the event joins a round. The report leaves on a tick after
// that, so e must be done within half of a tick (beat.go) for any event, or the time of the report reveals its content.
// e is called at most once, from another goroutine.
func (c *Device) PublishFunc(ctx context.Context, key participation.Key, e func() convex.Example) (Outcome, error) {
	return c.await(ctx, &event{record: participation.Record{Key: key}, rows: 1, fits: oneRow,
		work: func() block.Block { return block.Of(e()) }})
}

// PublishBlock publishes, as Publish does, all rows of one person at once in a task that protects people
// (privacy.unit: user), or a block of an organisation's rows in a task of one pass that declares a silo. Other
// tasks refuse it.
//
// The key of a person is EventKey of the person's id, and the rows are all that this person ever contributes to
// the task: the first user.items of them (as the task declares) enter the report, the others count as
// Summary.Surplus. There may be no rows. Later rows of the same person make no report of their own, whatever they
// are: a key that took part is answered and not sent again.
//
// A block of an organisation has Agreement.Units rows, as every other block, and a key of its own. No row may be
// in two blocks, in this process or any other: a program that forms blocks again after a restart must form the
// same ones. The client takes part in each round with one block.
func (c *Device) PublishBlock(ctx context.Context, key participation.Key, rows ...convex.Example) (Outcome, error) {
	own := make([]convex.Example, len(rows))
	for i, e := range rows {
		own[i] = cloned(e)
	}
	return c.PublishBlockFunc(ctx, key, len(own), func() []convex.Example { return own })
}

// PublishBlockFunc is PublishBlock for so many rows that are worked out when they join, as with PublishFunc. The rows
// of a person must take as long whatever their number, and more than user.items of them need not be worked out.
func (c *Device) PublishBlockFunc(ctx context.Context, key participation.Key, rows int,
	work func() []convex.Example) (Outcome, error) {
	e := &event{record: participation.Record{Key: key}, rows: 1}
	e.fits = func(a *consent.Agreement) error { return rowsFit(a, rows) }
	e.work = func() block.Block {
		of := work()
		if spec := c.loop.contract.agreement.Spec; spec.Privacy.ByUser() {
			return block.Join(of[:min(len(of), spec.User.Items)])
		}
		return block.Of(of...)
	}
	e.callbacks = []func(Outcome){func(o Outcome) {
		if a := c.loop.contract.agreement; a != nil && a.Spec.Privacy.ByUser() && o.State != participation.Refused {
			c.loop.core.book.total.Surplus += uint64(max(0, rows-a.Spec.User.Items))
		}
	}}
	return c.await(ctx, e)
}

// oneRow refuses an event of one row in a task whose reports are about more.
func oneRow(a *consent.Agreement) error {
	switch {
	case a.Spec.Privacy.ByUser():
		return consent.Refuse("Publish", "one event", "PublishBlock with all events of a person, whom the task protects")
	case a.Spec.Silo != nil:
		return consent.Refuse("Publish", "one event",
			"PublishBlock with %d rows: the task's reports are about blocks of an organisation", a.Units())
	}
	return nil
}

// rowsFit refuses a block of this many rows in a task whose reports are not about such blocks.
func rowsFit(a *consent.Agreement, rows int) error {
	silo, units := a.Spec.Silo != nil, a.Units()
	switch {
	case !silo && !a.Spec.Privacy.ByUser():
		return consent.Refuse("PublishBlock", "a block",
			"Publish with one event: the task protects single events, and declares no silo")
	case silo && a.Spec.Privacy.ByUser():
		return consent.Refuse("PublishBlock", "a block", "none: not yet, rows in a block of people are of nobody here")
	case silo && a.Phases[0].Rounds > 1:
		return consent.Refuse("PublishBlock", "a block",
			"none: not yet, a task that asks for all rows of an organisation in every round takes them from files alone")
	case silo && uint64(rows) != units:
		return consent.Refuse("PublishBlock", rows, "%d rows, as each block of the task has", units)
	}
	return nil
}

func cloned(e convex.Example) convex.Example {
	return convex.Example{Index: slices.Clone(e.Index), Value: slices.Clone(e.Value), Label: e.Label}
}

// await gives an event to the loop and waits for its outcome.
func (c *Device) await(ctx context.Context, asked *event) (Outcome, error) {
	c.run()
	if asked.record.Key == (participation.Key{}) {
		return refusedBy(consent.Refuse("key", "zero", "RowKey or participation.EventKey"))
	}
	answer, agreed := make(chan Outcome, 1), c.loop.contract.agreed
	select {
	case <-agreed:
		if agreed = nil; asked.fits(c.loop.contract.agreement) != nil {
			return refusedBy(asked.fits(c.loop.contract.agreement))
		}
	default:
	}
	asked.callbacks = append(asked.callbacks, func(o Outcome) { answer <- o })
	if err := c.loop.inbox.put(ctx, asked); err != nil {
		if !errors.Is(err, errEnded) {
			return Outcome{State: participation.Uncounted}, err
		}
		<-c.done
		if refused, ok := errors.AsType[*consent.RefusedError](c.err); ok {
			return Outcome{State: participation.Refused, Refused: refused}, c.err
		}
		return Outcome{State: participation.Uncounted}, c.ended()
	}
	for {
		select {
		case <-agreed:
			if agreed = nil; asked.fits(c.loop.contract.agreement) != nil {
				return refusedBy(asked.fits(c.loop.contract.agreement)) // the loop will not take it either
			}
		case got := <-answer:
			if got.State == participation.Refused {
				return got, got.Refused
			}
			return got, nil
		case <-ctx.Done():
			return Outcome{State: participation.Unknown}, ctx.Err()
		}
	}
}

func refusedBy(err error) (Outcome, error) {
	o := Outcome{State: participation.Refused}
	_ = errors.As(err, &o.Refused)
	return o, err
}
