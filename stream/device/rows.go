package device

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// maxInvalidLogged bounds the invalid rows that are logged with their line.
const maxInvalidLogged = 20

// suspicious is the number of rows, none of which fits, after which the log warns of it.
const suspicious = 16

// source returns the source that a store is pinned to: the place of the rows or, where rows have keys, the column of
// the keys. All rows of a silo are its own, wherever they lie.
func (c *Settings) source(a *consent.Agreement) string {
	spec := a.Spec
	if a.Whole() {
		return "all rows of a silo"
	}
	if spec.Privacy.ByUser() && c.Rows {
		return "people of " + spec.User.Column
	}
	if key := spec.Events.Key; c.Rows && key != "" {
		return "keys of " + key
	}
	return c.Source
}

// streams reports whether rows come over time, and not from files.
func (c *Settings) streams() bool { return c.Source == "" || c.Source == "-" }

// A naming decides how keys are made for rows.
type naming struct {
	keys   bool   // of their own; a row without one is not sent
	source string // of the rows, where they name none
	live   bool   // they are new in every run
	stream bool   // they come over time: not from files
}

// key makes the key of a row from the row's own key, or from its place. The rows of a pattern of files are known by
// their file, so that a file may be added before others.
func (n naming) key(row task.Row) (key participation.Key, ok bool) {
	switch {
	case n.keys && row.Key == "":
		return key, false
	case n.keys:
		return participation.EventKey(row.Key), true
	case row.File == "":
		return participation.RowKey(n.source, row.Number), true
	case n.live:
		return participation.RowKey(n.source+"\x00"+row.File, row.Number), true
	}
	return participation.RowKey(row.File, row.Number), true
}

// A mapper makes events of rows. It reads them as they come; the loop has them mapped when they join.
type mapper struct {
	loop    *loop
	tally   *tally
	names   naming
	decoy   task.Row
	joined  int   // rows that were mapped; of the loop's goroutine
	invalid int   // of them
	failed  error // ended the rows
}

func (m *mapper) events(rows iter.Seq2[task.Row, error]) iter.Seq[*event] {
	return func(yield func(*event) bool) {
		for row, err := range rows {
			var bad *task.RowError
			if err != nil && !errors.As(err, &bad) {
				m.failed = fmt.Errorf("read rows: %w", err)
				return
			}
			key, ok := m.names.key(row)
			if !ok {
				if m.tally.keyless() <= maxInvalidLogged {
					m.loop.Logger.Warn("row without a key that can be read: not sent", "line", row.Line)
				}
				continue
			}
			m.tally.read()
			row.Fields, row.Index, row.Value = slices.Clone(row.Fields), slices.Clone(row.Index), slices.Clone(row.Value)
			e := &event{record: participation.Record{Key: key}, person: row.Key, rows: 1}
			e.callbacks = []func(Outcome){func(got Outcome) {
				e.vector() // of a row that did not join, too, the summary reports whether it fits
				invalid := uint64(0)
				if bad != nil {
					invalid = 1
				}
				m.tally.answered(got, 1, invalid)
			}}
			e.work = func() block.Block {
				var x convex.Example
				x, bad = m.example(row, bad)
				return block.Of(x)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// spanEnds waits for the end of the reading span in which the last row was read, so that the number and length of the
// rows show in nothing but that span. After the task's end nothing is sent, and spanEnds returns at once.
func (m *mapper) spanEnds(ctx context.Context) error {
	select {
	case <-m.loop.ended:
	case <-time.After(time.Until(m.loop.core.beats.spanEnd(time.Now()))):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// example maps a row, or returns why the row does not fit the task. A row that does not fit takes as much work as one
// that does.
func (m *mapper) example(row task.Row, bad *task.RowError) (x convex.Example, unfit *task.RowError) {
	m.joined++
	if bad == nil {
		if err := m.loop.reports.mapRow(row, &x); !errors.As(err, &bad) {
			return x, nil
		}
	}
	_ = m.loop.reports.mapRow(m.decoy, &x)
	m.tell(bad)
	return convex.Example{}, bad
}

// tell logs an invalid row. It changes nothing of what is sent.
func (m *mapper) tell(bad *task.RowError) {
	if m.invalid++; m.invalid <= maxInvalidLogged {
		m.loop.Logger.Warn("invalid row: sent as the zero vector", "line", bad.Line, "reason", bad.Error())
	}
	if m.invalid == suspicious && m.joined == suspicious {
		m.loop.Logger.Warn("no row has fitted the task so far: are these its data? Invalid rows take part as zero vectors; " +
			"ingest publish --check looks at data and sends nothing")
	}
}

// vector returns the block of the event, and works it out if that was not done yet.
func (e *event) vector() block.Block {
	if e.work != nil {
		e.block, e.work = e.work(), nil
	}
	return e.block
}
