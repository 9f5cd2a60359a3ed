package device

import (
	"context"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
)

// beats is the grid of ticks, beginning with the client, on which publishes leave. Events that have come until a tick
// join on it, up to its quota; their reports are worked out then, and sealed and sent on the next tick, however long
// that took. So the time of a publish follows from when events came, and not from what they hold, as long as the work
// for a quota ends before the next tick. Quota and tick are chosen by the measured cost of a decoy of the declared
// shape, so that the work of a quota takes half of a tick.
type beats struct {
	begun time.Time
	tick  time.Duration
	quota int         // events that join on one tick
	most  int         // of quota
	timer *time.Timer // of the next tick, while armed
	armed bool
	left  int // of the quota of the tick that is being worked on; 0 between
}

// ticks are the lengths that are tried first.
var ticks = [...]time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}

// mostWork bounds the work of an event that a tick is made for.
const mostWork = 10 * time.Minute

func newBeats(chunk, most int) *beats {
	b := &beats{begun: time.Now(), most: most, timer: time.NewTimer(time.Hour)}
	b.timer.Stop()
	b.fit(0, chunk)
	return b
}

// fit takes the shortest tick of which a chunk's work is at most half, or the longest with a smaller quota, or one
// that one event fits in.
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

// within returns the longest time from when an event may join until its report leaves: the event waits for a tick,
// is worked out, and its report leaves on the next tick.
func (b *beats) within() time.Duration { return 2 * b.tick }

// arm has the timer fire on the next tick.
func (b *beats) arm() {
	if !b.armed {
		now := time.Now()
		b.timer.Reset(b.next(now).Sub(now))
		b.armed = true
	}
}

// firstSpan is the length of the first reading span. Spans double from the client's start; rows are offered only
// at the end of a span, so that the time of a report does not reveal how many rows there were.
const firstSpan = time.Second

// whenRead waits for the end of the span in which the last row was read, so that the number and length of the rows show
// in nothing but that span. After the task's end nothing is sent, and whenRead returns at once.
func (l *loop) whenRead(ctx context.Context) error {
	span := firstSpan
	for time.Since(l.beats.begun) > span {
		span *= 2
	}
	timer := time.NewTimer(time.Until(l.beats.begun.Add(span)))
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Until waits for a time. It returns the context's error if that ends first.
func Until(ctx context.Context, tick time.Time) error {
	timer := time.NewTimer(time.Until(tick))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beat handles a tick: events that have come until now join, and events that come meanwhile wait for the next tick.
func (l *loop) beat(ctx context.Context) error {
	l.beats.armed, l.beats.left = false, l.beats.quota
	defer func() { l.beats.left = 0 }()
	come := min(l.inbox.len(), l.beats.quota)
	for {
		if err := l.advance(ctx); err != nil {
			return err
		}
		n := min(l.room(), l.chunk, come)
		if n <= 0 {
			return nil
		}
		if err := l.admit(l.inbox.take(n)); err != nil {
			return err
		}
		come -= n
	}
}

// calibrate measures what one event of the phase takes at most, on decoys that go nowhere, and chooses tick and quota
// for it. It refuses a task for which there is no tick.
func (l *loop) calibrate(phase int, point []float64, frame *convex.Frame) error {
	rows := l.terms.Rows()
	report, measured, err := l.decoyReport(phase, point, frame)
	if err != nil {
		return err
	}
	work := workOf(measure(report), (rows-1)/measured+1)
	if l.Work != nil {
		beside, err := l.Work(l.agreement)
		if err != nil {
			return err
		}
		work += 2 * measure(beside) // parsing leaves garbage, which is collected while the next ones are parsed
	}
	chunk := l.chunk
	if l.terms.Units() > 1 {
		chunk = 1 // a block comes alone
	}
	l.beats.fit(work, chunk)
	limit := manifest.Deadline(l.agreement.Task.Plan)
	if work <= mostWork && (limit == 0 || l.beats.within() <= limit) {
		return nil
	}
	if l.agreement.Spec.Silo == nil {
		return l.tooSlow(work, limit)
	}
	l.Logger.Warn("a report about as many rows takes longer than a round waits: rounds may close without this silo, "+
		"and hear it too late. schedule.deadline of the task wants to be longer",
		"leaves_within", l.beats.within(), "deadline", limit, "rows", rows)
	return nil
}

// decoyReport returns a function that maps and reports decoys, as far as that is left to do when an event joins, and
// the number of their rows.
func (l *loop) decoyReport(phase int, point []float64, frame *convex.Frame) (work func(), measured uint64, err error) {
	maker, err := report.New(l.terms.Phases[phase].Reports, l.terms.Phases[phase].Params, nil)
	if err != nil {
		return nil, 0, err
	}
	if err := maker.At(point, frame); err != nil {
		return nil, 0, err
	}
	rows, dim := l.terms.Rows(), l.agreement.Features.Dim()
	decoys := make([]convex.Example, min(rows, decoyRows, uint64(max(1, decoyValues/dim))))
	of := block.Block{Rows: decoys}
	if items := int(rows / l.terms.Units()); items > 1 { // of people
		for end := items; end < len(decoys)+items; end += items {
			of.Ends = append(of.Ends, min(end, len(decoys)))
		}
	}
	for i := range decoys { // in full, which takes the longest: zeros that a row leaves out take no time
		decoys[i] = convex.Example{Value: make([]float64, dim), Label: 1}
	}
	var scratch convex.Example
	var out []byte
	row, mapped := l.agreement.Features.Decoy(), l.agreement.Whole() // before it joins, see mapper.whole
	_ = l.mapRow(row, &scratch)
	return func() {
		for i := range decoys {
			if !mapped {
				_ = l.mapRow(row, &scratch)
			}
			clear(decoys[i].Value)
			scratch.AddTo(decoys[i].Value, 1)
		}
		out = maker.Report(out[:0], of)
	}, uint64(len(decoys)), nil
}

// measure returns the mean time of some work: of a few runs, or of as many as are done in 10 ms.
func measure(work func()) time.Duration {
	const rounds, least = 5, 10 * time.Millisecond
	begun, done := time.Now(), 0
	for done < rounds || done < 1000 && time.Since(begun) < least {
		work()
		if done++; done == 1 {
			begun = time.Now() // the first one pays for memory
		}
		if time.Now().Equal(begun) && done == rounds {
			break // a clock that stands still
		}
	}
	return time.Since(begun) / time.Duration(done-1)
}

// tooSlow refuses a task whose events take longer than the longest tick has room for, which is half of a round's
// deadline: when a report leaves would tell of its rows, or no round would hear it.
func (l *loop) tooSlow(work, deadline time.Duration) error {
	field, value := "features", fmt.Sprintf("%d coordinates", l.agreement.Features.Dim())
	if classes := len(l.agreement.Features.Classes()); classes > 2 {
		field, value = "label.classes", fmt.Sprintf("%d classes of %s", classes, value)
	}
	if l.agreement.Spec.ByUser() {
		value += fmt.Sprintf(", %d rows of a person", l.agreement.Spec.User.Items)
	}
	longest := 2 * mostWork
	if deadline > 0 {
		longest = min(longest, deadline/2)
	}
	return consent.Refuse(field, value,
		"fewer, or a longer schedule.deadline: a report takes up to %v on this machine, and reports "+
			"leave on ticks of at most %v, of which half is for work, so that when they leave tells nothing of their rows",
		work.Round(time.Microsecond), longest)
}

// decoyRows bounds the rows of a large block that are measured, and decoyValues the numbers that they hold; a
// single row with more numbers is measured all the same.
const (
	decoyRows   = 64
	decoyValues = 1 << 22
)

// workOf returns the longest time that an event takes, given the time one of a measured report and the number of
// such reports that have as many rows as the event. It is capped at twice mostWork.
func workOf(one time.Duration, times uint64) time.Duration {
	return time.Duration(min(float64(one)*float64(times), float64(2*mostWork)))
}
