package campaign

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
)

// An op is one operation, some time after the last one.
type op struct {
	After time.Duration
	Do    string // see apply
	Who   int    // process, modulo their number: learner, stages, publishers
	What  int    // trap or disk fault, modulo their number; half seconds
}

func (o op) String() string { return fmt.Sprintf("{%v, %q, %d, %d}", o.After, o.Do, o.Who, o.What) }

// verbs of the operations. Those that come often do most harm.
var verbs = []string{"pass", "start", "crash", "stop", "cut", "trap", "slow", "fast", "disk", "lossy", "clean",
	"redeliver", "forget", "outage",
	"reboot", "lie", "lie", "start", "crash", "trap", "trap", "cut", "suspend", "full", "flood", "roll back", "lose",
	"roll back", "lose", "marks", "restore"}

// uniform draws from low to high, each as often: rapid's own ranges prefer their ends, and time near zero is no time.
// It shrinks to low.
func uniform(t *rapid.T, label string, low, high int) int {
	n := high - low + 1
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range bits.Len(uint(n)) + 2 {
			v *= 2
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return low + v%n
	}).Draw(t, label)
}

func drawPlan(t *rapid.T) plan {
	flip := func(label string) bool { return uniform(t, label, 0, 1) == 1 }
	p := plan{
		Rounds: uint64(uniform(t, "rounds", 1, 3)), Cohort: uint64(uniform(t, "cohort", 2, 6)),
		Publishers: uniform(t, "publishers", 1, 3), Bundle: uniform(t, "bundle", 1, 2),
		Pace:   time.Duration(uniform(t, "pace", 0, 10)) * 100 * time.Millisecond,
		Sealed: flip("sealed"), Reorder: flip("reorder"), Lossy: flip("lossy"), Seed: uint64(uniform(t, "seed", 0, 1<<20)),
	}
	p.Gateway, p.Afford = flip("gateway"), uniform(t, "afford", 0, 3)
	if uniform(t, "full", 0, 3) == 0 {
		p.Room, p.Pace = uniform(t, "room", 1, 3), time.Duration(uniform(t, "burst", 0, 1))*p.Pace
	}
	if uniform(t, "liar", 0, 2) == 0 {
		p.Lie = lie(uniform(t, "lie", 1, int(lieKinds)-1))
	}
	p.Minimum = p.Cohort
	if flip("deadline") {
		p.Minimum = uint64(uniform(t, "minimum", 1, int(p.Cohort)))
		p.Deadline = time.Duration(uniform(t, "seconds", 1, 20)) * time.Second
	}
	if uniform(t, "interactive", 0, 2) == 0 {
		p.Together, p.First = uint64(uniform(t, "together", 2, 4)), flip("first")
		p.Rounds = min(p.Rounds, 2)
		p.Again = p.Seed%2 == 1
	}
	if uniform(t, "loser", 0, 1) == 1 {
		p.Loser, p.Accept = loser(uniform(t, "loses", 1, int(loserKinds)-1)), flip("accept")
	}
	p.Places = p.Seed%4 > 0
	p.Marks = uniform(t, "marks", 0, marksKinds-1)
	p.Endless = p.Together == 0 && uniform(t, "endless", 0, 3) == 0
	// Some have users for void rounds to spare, some have too few for the plan.
	least := (int(p.wanted()) + p.Publishers - 1) / p.Publishers
	p.Rows = uniform(t, "rows", max(1, least-1), least+10)
	return p
}

func drawOps(t *rapid.T, verbs []string) []op {
	one := rapid.Custom(func(t *rapid.T) op {
		return op{
			After: time.Duration(uniform(t, "ms", 0, 3000)) * time.Millisecond, Do: verbs[uniform(t, "do", 0, len(verbs)-1)],
			Who: uniform(t, "who", 0, 5), What: uniform(t, "what", 0, 71),
		}
	})
	// What kills a stage between claim and batch is rare among all operations, and worth most.
	early := rapid.Custom(func(t *rapid.T) op {
		return op{
			After: time.Duration(uniform(t, "ms", 0, 300)) * time.Millisecond, Do: "trap",
			Who: uniform(t, "stage", 1, 2), What: uniform(t, "what", 0, 71),
		}
	})
	// Bursts, because one long list is short on average.
	return slices.Concat(rapid.SliceOfN(early, 0, 3).Draw(t, "traps"),
		slices.Concat(rapid.SliceOfN(rapid.SliceOfN(one, 0, 10), 0, 10).Draw(t, "ops")...))
}

// lossy is a broker that misbehaves in every way.
var lossy = memory.Rates{LostAck: 0.15, Lost: 0.1, Duplicate: 0.2, Lag: 0.2}

func (w *world) processes() []*process {
	all := append([]*process{w.learner}, w.stages...)
	for _, d := range w.devices {
		all = append(all, d.process)
	}
	return all
}

// apply performs an operation.
func (w *world) apply(o op) {
	all := w.processes()
	w.keep()
	p := all[o.Who%len(all)]
	seconds := time.Duration(o.What) * time.Second / 2
	switch o.Do {
	case "start":
		w.start(p)
	case "crash":
		w.troubled("crashes", p, 0)
		p.crash()
	case "stop":
		w.troubled("is stopped", p, 0)
		p.stop()
	case "cut":
		w.troubled("is cut off", p, seconds)
		p.current().link.set(func(l *link) { l.cutUntil = time.Now().Add(seconds) })
	case "slow", "fast":
		if o.Do == "slow" {
			w.troubled("is slow", p, -1)
		} else {
			w.mended("is slow", p, lateWrite)
		}
		p.current().link.set(func(l *link) { l.slow = o.Do == "slow" })
	case "trap":
		w.setTrap(o)
	case "disk":
		w.mu.Lock()
		w.diskFault = storetest.Fault(1 + o.What%2)
		w.mu.Unlock()
	case "lossy":
		w.troubled("loses and doubles", nil, -1)
		w.broker.Inject(memory.Random(w.Seed+uint64(o.What), lossy))
	case "clean":
		w.mended("loses and doubles", nil, 0)
		w.broker.Inject(nil)
	case "redeliver":
		w.troubled("delivers again", nil, 0)
		w.broker.Redeliver(name)
	case "forget":
		w.troubled("forgets message ids", nil, 0)
		w.broker.Forget(name)
	case "lie":
		if w.Lie != truth {
			d := w.devices[o.Who%len(w.devices)]
			d.hears(lie(o.What % int(lieKinds)))
		}
	case "outage":
		w.troubled("is gone", nil, seconds)
		w.broker.Disconnect()
		time.Sleep(seconds)
		w.broker.Connect()
	case "suspend":
		w.troubled("is suspended", p, seconds)
		p.current().link.suspend(seconds)
	case "wake":
		w.mended("is suspended", p, 2*leaseOf)
		p.current().link.suspend(0)
		time.Sleep(time.Minute) // it looks how late it is
	case "full": // of what is no report of this task
		w.mu.Lock()
		w.fullUntil = time.Now().Add(seconds)
		w.mu.Unlock()
	case "flood":
		w.flood(o)
		w.floodPlaces(o)
	case "roll back":
		w.rollBack(o)
	case "lose":
		w.lose(o)
	case "lose these":
		for _, subject := range w.broken.loses {
			w.loseRecord(subject)
		}
	case "marks":
		w.loseMarks(o)
	case "restore":
		w.restore(o)
	case "return":
		w.comeBack(w.devices[o.Who%len(w.devices)])
	case "old round":
		w.oldRound(o)
	case "advance":
		w.advance()
	case "sweep":
		w.sweep(o.What)
	case "age":
		time.Sleep(age + time.Minute)
	case "old disk":
		w.oldDisk()
	case "old marks":
		w.oldMarks(o)
	case "reboot": // what the broker had only in memory is gone
		w.troubled("is killed", nil, seconds/8)
		w.broker.Disconnect()
		w.broker.Forget(name)
		w.broker.Redeliver(name)
		time.Sleep(seconds / 8)
		w.broker.Connect()
	}
}

// The calls that traps lie in. What kills between claim and batch is rare among all calls, and worth most.
var (
	learnerTraps = []string{"round", "end", "task", "round", "round"}
	stageTraps   = []string{"claim", "batch", "open", "close", "purge", "claim", "batch", "fetch", "ack", "lease"}
)

// setTrap lies in wait for a process's next call of a kind, or for the next write of a device's store.
func (w *world) setTrap(o op) {
	all := w.processes()
	i := o.Who % len(all)
	calls := learnerTraps
	switch d := i - 1 - len(w.stages); {
	case d >= 0 && o.What%3 < 2:
		w.devices[d].set(storeFault(1 + o.What%3))
		return
	case d >= 0:
		if calls = []string{"publish"}; w.Places {
			calls = []string{"publish", "place"}
		}
	case i > 0:
		calls = stageTraps
	}
	rest := o.What / len(calls)
	t := &trap{call: calls[o.What%len(calls)], after: rest%2 == 1}
	if rest/2%3 == 2 {
		t.cut = 15*time.Second + time.Duration(o.What)*time.Second/2
	}
	all[i].current().link.set(func(l *link) { l.trap = t })
}

func (l *link) set(by func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	by(l)
}

func (p *publisher) set(f storeFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// heal ends all faults but those that a test breaks on purpose.
func (w *world) heal() {
	w.broker.Inject(nil)
	w.broker.Connect()
	w.mu.Lock()
	w.diskFault, w.fullUntil, w.places.forgedUntil = storetest.NoFault, time.Time{}, time.Time{}
	w.mu.Unlock()
	for _, d := range w.devices {
		d.set(sound)
		d.hears(truth)
	}
	w.mended("loses and doubles", nil, 0)
	for _, p := range w.processes() {
		w.mended("is slow", p, lateWrite)
		w.mended("is suspended", p, time.Minute+2*leaseOf)
		p.current().link.set(func(l *link) { l.slow, l.trap, l.cutUntil, l.asleep = false, nil, time.Time{}, time.Time{} })
		if p.said() {
			p.forget() // an operator reads its message and starts it once more
		}
	}
}

// full reports whether the broker has no room for reports.
func (w *world) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.fullUntil)
}

func describe(p plan, ops []op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %+v\n", p)
	for _, o := range ops {
		fmt.Fprintf(&b, "\t%v,\n", o)
	}
	return b.String()
}
