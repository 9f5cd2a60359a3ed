package campaign

import (
	"fmt"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/memory"
)

// A result is how a campaign went.
type result struct {
	violations []string
	ended      bool // all the way to End; otherwise it waits for users
	real, void int
	reopened   int // attempts beyond the first of a round
	passed     int // void rounds of interactive phases
	again      int // users whom several rounds of an interactive phase counted
	counted    int
	uncounted  int
	unknown    int
	unseen     int                         // counted by the rule of doubt, and in no batch
	told       map[participation.State]int // answers to users
	toldAgain  int                         // of a later life
	excused    map[string]int              // faults in the rounds of those who are counted and in no batch
	calm       int                         // counted, in rounds in which nothing happened to stages and broker
	fooled     int                         // of the users who were lied to, those who are in batches
	twice      int                         // in batches that hold them by different participations
	refused    int                         // publishes, for lack of room
	lies       map[lie]int
	examined   map[stage.Reason]int
	sprung     map[string]int // traps that were met
	took       time.Duration  // of the fake clock
}

// play runs one campaign in a bubble of its own. Keys, ids and jitters come from the plan's seed; what goroutines that
// are ready at the same instant do first does not.
func play(t *testing.T, p plan, ops []op, b broken) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, p.Seed)
		begun := time.Now()
		w := newWorld(p, b)
		r.told, r.excused, r.lies = map[participation.State]int{}, map[string]int{}, w.lies
		if p.Lossy {
			w.troubled("loses and doubles", nil, -1)
			w.broker.Inject(memory.Random(p.Seed, lossy))
		}
		for _, p := range w.processes() {
			w.start(p)
		}
		for _, o := range ops {
			time.Sleep(o.After)
			w.apply(o)
		}
		w.heal()
		r.ended = w.finish()
		r.took = time.Since(begun)
		w.shutdown()
		w.audit(&r)
		if r.ended && !b.forgets {
			w.ask()
		}
		w.replay()
		r.violations, r.examined, r.sprung = w.violations, w.book.examined, w.sprung
	})
	return r
}

// finish starts what is down, again and again, until all is over or nothing new happens any more.
func (w *world) finish() (ended bool) {
	seen, since := 0, time.Now()
	for {
		over := true
		for _, p := range w.processes() {
			if !p.finished() || p.current().running() {
				over = false
			}
			if !p.finished() && !p.current().alive() {
				w.start(p)
				p.current().link.set(func(l *link) { l.slow = false })
			}
		}
		if over {
			return true
		}
		if n := w.book.size(); n != seen {
			seen, since = n, time.Now()
		}
		if time.Since(since) > w.settleTime() {
			w.excuse()
			return false
		}
		time.Sleep(poll)
	}
}

// alive says whether a life goes on and has not been told to end.
func (l *life) alive() bool { return l.running() && l.link.ctx.Err() == nil }

func (w *world) shutdown() {
	for _, p := range w.processes() {
		p.stop()
	}
	for _, p := range w.processes() {
		<-p.current().done
	}
	w.late.Wait()
	w.reopen()
}

// excuse insists that a world in which nothing happens waits for users that are not there.
func (w *world) excuse() {
	r := w.openRound()
	if r == 0 {
		w.violate("nothing happens, and no round waits for users: %s", w.doing())
		return
	}
	need := int(w.Cohort)
	if w.Deadline > 0 {
		need = int(w.Minimum)
	}
	if have := w.available(r); have >= need {
		w.violate("nothing happens, though round %d needs %d users and %d are there: %s", r, need, have, w.doing())
	}
}

func (w *world) doing() (all string) {
	for _, p := range w.processes() {
		l := p.current()
		all += fmt.Sprintf("\n\t%s: finished %v, alive %v, %s", p.name, p.finished(), l.alive(), l.status())
	}
	return all
}
