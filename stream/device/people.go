package device

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// persons makes one event for each person in the rows, under the key of the person's name, so that a person who took
// part in an earlier run gets that outcome. Who is offered, when and in which order depends on who came and when alone
// (block.People): for rows that end, nobody before their end; where the task declares a wait and the rows are not of
// files, each person at the end of their own wait.
func (m *mapper) persons(ctx context.Context, rows iter.Seq2[task.Row, error]) iter.Seq[*event] {
	p := m.people()
	return func(yield func(*event) bool) {
		people, ended := p.Collected(m.own(ctx, rows)), func() (block.Counts, error) { return p.Counts(), p.Err() }
		waited := p.Wait > 0 && m.names.stream
		if waited {
			a := arrival{people: p, added: make(chan struct{}, 1), ended: make(chan struct{})}
			people, ended = a.all(ctx, m.own(ctx, rows)), a.result
		}
		for one := range people {
			if !waited && m.spanEnds(ctx) != nil {
				break
			}
			waited = true
			if !yield(m.person(one)) {
				return
			}
		}
		var counts block.Counts
		counts, m.failed = ended()
		m.tally.nobodys(counts)
	}
}

// people groups lines by person.
func (m *mapper) people() *block.People[line] {
	user, room := m.loop.contract.agreement.Spec.User, m.loop.MaxBlockRows/rowValues(m.loop.contract.agreement)
	return &block.People[line]{ID: func(l line) string { return l.row.User }, Items: user.Items,
		Wait: time.Duration(user.Wait), Most: int(min(room, math.MaxInt))}
}

// own yields rows that own their memory, until the client ends.
func (m *mapper) own(ctx context.Context, rows iter.Seq2[task.Row, error]) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for row, err := range rows {
			var bad *task.RowError
			switch {
			case ctx.Err() != nil:
				yield(line{}, ctx.Err()) // this is not the end of the rows
				return
			case err != nil && !errors.As(err, &bad):
				yield(line{}, fmt.Errorf("read rows: %w", err))
				return
			}
			m.tally.read()
			row.Fields, row.Index, row.Value = slices.Clone(row.Fields), slices.Clone(row.Index), slices.Clone(row.Value)
			if !yield(line{row, bad}, nil) {
				return
			}
		}
	}
}

// person returns the event of one person.
func (m *mapper) person(one block.Person[line]) *event {
	e := m.about(participation.EventKey(one.ID), []block.Person[line]{one})
	e.person = one.ID
	return e
}

// about returns the event of a block of people. Working it out maps as many rows for everybody, however many they
// have.
func (m *mapper) about(key participation.Key, people []block.Person[line]) *event {
	e := &event{record: participation.Record{Key: key}, people: uint64(len(people)), over: func() {}}
	for _, one := range people {
		e.rows += uint64(len(one.Rows))
	}
	var invalid uint64
	e.work = func() block.Block {
		units := make([][]convex.Example, len(people))
		for i, one := range people {
			units[i] = make([]convex.Example, len(one.Rows))
			for j, l := range one.Rows {
				var bad *task.RowError
				if units[i][j], bad = m.example(l.row, l.bad); bad != nil {
					invalid++
				}
			}
			for range m.loop.contract.agreement.Spec.User.Items - len(one.Rows) {
				_ = m.loop.reports.mapRow(m.decoy, new(convex.Example))
			}
		}
		people = nil
		return block.Join(units...)
	}
	e.callbacks = []func(Outcome){func(got Outcome) {
		e.vector() // the summary says how many rows fit, also of somebody who did not join
		m.tally.answered(got, e.people, invalid)
		e.release()
	}}
	return e
}

// nobodys counts rows that are in no event.
func (t *tally) nobodys(c block.Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offers += uint64(c.Nameless + c.Surplus)
	t.sum.Keyless += uint64(c.Nameless)
	t.sum.Surplus += uint64(c.Surplus)
}

// An arrival takes the rows of a stream as they come, however long those who came wait for a round.
type arrival struct {
	added, ended chan struct{} // a row came; none comes any more

	mu     sync.Mutex
	people *block.People[line] // guarded by mu
	failed error               // guarded by mu
}

func (a *arrival) result() (block.Counts, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.people.Counts(), a.failed
}

// read takes rows until they end, fail, or ctx ends.
func (a *arrival) read(rows iter.Seq2[line, error]) {
	defer close(a.ended)
	for l, err := range rows {
		a.mu.Lock()
		if err == nil {
			err = a.people.Add(l, time.Now())
		}
		a.failed = err
		a.mu.Unlock()
		if err != nil {
			return
		}
		signal(a.added)
	}
}

// all yields everybody at the end of the own wait, and ends when nobody waits and no row can come. Those who came
// before the rows failed have their time. It does not wait for a pull that blocks.
func (a *arrival) all(ctx context.Context, rows iter.Seq2[line, error]) iter.Seq[block.Person[line]] {
	return func(yield func(block.Person[line]) bool) {
		go a.read(rows)
		reading := a.ended
		for ctx.Err() == nil {
			a.mu.Lock()
			one, due, ok := a.people.Take(time.Now())
			a.mu.Unlock()
			var over <-chan time.Time
			switch {
			case ok && !yield(one):
				return
			case ok:
				continue
			case !due.IsZero():
				over = time.After(time.Until(due))
			case reading == nil:
				return
			}
			select {
			case <-ctx.Done():
			case <-reading:
				reading = nil
			case <-a.added:
			case <-over:
			}
		}
	}
}
