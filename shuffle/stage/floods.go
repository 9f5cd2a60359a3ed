package stage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// floods count the reports that did not count, by the attempts that their subjects name: what an operator has to know
// of a device that floods a task. Nothing in it is from inside of a report.
type floods struct {
	strange uint64 // for no open attempt, since the process started

	begun                      time.Time // when the counting of these began
	accepted, refused, foreign uint64
	of                         map[place]uint64 // refused; of many places those with the most, and at least so many

	again                     uint64 // redelivered, when last logged
	told, toldFull, toldAgain time.Time
}

// A place is an attempt that a subject names; zero: the subject names none.
type place struct {
	round   stream.Round
	attempt stream.Attempt
}

func (p place) String() string {
	if p == (place{}) {
		return "no attempt"
	}
	return fmt.Sprintf("round %d attempt %d", p.round, p.attempt)
}

const (
	mostPlaces = 64 // that are counted at a time
	toldPlaces = 4  // that a line of the log names
	usualLate  = 64 // reports that come too late in any case, beside as many as count and one cohort
)

// saw counts a message that was examined.
func (f *floods) saw(o *sealed) {
	if o.reason == Accepted {
		f.accepted++
		return
	}
	f.refused++
	if !o.mine {
		f.strange++
		f.foreign++
	}
	if f.of == nil {
		f.of = map[place]uint64{}
	}
	if _, known := f.of[o.of]; known || len(f.of) < mostPlaces {
		f.of[o.of]++
		return
	}
	for p := range f.of { // a place with more than 1/mostPlaces of all reports stays
		if f.of[p]--; f.of[p] == 0 {
			delete(f.of, p)
		}
	}
}

// most names the attempts that most of the refused reports name.
func (f *floods) most() string {
	places := slices.SortedFunc(maps.Keys(f.of), func(a, b place) int {
		return cmp.Or(cmp.Compare(f.of[b], f.of[a]), cmp.Compare(a.round, b.round), cmp.Compare(a.attempt, b.attempt))
	})
	var list []string
	for _, p := range places[:min(len(places), toldPlaces)] {
		list = append(list, fmt.Sprintf("%v: %d", p, f.of[p]))
	}
	if len(places) > toldPlaces {
		list = append(list, "and others")
	}
	return strings.Join(list, ", ")
}

// due reports whether a message may be logged again.
func due(told, now time.Time) bool { return told.IsZero() || now.Sub(told) >= stream.TellEvery }

const hostile = "docs/how-to/runbook.md, hostile devices, says what to do"

// A queueWatch looks at the stream of reports, and warns of what is wrong with it.
type queueWatch struct {
	*environment
	size  Queue          // as it was seen last
	blind stream.Trouble // it cannot be seen
}

// look notes how full the queue is.
func (w *queueWatch) look(ctx context.Context) *stream.Queue {
	q, err := w.Reports.Queue(ctx)
	if err != nil {
		w.Logger.Log(ctx, w.blind.Level(time.Now(), err),
			"cannot see how full the stream of reports is, and purge what is dead", "error", err)
		observe.Tell(w.Observer.Failed, queued.String())
		return nil
	}
	w.blind.Over()
	w.size = Queue{Messages: q.Messages, Bytes: q.Bytes, MaxBytes: q.MaxBytes}
	w.tellFull(ctx, time.Now())
	return &q
}

// tellFloods warns of reports that do not count, where they are more than come too late by themselves, and of reports
// that came again.
func (w *queueWatch) tellFloods(now time.Time, redelivered uint64) {
	f := &w.floods
	if redelivered > f.again && due(f.toldAgain, now) {
		w.Logger.Warn(
			"reports were delivered again: they had been out, unacknowledged, for as long as the broker waits. A stage process died with "+
				"them, or is slower than that, or its acknowledgements were lost", "reports", redelivered-f.again)
		f.again, f.toldAgain = redelivered, now
	}
	flooded := f.refused > f.accepted+w.usual()+usualLate
	switch {
	case flooded && due(f.told, now):
		w.Logger.Warn("most reports do not count: a device floods the task, or many come too late; "+hostile, "refused",
			f.refused,
			"of_no_open_attempt", f.foreign, "accepted", f.accepted, "mostly", f.most(), slog.Any("queue", w.size))
		f.told = now
	case !due(f.begun, now):
		return
	}
	f.begun, f.accepted, f.refused, f.foreign, f.of = now, 0, 0, 0, nil
}

// usual returns the largest cohort of the plan.
func (w *queueWatch) usual() (users uint64) {
	for _, f := range w.task.GetPlan().GetPhases() {
		users = max(users, cmp.Or(f.Top, f.Cohort))
	}
	return users
}

// tellFull warns of a queue that is half full.
func (w *queueWatch) tellFull(ctx context.Context, now time.Time) {
	f, q := &w.floods, w.size
	if q.MaxBytes > 0 && q.Bytes >= q.MaxBytes/2 && due(f.toldFull, now) {
		f.toldFull = now
		w.Logger.WarnContext(ctx, "the stream of reports fills up, and refuses reports when it is full; "+hostile,
			slog.Any("queue", q), "refused_of", f.most())
	}
}

// LogValue returns the figures of the queue.
func (q Queue) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("messages", q.Messages), slog.Uint64("bytes", q.Bytes), slog.Uint64("max_bytes",
		q.MaxBytes))
}
