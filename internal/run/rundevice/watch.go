package rundevice

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
)

// A Watch follows a publisher, and describes what it waits for. The zero Watch has seen nothing. Its methods may be
// called at any time, from any goroutine.
type Watch struct {
	mu        sync.Mutex
	now       device.Progress // the last one
	read      uint64          // rows of the input
	stream    bool            // the input is standard input
	posts     bool            // it is posted
	pulling   bool            // the input was asked for a row and has not answered
	ended     bool            // there are no more rows
	connected func() bool     // to the broker; nil: not yet
	done      bool            // this run is over
	moved     time.Time       // when anything came on last
}

// progress takes the client's progress; it is a device.Settings.Progress.
func (w *Watch) progress(p device.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, is := w.now, p
	was.InFlight, is.InFlight = 0, 0 // tries at a broker that refuses lead nowhere
	was.RefusedPublishes, is.RefusedPublishes, was.Trouble, is.Trouble = 0, 0, "", ""
	was.Ahead, is.Ahead, was.AheadSince, is.AheadSince = 0, 0, time.Time{}, time.Time{}
	was.Troubled, is.Troubled, was.Deadline, is.Deadline = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if was != is {
		w.moved = time.Now()
	}
	w.now = p
}

// rows passes rows on, and sees how many there are and whether the input keeps us waiting.
func (w *Watch) rows(rows iter.Seq2[task.Row, error]) iter.Seq2[task.Row, error] {
	set := func(pulling, ended bool, n uint64) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pulling, w.ended, w.read, w.moved = pulling, ended, w.read+n, time.Now()
	}
	return func(yield func(task.Row, error) bool) {
		set(true, false, 0)
		for row, err := range rows {
			set(false, false, 1)
			if !yield(row, err) {
				return
			}
			set(true, false, 0)
		}
		set(false, true, 0)
	}
}

// end records that the run is over, since the connection is given up.
func (w *Watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
}

// Standing returns what is known of the task and of the current round.
func (w *Watch) Standing() device.Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now.Standing
}

// Look returns the newest round and the numbers of rows, as names and values in turn, and what the publisher waits
// for. kind is the same text without the parts that change by themselves.
func (w *Watch) Look() (counts []any, waits, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.now
	sent := p.Summary.Events - p.Summary.Unused - p.Summary.Refused + uint64(p.Charged)
	waits, kind = w.waits(time.Now())
	if !w.posts {
		counts = []any{"read", w.read}
	}
	counts = append(counts, "sent", sent, "counted", p.Summary.Counted)
	if n := p.Summary.ChargedUncounted; n > 0 {
		counts = append(counts, "charged_uncounted", n)
	}
	return append([]any{"round", uint64(p.Round)}, counts...), waits, kind
}

// waits describes what the publisher waits for; why is the same text without numbers that change by themselves.
func (w *Watch) waits(now time.Time) (text, why string) {
	p := w.now
	switch {
	case w.done:
		text = "nothing: this run is over"
	case w.connected == nil || !w.connected():
		text = "the broker, to which there is no connection"
	case p.Trouble != "":
		text = "the broker to take reports: " + p.Trouble
	case p.Ahead > 0:
		text = "the clock: " + aheadText(&p)
	case !p.Agreed:
		text = "the task to be announced: a learner does that (learner run)"
	case p.Over && p.Charged > 0:
		text = "the outcome of the last rounds: the task has ended"
	case p.Over:
		text = "the end of the input: the task has ended"
	case w.posts && p.Charged == 0 && p.Waiting == 0:
		text = "events that are posted"
	case w.stream && w.pulling && p.Charged == 0 && p.Waiting == 0:
		text = "rows on standard input"
	case p.Older > 0:
		text = fmt.Sprintf(
			"a round after %d: the broker is older than what this device knows (docs/how-to/runbook.md, state folder and broker of different times)", p.Older)
	case p.Round == 0:
		text = "the learner to announce round 1"
	case p.Closed:
		text = fmt.Sprintf("the learner to announce round %d", p.Round+1)
	case p.Unjoined:
		text = fmt.Sprintf("the helper to join round %d, which the stage has opened (ingest shuffle --role helper)", p.Round)
	case !p.Open:
		text = fmt.Sprintf("the stage to open round %d (ingest shuffle)", p.Round)
	case p.Joined == 0 && p.Waiting > 0 && p.Leaves >= time.Second:
		text = fmt.Sprintf("this silo's own report of round %d, which is worked out and leaves within %v of its opening",
			p.Round, p.Leaves.Round(time.Second))
	case p.Joined == 0:
		text = fmt.Sprintf("a place in round %d", p.Round)
	default:
		text, why = w.fills(now)
	}
	if why == "" {
		why = text
	}
	return text, why
}

// fills describes how full an open round is, and when it closes. The reports of other publishers are not known here.
func (w *Watch) fills(now time.Time) (text, why string) {
	p := w.now
	what, others := "users", "any publisher"
	if p.Silo {
		what, others = "reports", "other silos"
	}
	why = fmt.Sprintf("the outcome of round %d, which has %d of %d %s from here", p.Round, p.Joined, p.Cohort, what)
	text = why
	if p.Joined < p.Cohort {
		text += fmt.Sprintf("; it closes when %d more come from %s", p.Cohort-p.Joined, others)
		least := fmt.Sprintf("at least %d in all", p.Minimum)
		switch left := p.Deadline.Sub(now); {
		case p.Deadline.IsZero():
		case left <= 0:
			text += ", or as soon as it has " + least
		default:
			text += fmt.Sprintf(", or with %s at its deadline in %v", least, left.Round(time.Second))
		}
	}
	return text, why
}

// lacks returns the number of users that an open round needs from others before it can close at all, once the input
// has ended; 0 while rows of the input are waiting. It is 0 for a silo, which has one report in a round, so that its
// rounds always need others.
func (w *Watch) lacks() uint64 {
	p := w.now
	if !w.ended || p.Over || p.Silo || !p.Open || p.Waiting > 0 || p.Joined >= p.Minimum {
		return 0
	}
	return p.Minimum - p.Joined
}

// advice names what helps a round that lacks users.
const advice = "more rows, here or from another publisher, fill it; learner finish ends the task without them; a task with a smaller schedule.minimum_cohort would need fewer"

// tooFew describes a round that lacks users after the end of the input; empty if none does.
func (w *Watch) tooFew() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.lacks()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(
		"the input has ended, and round %d has %d users from here and needs at least %d: the other %d have to come from any publisher; %s",
		w.now.Round, w.now.Joined, w.now.Minimum, n, advice)
}

// An ImpatientError ends a publisher that waited for Patience and nothing came on.
type ImpatientError struct {
	Patience time.Duration
	Waits    string // for what
	Charged  int    // reports that were sent in a round that is not closed
	What     string // they are about
	Kept     bool   // there is a state folder that knows them
}

func (e *ImpatientError) Error() string {
	text := fmt.Sprintf("--patience %v: nothing came on, waiting for %s", e.Patience, e.Waits)
	switch {
	case e.Charged == 0:
	case e.Kept:
		text += fmt.Sprintf(
			"; %d %s were sent and stay charged in --state: the same command, later, learns their outcome and sends none of them twice", e.Charged, e.What)
	default:
		text += fmt.Sprintf(
			"; %d %s were sent, and without --state nobody will know their outcome: another run sends them again", e.Charged,
			e.What)
	}
	return text
}

// impatient returns an error if nothing has moved for as long as patience allows; nil if something has or will at a
// deadline, or while standard input may bring more rows. After the task's end the device has the time to decide on
// rounds that never close, or every run would leave their reports without an outcome.
func (w *Watch) impatient(patience time.Duration) *ImpatientError {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, p := time.Now(), w.now
	since := w.moved
	if p.Open && p.Joined >= p.Minimum && p.Deadline.After(since) {
		since = p.Deadline // the round closes then, at the earliest
	}
	wait := patience
	if p.Over {
		wait = max(wait, 2*device.DefaultCloseWait)
	}
	if w.stream && !w.ended || now.Sub(since) < wait {
		return nil
	}
	e := &ImpatientError{Patience: patience, Charged: p.Charged, What: "rows"}
	if p.Silo {
		e.What = "blocks of rows"
	}
	if e.Waits, _ = w.waits(now); w.lacks() > 0 {
		e.Waits += "; " + advice
	}
	return e
}

// guard ends ctx, with an *ImpatientError as its cause, when nothing has moved for patience; 0 is for ever. It logs
// an input that ended with too few rows, once for each round. stop has to be called.
func (c *Config) guard(ctx context.Context) (guarded context.Context, stop func()) {
	w := c.Watch
	w.mu.Lock()
	w.moved, w.stream = time.Now(), c.Data == "-"
	w.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		told := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if text := w.tooFew(); text != told {
				if told = text; text != "" {
					c.Logger.Warn(text)
				}
			}
			if c.Patience == 0 {
				continue
			}
			if err := w.impatient(c.Patience); err != nil {
				err.Kept = c.StateDir != ""
				cancel(err)
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// watchEvery is the period at which a publisher's progress is checked.
const watchEvery = 500 * time.Millisecond
