package kills

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// askToStop asks a publisher to stop, with SIGTERM and SIGINT by turns, waits for it, and holds its summary against
// its store. It reports whether that is what ended it.
func (f *fleet) askToStop(r *role, turn int) bool {
	f.t.Helper()
	signal, ask := syscall.SIGTERM, r.Terminate
	if turn%2 == 1 {
		signal, ask = syscall.SIGINT, r.Interrupt
	}
	if ask() != nil {
		return false
	}
	exit, err := r.Wait(f.t.Context())
	switch {
	case err != nil:
		f.t.Fatal(err)
	case exit == (procs.Exit{}):
		return false
	case exit.Signal == signal:
		f.t.Logf("%s, life %d: ended by %v before it listened, or after it was done", r.Name, r.Lives(), signal)
		return true
	case exit != (procs.Exit{Code: cli.ExitTransient}):
		f.t.Fatalf("%s, life %d, asked to stop by %v: %v, want exit code %d", r.Name, r.Lives(), signal, exit,
			cli.ExitTransient)
	}
	for _, v := range f.interrupted(r) {
		f.t.Error(v)
	}
	return true
}

// interrupted lists what is wrong with what a publisher that was asked to stop printed and stored.
func (f *fleet) interrupted(r *role) (violations []string) {
	f.t.Helper()
	for i := range f.publishers {
		if f.roles[3+i] != r {
			continue
		}
		p := f.publisher(i, 1)
		stored := map[participation.State]uint64{}
		for _, row := range p.rows {
			stored[row.State]++
		}
		s := p.summary
		if s.Events != s.Counted+s.Uncounted+s.Unknown+s.Refused || s.Events > uint64(f.rows) || s.Refused > 0 {
			violations = append(violations, fmt.Sprintf("%s prints %+v, which does not add up", r.Name, s))
		}
		// A row that was charged in an earlier life and not looked at in this one is in the store alone.
		if s.Counted > stored[participation.Counted] || s.Open > stored[participation.Charged] ||
			s.Unknown-s.Open > stored[participation.Unknown] {
			violations = append(violations, fmt.Sprintf("%s prints %+v, its store has %v", r.Name, s, stored))
		}
	}
	return violations
}

// start starts processes by name.
func (f *fleet) start(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := f.role(name).Start(); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) role(name string) *role {
	for _, r := range f.roles {
		if r.Name == name {
			return r
		}
	}
	f.t.Fatalf("no %s in the fleet", name)
	return nil
}

// until polls for what must come.
func (f *fleet) until(what string, holds func() bool) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx := procs.Within(f.t, patience)
	for ; !holds(); <-tick.C {
		if ctx.Err() != nil {
			f.t.Fatalf("without %s: %v: %s", what, context.Cause(ctx), f.doing())
		}
	}
}

// TestAskedInAnOpenRound: a publisher whose users are all in a round that stays open, because they are fewer than
// its minimum, is asked to stop by either signal. It ends at once, with the outcomes unknown; the same command
// takes them up, sends nothing again, and finishes. In the end each of them is counted once.
func TestAskedInAnOpenRound(t *testing.T) {
	const rows = 6
	f := newFleet(t, plan{rounds: 2, cohort: 12, publishers: 8, rows: rows, lease: time.Second})
	w := watch(t, f.broker.URL())
	first := f.role("publisher0")
	f.start("learner", "stage0", "stage1", "publisher0")
	f.until("the reports of the first publisher", func() bool { return f.reports() == rows })
	for turn := range 2 {
		if turn > 0 {
			f.start("publisher0")
			f.until("a publisher that goes on", func() bool {
				log, err := os.ReadFile(first.Log())
				return err == nil && bytes.Count(log, []byte("resuming: these reports were charged")) == turn
			})
		}
		if !f.askToStop(first, turn) {
			t.Fatalf("turn %d: it ended by itself", turn)
		}
		if exit, err := first.Wait(t.Context()); err != nil || exit.Code != cli.ExitTransient {
			t.Fatalf("turn %d: %v, %v", turn, exit, err)
		}
		p := f.publisher(0, 1)
		for row, one := range p.rows {
			if one.State != participation.Charged || one.Draw.Round != 1 {
				t.Errorf("turn %d: row %d is %v in round %d, want it charged in round 1", turn, row, one.State, one.Draw.Round)
			}
		}
		if turn == 0 && p.summary != (device.Summary{Events: rows, Units: rows, Unknown: rows, Open: rows, Rounds: 1}) {
			t.Errorf("it prints %+v, want %d events unknown in one round", p.summary, rows)
		}
	}
	// It and one more fill the round. All others together would leave no users for the next: whom a round leaves
	// over may not pay again.
	f.start("publisher0", "publisher1")
	f.until("the second round", func() bool { return w.newestRound() == 2 })
	k := &killer{rng: rand.New(rand.NewPCG(1, 0)), spacing: time.Second} // who kills nobody
	for _, r := range f.roles {
		if r.Lives() > 0 {
			continue
		}
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
	}
	f.run(k, 0, w)
	w.look(t.Context())
	w.close()
	e := f.collect(w)
	violations, s := e.audit()
	for _, v := range append(append(violations, w.violations...), f.replay(e)...) {
		t.Error(v)
	}
	if got := e.publishers[0].summary; got.Events != rows || got.Counted != rows {
		t.Errorf("the publisher that was asked twice ends with %+v, want all %d counted", got, rows)
	}
	if s.counted != s.users || s.unknown != 0 || s.reopened != 0 || s.void != 0 {
		t.Errorf("nothing was killed, and the sum is %+v", s)
	}
	if users := e.ledger.Entries[0].Users; uint64(s.users) != e.status.Users || users < rows {
		t.Errorf("%d users in batches, %d in the learner's state, %d in round 1", s.users, e.status.Users, users)
	}
}

// reports returns how many reports the broker has taken, without duplicates.
func (f *fleet) reports() uint64 {
	f.t.Helper()
	nc, err := nats.Connect(f.broker.URL())
	if err != nil {
		f.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := js.Stream(f.t.Context(), name.Name(stream.Reports))
	if err != nil {
		return 0 // the learner has not made it yet
	}
	return s.CachedInfo().State.LastSeq
}

// TestAsked: publishers are asked to stop again and again, whatever they are doing; nothing is counted twice.
func TestAsked(t *testing.T) {
	s := seed(t)
	asks, p := 8, plan{rounds: 10, cohort: 12, publishers: 2, rows: 1500, lease: time.Second}
	if longtest.Run(t, "all but the first 8 of 100 interruptions") {
		asks, p = 100, plan{rounds: 150, cohort: 12, publishers: 2, rows: 6000, lease: time.Second}
	}
	k := &killer{rng: rand.New(rand.NewPCG(s, 2<<32)), weights: map[string]int{"publisher": 1},
		spacing: 300 * time.Millisecond,
		pause:   200 * time.Millisecond, asks: true}
	if made, _ := campaign(t, p, k, asks); made == 0 {
		t.Error("nobody was asked")
	}
}
