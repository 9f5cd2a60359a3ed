package kills

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// A killer draws who is killed, when, and for how long it is gone.
type killer struct {
	rng      *rand.Rand
	weights  map[string]int // by kind; a kind that is not in it is spared
	spacing  time.Duration  // most time from one kill to the next
	pause    time.Duration  // most time that a process is gone
	kills    int
	scheme   string // how the next moment was drawn: for the log
	due      time.Time
	armed    bool // the next record that is announced sets due
	nextWait time.Duration
	asks     bool // with SIGTERM and SIGINT by turns instead of SIGKILL: for publishers
	together bool // the broker and the stages at one time: the one way in which a claim often stays without its batch
}

// patience bounds the time of a campaign after its last kill, on a machine that is busy.
const patience = 8 * time.Minute

// longest is as long as go test gives the package.
const longest = 24 * time.Hour

// draw chooses the next moment: a time, or shortly after a record.
func (k *killer) draw() {
	k.armed, k.scheme, k.together = false, "clock", false
	k.due = time.Now().Add(time.Duration(k.rng.Int64N(int64(k.spacing))))
	if k.rng.IntN(2) == 0 {
		k.armed, k.scheme = true, "record"
		k.nextWait = time.Duration(k.rng.Int64N(int64(6 * time.Millisecond)))
		switch k.rng.IntN(4) {
		case 0:
			k.nextWait *= 20
		case 1:
			k.nextWait /= 10
		case 2:
			k.nextWait = 0
		}
		if k.weights["broker"] > 0 && k.rng.IntN(3) == 0 {
			k.together, k.nextWait = true, 0
		}
		k.due = time.Now().Add(2 * k.spacing) // no record may come
	}
}

// woken notes that a record was announced.
func (k *killer) woken() {
	if k.armed {
		k.armed, k.due = false, time.Now().Add(k.nextWait)
	}
}

// victims draws one of those that run, or returns broker and stages.
func (k *killer) victims(roles []*role) (all []*role) {
	var lots []*role
	for _, r := range slices.Backward(roles) { // the broker first
		if !r.Running() || r.over {
			continue
		}
		lots = append(lots, slices.Repeat([]*role{r}, k.weights[r.kind])...)
		if k.together && (r.kind == "broker" || r.kind == "stage") {
			all = append(all, r)
		}
	}
	if len(all) > 0 || len(lots) == 0 {
		return all
	}
	return lots[k.rng.IntN(len(lots)):][:1]
}

// run starts the fleet, kills that many of it, and waits for the task's end. It returns early where the task ends
// first.
func (f *fleet) run(k *killer, kills int, w *witness) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	k.draw()
	ctx := procs.Within(f.t, longest)
	var calm time.Time
	for !f.over() {
		f.tend()
		f.stretch(k, w)
		if f.endless && w.newestRound() >= uint64(f.rounds) {
			kills = k.kills
			f.finish()
		}
		select {
		case <-ctx.Done():
			f.t.Fatalf("%v, and %d of %d kills were made: %s", context.Cause(ctx), k.kills, kills, f.doing())
		case <-w.wakes:
			k.woken()
		case <-tick.C:
		}
		switch {
		case k.kills >= kills:
			if calm.IsZero() {
				calm = time.Now()
			}
			if time.Since(calm) > patience {
				f.t.Fatalf("nothing was killed for %v, and the task has not ended: %s", patience, f.doing())
			}
		case time.Now().After(k.due):
			f.kill(k, w)
		}
	}
}

func (f *fleet) kill(k *killer, w *witness) {
	defer k.draw()
	for _, r := range k.victims(f.roles) {
		if k.asks {
			if !f.askToStop(r, k.kills) {
				continue // it came to its end just now
			}
		} else if !r.Kill() {
			continue // it ended by itself just now
		}
		k.kills++
		r.kills++
		pause := time.Duration(k.rng.Int64N(int64(k.pause)))
		if k.rng.IntN(3) == 0 {
			pause /= 20
		}
		r.restart = time.Now().Add(pause)
		f.t.Logf("kill %d: %s in life %d, by the %s, in round %d, gone for %v", k.kills, r.Name, r.Lives(), k.scheme,
			w.newestRound(),
			pause.Round(time.Millisecond))
		if r.kind == "learner" {
			f.states = append(f.states, w.checkDisk(f))
		}
	}
}

func (f *fleet) doing() string {
	var all strings.Builder
	for _, r := range f.roles {
		fmt.Fprintf(&all, "%s: life %d, running %v, over %v; ", r.Name, r.Lives(), r.Running(), r.over)
	}
	return all.String()
}
