package campaign

import (
	"fmt"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A result holds the outcome of a campaign.
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
	// of them, in a round that never closes, because the task was ended in its place
	givenUp   int
	unseen    int                         // counted by the rule of doubt, and in no batch
	told      map[participation.State]int // outcomes that users got
	toldAgain int                         // of a later life
	excused   map[string]int              // faults in the rounds of those who are counted and in no batch
	calm      int                         // counted, in rounds in which nothing happened to stages and broker
	fooled    int                         // of the users who were lied to, those who are in batches
	twice     int                         // in batches that hold them by different participations
	refused   int                         // publishes, for lack of room
	lies      map[lie]int
	examined  map[stage.Reason]int
	sprung    map[string]int // traps that were met
	said      map[string]int // sentences
	gone      map[string]int // records that were lost, by kind
	adrift    int            // users of rounds that a loss may have had released twice
	strange   int            // reports of floods
	sweeps    int            // that removed records
	short     int            // sweeps that were cut short
	swept     int            // records that were removed
	places    placeCounts
	took      time.Duration // of the fake clock
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
		if p.Years {
			w.live()
		}
		if p.Lossy {
			w.troubled("loses and doubles", nil, -1)
			w.broker.Inject(memory.Random(p.Seed, lossy))
		}
		for _, p := range w.processes() {
			if !p.away {
				w.start(p)
			}
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
		if r.ended && !b.forgets && w.Loser < losesRecords && w.Units == 0 {
			w.ask()
		}
		w.replay()
		r.violations, r.examined, r.sprung = w.violations, w.book.examined, w.sprung
		r.places = w.places.counts
		r.sweeps, r.short, r.swept = w.sweeps, w.short, len(w.swept)
		r.said, r.gone, r.strange = w.said, map[string]int{}, len(w.spam)
		for subject := range w.gone {
			at, _ := stream.ParseSubject(subject)
			r.gone[at.Verb]++
		}
	})
	return r
}

// finish starts what is down, again and again, until all is over or nothing new happens any more.
func (w *world) finish() (ended bool) {
	seen, since := 0, time.Now()
	asked := false // for the end of a task that has none
	again := false // the learner was run again, after its end
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
			return w.book.first(name.End()) != nil && len(w.unheard()) == 0
		}
		if n := w.book.size(); n != seen {
			seen, since = n, time.Now()
		}
		if time.Since(since) > w.settleTime() {
			if !again && w.lost("task", "round", "end") && len(w.unheard()) == 0 {
				again, since = true, time.Now()
				w.learner.forget() // an operator reads that others wait for the task, and runs it again
				continue
			}
			w.excuse()
			if !w.Endless || asked {
				return false
			}
			asked, since = true, time.Now()
			w.finisher.Finish(true)
		}
		time.Sleep(poll)
	}
}

// alive reports whether a life goes on and was not stopped.
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
	all := w.record()
	if len(w.unheard()) > 0 || len(all.torn) > 0 { // devices know of a round that is void now that it counted them
		return
	}
	for n := range all.rounds {
		if !w.guarded(n) { // it is asked for again, and those who know that it counted them do not come
			return
		}
	}
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

// unheard names the processes that ended with a sentence which asks an operator to do something.
func (w *world) unheard() (names []string) {
	for _, p := range w.processes() {
		if p.said() {
			names = append(names, p.name)
		}
	}
	return names
}

func (w *world) doing() (all string) {
	for _, p := range w.processes() {
		l := p.current()
		all += fmt.Sprintf("\n\t%s: finished %v, alive %v, %s\n\t\t%v", p.name, p.finished(), l.alive(), l.status(), &p.log)
	}
	return all
}
