package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// everyone returns the ledger's charges of all users together.
func everyone(t rapid.TB, l ledger.Ledger) []ledger.Charge {
	t.Helper()
	for a, err := range l.Accounts() {
		if err != nil {
			t.Fatal(err)
		}
		if a.Key == ledger.Everyone {
			return a.Charges
		}
	}
	return nil
}

// standing returns the number of events that the ledger has standing in a task, and whether it knows the task.
func standing(t rapid.TB, l ledger.Ledger, task stream.Hash) (uint64, bool) {
	t.Helper()
	for _, c := range everyone(t, l) {
		if c.Task == task {
			return c.Standing, true
		}
	}
	return 0, false
}

// cost returns the epsilon that a world's task costs one user, by the accounting of a device.
func (w *world) cost() float64 {
	agreement, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
	must(w.t, err)
	return agreement.Guarantee.Epsilon
}

// runWith runs n rows through a whole task with a store of its own.
func (w *world) runWith(ctx context.Context, n int, change func(*device.Settings)) (sum device.Summary, err error) {
	c := w.config(participation.NewMemoryStore())
	change(&c)
	w.play(ctx, func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		sum, err = w.client(c).Run(ctx, rows(n, false))
	})
	checkSum(w.t.(*testing.T), sum)
	return sum, err
}

// A clock that is wrong by an offset.
type shifted struct {
	ledger.Ledger
	by time.Duration
}

func (s shifted) Update(clock time.Time, accounts []participation.Key,
	edit func(time.Time, [][]ledger.Charge) error) error {
	return s.Ledger.Update(clock.Add(s.by), accounts, edit)
}

// Three tasks of the same users: the second would exceed the total, and gets nothing until the period is over.
func TestTotalOverTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := memory.NewLedger()
		period := 1000 * time.Hour
		task := func() *world { return newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute}) }
		first := task()
		cost := first.cost()
		for _, c := range []struct {
			name   string
			limits consent.Policy
			field  string
		}{
			{"epsilon", consent.Policy{MaxTotalEpsilon: 1.9 * cost, Period: period}, "total epsilon"},
			{"delta", consent.Policy{MaxTotalDelta: 1.9e-3, Period: period}, "total delta"},
		} {
			with := func(l ledger.Ledger) func(*device.Settings) {
				return func(cfg *device.Settings) {
					p := c.limits
					p.AllowPlaintext = true
					cfg.Policy, cfg.Ledger = p, l
				}
			}
			began := time.Now()
			sum, err := task().runWith(t.Context(), 10, with(book))
			must(t, err)
			if sum.Counted != 10 {
				t.Fatalf("%s: %+v, want 10 counted", c.name, sum)
			}
			before := fmt.Sprint(everyone(t, book))
			for _, l := range []ledger.Ledger{book, shifted{book, -2 * period}} {
				w := task()
				sum, err = w.runWith(t.Context(), 10, with(l))
				refusal(t, c.name+" of a second task", err, c.field)
				if n := w.reports(1, 1); n != 0 || sum.Counted != 0 {
					t.Errorf("%s: %d reports of a refused task, %+v", c.name, n, sum)
				}
			}
			if after := fmt.Sprint(everyone(t, book)); after != before {
				t.Errorf("%s: a refusal changed the ledger from %s to %s", c.name, before, after)
			}
			time.Sleep(period - time.Since(began) - time.Minute) // the charge is still within the period
			_, err = task().runWith(t.Context(), 10, with(book))
			refusal(t, c.name+" at the end of the period", err, c.field)
			time.Sleep(2 * time.Hour)
			if sum, err = task().runWith(t.Context(), 10, with(book)); err != nil || sum.Counted != 10 {
				t.Errorf("%s after the period: %+v, %v, want 10 counted", c.name, sum, err)
			}
			time.Sleep(2 * period)
		}
	})
}

// A clock that was ahead when the device charged keeps the charge until real time has caught up with it and the period
// has passed.
func TestClockSetBackGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := memory.NewLedger()
		task := func() *world { return newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute}) }
		run := func(by time.Duration) error {
			w := task()
			_, err := w.runWith(t.Context(), 10, func(cfg *device.Settings) {
				cfg.Ledger = shifted{book, by}
				cfg.Policy.MaxTotalEpsilon, cfg.Policy.Period = 1.5*w.cost(), 10*time.Hour
			})
			return err
		}
		must(t, run(100*time.Hour))
		for range 10 {
			refusal(t, "the right clock", run(0), "total epsilon")
			time.Sleep(10 * time.Hour)
		}
		time.Sleep(20 * time.Hour)
		must(t, run(0))
	})
}

// Two tasks were agreed to while both were affordable; the one that joins a round first leaves nothing for the other.
func TestTotalAtTheFirstJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		book := memory.NewLedger()
		late := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
		limit := func(c *device.Settings) { c.Ledger, c.Policy.MaxTotalEpsilon = book, 1.5*late.cost() }
		late.put(ctx, late.name.Task(), late.learner, late.task)
		c := late.config(participation.NewMemoryStore())
		limit(&c)
		cl := late.client(c)
		_, err := cl.Agreement(ctx)
		must(t, err)
		sum, err := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute}).runWith(ctx, 10, limit)
		if err != nil || sum.Counted != 10 {
			t.Fatalf("%+v, %v", sum, err)
		}
		late.open(ctx, 1, 1, late.announce(ctx, 1))
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		_, err = cl.Publish(short, participation.EventKey("a"), example(1))
		refusal(t, "the later task", err, "total epsilon")
		if n := late.reports(1, 1); n != 0 {
			t.Errorf("%d reports of a task that is too much", n)
		}
	})
}

// Where keys are users, as they always are of a task that protects people, each has a total of its own: those that
// were in the first task are refused in the second, others are not, and what was charged without a name counts for
// everybody.
func TestUsersHaveTheirOwnTotals(t *testing.T) {
	for _, people := range []bool{false, true} {
		usersHaveTheirOwnTotals(t, people)
	}
}

func usersHaveTheirOwnTotals(t *testing.T, people bool) {
	synctest.Test(t, func(t *testing.T) {
		book := memory.NewLedger()
		publish := func(from, to int, named bool) (counted, refused int) {
			w := newWorld(t, plan{rounds: 1, cohort: 10, minimum: 2, deadline: time.Minute})
			cfg := w.config(participation.NewMemoryStore())
			cfg.Ledger, cfg.UserKeys, cfg.Rows = book, named && !people, named && people
			cfg.Policy.MaxTotalEpsilon = 1.5 * w.cost()
			w.play(t.Context(), func(ctx context.Context) {
				ctx, stop := context.WithTimeout(ctx, time.Hour)
				defer stop()
				cl := w.client(cfg)
				if named && people {
					byUser(cl, 1, 0)
					sum, err := cl.Run(ctx, rowsOf(from, to))
					must(t, err)
					counted, refused = int(sum.Counted), int(sum.Refused)
					return
				}
				outcomes := make(chan device.Outcome)
				for i := from; i < to; i++ {
					go func() {
						got, _ := cl.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1))
						outcomes <- got
					}()
				}
				for range to - from {
					switch (<-outcomes).State {
					case participation.Counted:
						counted++
					case participation.Refused:
						refused++
					}
				}
				must(t, cl.Close())
			})
			if n := w.reports(1, 1); n != counted {
				t.Errorf("%d reports of %d users that were counted", n, counted)
			}
			return counted, refused
		}
		for _, c := range []struct{ from, to, counted, refused int }{{0, 10, 10, 0}, {6, 14, 4, 4}, {10, 20, 6, 4}} {
			if counted, refused := publish(c.from, c.to, true); counted != c.counted || refused != c.refused {
				t.Errorf("users %d to %d: %d counted, %d refused, want %d and %d", c.from, c.to, counted, refused, c.counted,
					c.refused)
			}
		}
		free := memory.NewLedger()
		book = free
		if counted, _ := publish(0, 10, true); counted != 10 {
			t.Fatalf("%d counted in an empty ledger", counted)
		}
		// The limit is one and a half tasks for each: users 20 to 29 have paid nothing, until ten without a name take
		// part.
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
		_, err := w.runWith(t.Context(), 10, func(cfg *device.Settings) { cfg.Ledger = book })
		must(t, err)
		if counted, refused := publish(20, 30, true); counted != 0 || refused != 10 {
			t.Errorf("after a task without names: %d counted, %d refused, want 0 and 10", counted, refused)
		}
	})
}

// What is charged is there before anything is published, and stays: that an event is in no batch rests on the broker's
// word, so another round is charged on top. Its outcome is known to the ledger when the device knows it.
func TestChargeStays(t *testing.T) {
	for _, refunds := range []uint32{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 9, cohort: 10})
			book := memory.NewLedger()
			c := w.config(participation.NewMemoryStore())
			c.Ledger, c.Policy.MaxRefunds = book, &refunds
			c.Transport = checked{c.Transport, func() {
				if all := everyone(t, book); len(all) != 1 || all[0].Open != 1 {
					t.Errorf("published with %v in the ledger, want one event open", all)
				}
			}}
			cl := w.client(c)
			done := make(chan device.Outcome)
			go func() {
				got, _ := cl.Publish(ctx, participation.EventKey("a"), example(1))
				done <- got
			}()
			for r := stream.Round(1); r <= stream.Round(refunds)+1; r++ {
				hash := w.announce(ctx, r)
				w.open(ctx, r, 1, hash)
				time.Sleep(10 * time.Second)
				if n := w.reports(r, 1); n != 1 {
					t.Errorf("%d reports in round %d", n, r)
				}
				w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash}) // nothing was opened, says the broker
				settled := time.Now()
				time.Sleep(10 * time.Second)
				all := everyone(t, book)
				if len(all) != 1 || all[0].Standing != uint64(r) || all[0].Open != 0 ||
					all[0].At.Before(settled.Truncate(time.Millisecond)) {
					t.Errorf("max_refunds %d: %+v after round %d, want %d participations, none open", refunds, all, r, r)
				}
				one := accounting.Mechanism{Trials: 10 * uint64(w.params.Trials), P: 0.5, Levels: int(w.params.Levels), Dim: 3,
					Rounds: int(r)}
				want, err := one.Epsilon(1e-3)
				must(t, err)
				if epsilon, _ := ledger.Spent(all, time.Now(), 0); math.Abs(epsilon-want) > 1e-9 {
					t.Errorf("the task cost %v after %d rounds, want %v", epsilon, r, want)
				}
			}
			if got := <-done; got.State != participation.Uncounted {
				t.Errorf("%v, want uncounted", got)
			}
			must(t, cl.Close())
		})
	}
}

// A checked ReportWriter looks before every publish.
type checked struct {
	stream.Transport
	look func()
}

func (c checked) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	c.look()
	return c.Transport.Publish(ctx, reports)
}

// A gravedigger is a Ledger that dies at a write, which is made or not.
type gravedigger struct {
	ledger.Ledger
	writes, failAt int
	lost           bool
}

func (g *gravedigger) Update(clock time.Time, accounts []participation.Key,
	edit func(time.Time, [][]ledger.Charge) error) error {
	g.writes++
	if g.failAt > 0 && g.writes >= g.failAt {
		if g.lost || g.writes > g.failAt {
			return errDied
		}
		if err := g.Ledger.Update(clock, accounts, edit); err != nil {
			return err
		}
		return errDied
	}
	return g.Ledger.Update(clock, accounts, edit)
}

// The process dies at every write of the store or of the ledger, made or not; another goes on. The ledger always has at
// least the events that may be in a batch, and the task costs its users once.
func TestLedgerSurvivesDeathAtEveryWrite(t *testing.T) {
	for _, named := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			for _, inLedger := range []bool{false, true} {
				reached := true
				for i := 1; reached; i++ {
					if i > 100 {
						t.Fatal("the run never gets by without the death")
					}
					synctest.Test(t, func(t *testing.T) { reached = ledgerDies(t, i, named, lost, inLedger) })
				}
			}
		}
	}
}

func ledgerDies(t *testing.T, failAt int, named, lost, inLedger bool) (died bool) {
	w := newWorld(t, plan{rounds: 2, cohort: 8, minimum: 4, deadline: 30 * time.Second})
	s, g := newSpy(t, participation.NewMemoryStore()), &gravedigger{Ledger: memory.NewLedger(), lost: lost}
	s.lost = lost
	if inLedger {
		g.failAt = failAt
	} else {
		s.failAt = failAt
	}
	run := func(ctx context.Context) (device.Summary, error) {
		c := w.config(s)
		c.Ledger, c.UserKeys = g, named
		c.Policy.MaxTotalEpsilon = 1.5 * w.cost()
		if named {
			return publishUsers(ctx, w.client(c), 16)
		}
		return w.client(c).Run(ctx, rows(16, false))
	}
	name := fmt.Sprintf("write %d, of the ledger %t, named %t, lost %t", failAt, inLedger, named, lost)
	w.play(t.Context(), func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		sum, err := run(ctx)
		checkSum(t, sum)
		if died = errors.Is(err, errDied); !died {
			must(t, err)
		}
		atDeath := everyone(t, g)
		s.failAt, g.failAt = 0, 0
		sum, err = run(ctx)
		must(t, err)
		checkSum(t, sum)
		if sum.Refused != 0 || sum.Events != 16 {
			t.Errorf("%s: the second run: %+v, want 16 events, none refused", name, sum)
		}
		for _, c := range atDeath {
			if n, _ := standing(t, g, c.Task); n < c.Standing {
				t.Errorf("%s: %d events standing after the restart, %d before: nothing was refunded", name, n, c.Standing)
			}
		}
	})
	s.audit(w)
	up := uint64(0) // events that the device counts as open, or sent
	for key := range s.draws {
		parts, err := s.Read([]participation.Key{key})
		must(t, err)
		if parts[0].State != participation.Uncounted {
			up++
		}
	}
	charges := everyone(t, g)
	if len(charges) != 1 || charges[0].Standing < up {
		t.Errorf("%s: the ledger has %v standing of %d events", name, charges, up)
	}
	if epsilon, _ := ledger.Spent(charges, time.Now(), 0); epsilon != w.cost() {
		t.Errorf("%s: the task cost %v, want %v, once", name, epsilon, w.cost())
	}
	return died
}

// publishUsers does what Run does, for events with the keys of n users.
func publishUsers(ctx context.Context, cl *device.Device, n int) (sum device.Summary, err error) {
	outcomes := make(chan device.Outcome)
	for i := range n {
		go func() {
			got, _ := cl.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1)) // Close has the error
			outcomes <- got
		}()
	}
	for range n {
		sum.Events++
		switch (<-outcomes).State {
		case participation.Counted:
			sum.Counted++
		case participation.Uncounted:
			sum.Uncounted++
		case participation.Unknown:
			sum.Unknown++
		case participation.Refused:
			sum.Refused++
		}
	}
	return sum, cl.Close()
}
