package device

import (
	"time"
)

// beats is the grid of ticks, beginning with the client, on which publishes leave. Events that have come until a tick
// join on it, up to its quota; their reports are worked out then, and sealed and sent on the next tick, however long
// that took. So the time of a publish depends on the times at which events came, and not on their content, as long as
// the work for a quota ends before the next tick. Quota and tick are chosen by the measured cost of a decoy of the
// declared shape, so that the work of a quota takes half of a tick.
type beats struct {
	begun time.Time
	tick  time.Duration
	quota int       // events that join on one tick
	most  int       // of quota
	due   time.Time // the next tick, if events wait for it; zero: none do
	left  int       // of the quota of the tick that is being worked on; 0 between
}

// ticks are the lengths that are tried first.
var ticks = [...]time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}

// mostWork bounds the work of an event that a tick is made for.
const mostWork = 10 * time.Minute

func newBeats(begun time.Time, chunk, most int) *beats {
	b := &beats{begun: begun, most: most}
	b.fit(0, chunk)
	return b
}

// fit chooses the shortest tick that is at least twice a chunk's work, or the longest with a smaller quota, or one that
// fits a single event.
func (b *beats) fit(work time.Duration, chunk int) {
	work = min(work, mostWork)
	for _, b.tick = range ticks {
		if 2*work*time.Duration(chunk) <= b.tick {
			break
		}
	}
	for 2*work > b.tick {
		b.tick *= 2
	}
	b.quota = b.most
	if work > 0 {
		b.quota = int(min(time.Duration(b.most), b.tick/(2*work)))
	}
}

// next returns the first tick after t.
func (b *beats) next(t time.Time) time.Time {
	return b.begun.Add((t.Sub(b.begun)/b.tick + 1) * b.tick)
}

// within returns the longest time from when an event may join until its report leaves: the event waits for a tick, its
// report is computed, and leaves on the next tick.
func (b *beats) within() time.Duration { return 2 * b.tick }

// arm makes events wait for the first tick after now, if they wait for none yet.
func (b *beats) arm(now time.Time) {
	if b.due.IsZero() {
		b.due = b.next(now)
	}
}

// begin begins a tick, on which its quota may join until end.
func (b *beats) begin() { b.due, b.left = time.Time{}, b.quota }

func (b *beats) end() { b.left = 0 }

// firstSpan is the length of the first reading span. Spans double from the client's start; rows are offered only
// at the end of a span, so that the time of a report does not reveal how many rows there were.
const firstSpan = time.Second

// spanEnd returns the end of the reading span that a time is in.
func (b *beats) spanEnd(now time.Time) time.Time {
	span := firstSpan
	for now.Sub(b.begun) > span {
		span *= 2
	}
	return b.begun.Add(span)
}
