package device

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// heldBlocks is the number of blocks that are in memory at once: one that is read, one that waits for a round, and
// those of rounds whose outcome is not known yet.
const heldBlocks = 4

// checkBlocks refuses what this program does not do for reports about blocks of rows, and a block that is too large to
// be held.
func (c *Settings) checkBlocks(a *consent.Agreement) error {
	silo, units := a.Spec.Silo != nil, a.Units()
	for i, f := range a.Phases {
		field := fmt.Sprintf("plan.phases[%d]", i)
		switch u := max(1, f.Params.Units); {
		case !silo && u != 1:
			return consent.Refuse(field+".mechanism.units", u, "1 in a task that declares no silo")
		case u != units:
			return consent.Refuse(field+".mechanism.units", u, "%d, as in the first phase, or a row could be in two blocks",
				units)
		case silo && (f.Rounds > 1) != a.Whole() || a.Whole() && i > 0 && !a.Task.Plan.Phases[i].Again:
			return consent.Refuse(field+".rounds_per_user", f.Rounds,
				"1 in every phase, or one stint of all phases: a row is in one block alone")
		}
	}
	if !silo {
		return nil
	}
	values, rows := rowValues(a), a.Rows()
	switch {
	case a.Spec.Privacy.ByUser() && a.Spec.User.Wait > 0 && c.Rows && c.streams():
		return consent.Refuse("user.wait", time.Duration(a.Spec.User.Wait),
			"0 with silo where rows come over time: not yet, all people of an organisation are known before the first report")
	case a.Spec.Events.Key != "":
		return consent.Refuse("events.key", a.Spec.Events.Key, "none with silo: the rows of a block are known by their place")
	case c.Shuffle > 1:
		return consent.Refuse("--shuffle", c.Shuffle, "none with silo: a block is a range of rows as they come")
	case rows > c.MaxBlockRows/values:
		return consent.Refuse("--max-block-rows", c.MaxBlockRows,
			"at least %d: %d rows a report of up to %d values each as declared", rows*values, rows, values)
	}
	return nil
}

// rowValues returns the largest number of values of a row, as declared, those that its public model computes with too.
func rowValues(a *consent.Agreement) uint64 {
	if f := a.Spec.Features; f.Vector != nil && f.Crosses == nil && f.Polynomial == nil && f.Fourier == nil &&
		f.Public == nil {
		return uint64(f.Vector.MaxNonzeros) + 1
	}
	return uint64(a.Features.Dim()+a.Features.PublicMemory()) + 1
}

// A line is one of a file, whether it is a row or not.
type line struct {
	row task.Row
	bad *task.RowError // nil of a row that can be read
}

// lines yields all lines of the files from where rows can begin. Empty lines count as rows that cannot be read: no
// content of a row moves another row into another block.
func (m *mapper) lines(rows iter.Seq2[task.Row, error]) iter.Seq[line] {
	declared := m.loop.contract.agreement.Spec.Events
	begin := int64(declared.SkipLines)
	if declared.Header {
		begin++
	}
	return func(yield func(line) bool) {
		file, at := "", begin
		for row, err := range rows {
			var bad *task.RowError
			if err != nil && !errors.As(err, &bad) {
				m.failed = fmt.Errorf("read rows: %w", err)
				return
			}
			if row.File != file {
				file, at = row.File, begin
			}
			for ; at < row.Number; at++ {
				m.tally.read()
				if !yield(line{task.Row{File: file, Line: at + 1, Number: at}, &task.RowError{Line: at + 1,
					Reason: "an empty line"}}) {
					return
				}
			}
			m.tally.read()
			at = row.Number + 1
			row.Fields, row.Index, row.Value = slices.Clone(row.Fields), slices.Clone(row.Index), slices.Clone(row.Value)
			if !yield(line{row, bad}) {
				return
			}
		}
	}
}

// blocks makes events of ranges of lines. What is left at the end of a file is not sent. No more than heldBlocks are
// held.
func (m *mapper) blocks(ctx context.Context, rows iter.Seq2[task.Row, error]) iter.Seq[*event] {
	held := make(chan struct{}, heldBlocks)
	held <- struct{}{} // by the one that is read
	file := func(l line) string { return l.row.File }
	left := func(n int) { m.tally.left(uint64(n)) }
	return func(yield func(*event) bool) {
		var made uint64
		for lines := range block.Each(m.lines(rows), int(m.loop.contract.agreement.Units()), file, left) {
			key, _ := m.names.key(lines[0].row)
			e := m.event(key, lines, sync.OnceFunc(func() { <-held }))
			e.before = made
			made++
			if !yield(e) {
				return
			}
			select {
			case held <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// allRows is the key of all that a silo has, the same in every run: one made of a path would give a copy of a file
// rounds of its own.
var allRows = participation.EventKey("all rows of a silo")

// whole makes one event of all lines when the input has ended. It maps each line as it reads it and holds no text; the
// time of the mapping shows only in the span of spanEnds. A silo that took part before reports about as many rows as
// then: a report about fewer rows would have too little noise beside its earlier reports. Limits are numbers of rows.
func (m *mapper) whole(ctx context.Context, rows iter.Seq2[task.Row, error]) iter.Seq[*event] {
	return func(yield func(*event) bool) {
		agreement, kept := m.loop.contract.agreement, m.loop.contract.kept
		values, most := rowValues(agreement), agreement.MostUnits()
		if kept > 0 {
			most = kept
		}
		var mapped []convex.Example
		var read, invalid uint64
		for one := range m.lines(rows) {
			switch read++; {
			case ctx.Err() != nil:
				return
			case read > most:
				m.tally.left(1)
			case read > m.loop.MaxBlockRows/values:
				m.failed = consent.Refuse("--max-block-rows", m.loop.MaxBlockRows,
					"more: %d rows and more, of up to %d values each as declared, are one report", read, values)
				return
			default:
				x, bad := m.example(one.row, one.bad)
				if mapped = append(mapped, cloned(x)); bad != nil { // in no more memory than it has values
					invalid++
				}
			}
		}
		if m.failed != nil {
			return
		}
		terms, ok := m.sized("rows of this silo", min(read, most))
		if !ok {
			return
		}
		e := &event{record: participation.Record{Key: allRows}, rows: uint64(len(mapped)), over: func() {}, terms: terms,
			block: block.Block{Rows: mapped}}
		e.callbacks = []func(Outcome){func(got Outcome) {
			m.tally.answered(got, e.rows, invalid)
			e.release()
		}}
		if m.spanEnds(ctx) == nil {
			yield(e)
		}
	}
}

// sized returns the terms of a silo that has so many units in all, nil if it took part before. It fails with a number
// that fits no report of the task.
func (m *mapper) sized(what string, units uint64) (terms *consent.Agreement, ok bool) {
	switch kept := m.loop.contract.kept; {
	case units < kept:
		m.failed = consent.Refuse(what, units, "at least %d, as many as it took part with, whose noise would not hide fewer",
			kept)
	case kept == 0:
		terms, m.failed = m.loop.contract.agreement.Own(units)
	}
	return terms, m.failed == nil
}

// event returns the event of a block. Its rows are worked out when it joins; over is called when none of them is
// needed any more.
func (m *mapper) event(key participation.Key, lines []line, over func()) *event {
	e := &event{record: participation.Record{Key: key}, rows: uint64(len(lines)), over: over}
	var invalid uint64
	e.work = func() block.Block {
		b := block.Block{Rows: make([]convex.Example, len(lines))}
		for i, l := range lines {
			var bad *task.RowError
			if b.Rows[i], bad = m.example(l.row, l.bad); bad != nil {
				invalid++
			}
		}
		lines = nil
		return b
	}
	e.callbacks = []func(Outcome){func(got Outcome) {
		e.vector() // the summary says how many rows fit, also of a block that did not join
		m.tally.answered(got, e.rows, invalid)
		e.release()
	}}
	return e
}

// release drops the block of an event when no report about it follows.
func (e *event) release() {
	if e.over != nil {
		e.block, e.work = block.Block{}, nil
		e.over()
	}
}
