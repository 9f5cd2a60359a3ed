package device_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// good is an event of keyedDeclaration.
const good = `{"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1}`

// application returns the configuration of an application's device.
func (w *world) application(s participation.Store) device.Config {
	return device.Config{Task: w.name, Transport: w.broker, Store: s, Pin: fmt.Sprintf("%x", w.hash),
		Policy: consent.Policy{AllowPlaintext: true}}
}

func opened(ctx context.Context, t *testing.T, c device.Config) *device.Device {
	t.Helper()
	d, err := device.Open(ctx, c)
	must(t, err)
	return d
}

// Of users who are submitted each takes part once, whatever trust the task has and whatever the events hold; a key that
// is known is answered with its ticket, and its first event counts.
func TestSubmittedEventsAreCounted(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan, accounting.Local} {
		synctest.Test(t, func(t *testing.T) {
			const users = 15
			w := newWorld(t, plan{rounds: 1, cohort: users, deadline: time.Minute, trust: trust, sealed: true})
			w.keyedUnder(trust)
			var log bytes.Buffer
			w.play(t.Context(), func(ctx context.Context) {
				c := w.application(participation.NewMemoryStore())
				c.Policy.MaxEpsilon = 60
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				d := opened(ctx, t, c)
				contents := []string{good, `null`, `{"x0": "secret"}`, ``, `{"x0": 1`}
				tickets := make([]device.Ticket, users)
				var err error
				for i := range users {
					tickets[i], err = d.Submit(ctx, fmt.Sprint("user-", i), device.EventOf(contents[i%len(contents)]))
					must(t, err)
				}
				again, err := d.Submit(ctx, "user-0", device.EventOf(`secret`))
				must(t, err)
				must(t, again.Accepted(ctx))
				for i, ticket := range tickets {
					must(t, ticket.Accepted(ctx))
					if ticket.Fits() != (i%len(contents) == 0) {
						t.Errorf("%v: user %d fits: %t", trust, i, ticket.Fits())
					}
					if o, err := ticket.Outcome(ctx); err != nil || o.State != participation.Counted {
						t.Errorf("%v: user %d: %v, %v", trust, i, o, err)
					}
				}
				if o, err := d.Outcome(ctx, "user-0"); err != nil || o.State != participation.Counted || o.Round != 1 {
					t.Errorf("%v: by key: %v, %v", trust, o, err)
				}
				if _, err := d.Outcome(ctx, "nobody"); !errors.Is(err, device.ErrNoEvent) {
					t.Errorf("%v: nobody: %v", trust, err)
				}
				must(t, d.Close())
			})
			if n := w.reports(1, 1); n != users {
				t.Errorf("%v: %d reports of %d users", trust, n, users)
			}
			if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "sent as the zero vector") {
				t.Errorf("%v: the log: %s", trust, log.String())
			}
		})
	}
}

// A ticket's text is read by a later process with the same store, which learns the outcome; one of another task is not.
func TestTicketsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		w.keyed()
		store := participation.NewMemoryStore()
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		first := opened(ctx, t, w.application(store))
		ticket, err := first.Submit(ctx, "anna", device.EventOf(good))
		must(t, err)
		must(t, ticket.Accepted(ctx))
		text, err := ticket.MarshalText()
		must(t, err)
		if strings.Contains(string(text), "anna") {
			t.Errorf("the text names the user: %s", text)
		}
		time.Sleep(time.Second)
		must(t, first.Close())
		if o, err := ticket.Outcome(ctx); err != nil || o.State != participation.Unknown || !o.Open {
			t.Errorf("of a closed device: %+v, %v", o, err)
		}

		second := opened(ctx, t, w.application(store))
		again, err := second.Ticket(text)
		must(t, err)
		must(t, again.Accepted(ctx))
		if !again.Fits() {
			t.Error("a ticket without events does not fit")
		}
		short, stop := context.WithTimeout(ctx, time.Second)
		if o, err := again.Outcome(short); !errors.Is(err, context.DeadlineExceeded) || o.State != participation.Charged {
			t.Errorf("before the Close: %+v, %v", o, err)
		}
		stop()
		time.AfterFunc(time.Second, func() {
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
		})
		if o, err := again.Outcome(ctx); err != nil || o.State != participation.Counted {
			t.Errorf("after the Close: %+v, %v", o, err)
		}
		for _, wrong := range []string{"", "churn", "other." + strings.Split(string(text), ".")[1], string(text) + "A",
			string(text[:len(text)-1]), "churn.!"} {
			if _, err := second.Ticket([]byte(wrong)); err == nil {
				t.Errorf("%q is a ticket", wrong)
			}
		}
		if _, err := (device.Ticket{}).Outcome(ctx); !errors.Is(err, device.ErrNoEvent) {
			t.Errorf("the zero ticket: %v", err)
		}
		must(t, second.Close())
		if n := w.reports(1, 1); n != 1 {
			t.Errorf("%d reports, want 1", n)
		}
	})
}

// Only the key and the program are refused.
func TestSubmitRefusesKeysAndPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		w.keyed()
		w.announce(ctx, 1)
		d := opened(ctx, t, w.application(participation.NewMemoryStore()))
		for _, key := range []string{"", strings.Repeat("k", device.MaxKey+1)} {
			_, err := d.Submit(ctx, key, device.EventOf(good))
			refusal(t, "a key", err, "key")
			_, err = d.Outcome(ctx, key)
			refusal(t, "the outcome of a key", err, "key")
		}
		for _, events := range [][]device.Event{nil, {{}}, {device.EventOf(good), device.EventOf(good)}} {
			if ticket, err := d.Submit(ctx, fmt.Sprint(len(events), "k"), events...); err != nil || ticket.Fits() {
				t.Errorf("%d events: %v", len(events), err)
			}
		}
		must(t, d.Close())
		if _, err := d.Submit(ctx, "late", device.EventOf(good)); err == nil {
			t.Error("a closed device took an event")
		}
		rows := w.client(w.config(participation.NewMemoryStore()))
		if _, err := rows.Submit(ctx, "anna", device.EventOf(good)); err == nil {
			t.Error("a device whose ticks are not made for parsing took an event")
		}
		must(t, rows.Close())

		other := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		other.announce(ctx, 1)
		c := other.config(participation.NewMemoryStore())
		c.Source, c.Submits = "", true
		silo := other.client(c)
		device.OnAgree(silo, func(a *consent.Agreement) { a.Spec.Silo = &task.Silo{Count: 10, Units: 1} })
		_, err := silo.Submit(ctx, "anna", device.EventOf(good))
		refusal(t, "a silo's task", err, "silo")
		_ = silo.Close()
	})
}

// Submit never looks at an event, and waits while the device is full: an event that did not get in is not in the device,
// and may be submitted again.
func TestSubmitNeverLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 1 << 20, deadline: time.Hour})
		w.keyed()
		hash := w.announce(ctx, 1)
		d := opened(ctx, t, w.application(participation.NewMemoryStore()))
		var looked sync.Map
		event := func(i int) device.Event {
			return device.EventFunc(func() ([]byte, error) {
				looked.Store(i, true)
				return []byte(good), nil
			})
		}
		begun, taken := time.Now(), 0
		for {
			short, stop := context.WithTimeout(ctx, time.Second)
			_, err := d.Submit(short, fmt.Sprint(taken), event(taken))
			stop()
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) || taken == 0 {
					t.Fatalf("event %d: %v", taken, err)
				}
				break
			}
			taken++
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("%d events were taken in %v before one waited a second", taken, took)
		}
		looked.Range(func(i, _ any) bool {
			t.Errorf("event %v was looked at before a round took it", i)
			return false
		})
		if _, err := d.Outcome(ctx, fmt.Sprint(taken)); !errors.Is(err, device.ErrNoEvent) {
			t.Errorf("an event that did not get in: %v", err)
		}
		w.open(ctx, 1, 1, hash)
		ticket, err := d.Submit(ctx, fmt.Sprint(taken), event(taken))
		must(t, err)
		must(t, ticket.Accepted(ctx))
		time.Sleep(time.Minute)
		if n := w.reports(1, 1); n != taken+1 {
			t.Errorf("%d reports of %d events", n, taken+1)
		}
		must(t, d.Close())
	})
}

// In a task that protects people all events of a user are one report; in an interactive phase a user takes part in all
// of its rounds, and the outcome comes when they are over.
func TestSubmitPeopleAndMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, rounds = 12, 3
		w := newWorld(t, plan{rounds: 1, cohort: users, deadline: time.Minute})
		w.keyed()
		w.replan(asked(users, rounds, users))
		store, sum := newSpy(t, participation.NewMemoryStore()), device.Summary{}
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(store)
			c.Source, c.Submits, c.Policy.MaxEpsilon = "", true, 60
			c.Progress = func(p device.Progress) { sum = p.Summary }
			d := w.client(c)
			byUser(d, 2, 0)
			var tickets []device.Ticket
			for i := range users {
				var events []device.Event
				for range i % 4 {
					events = append(events, device.EventOf(good))
				}
				ticket, err := d.Submit(ctx, fmt.Sprint(i), events...)
				must(t, err)
				tickets = append(tickets, ticket)
			}
			for i, ticket := range tickets {
				if o, err := ticket.Outcome(ctx); err != nil || o.State != participation.Counted || o.Round != rounds || !ticket.Fits() {
					t.Errorf("user %d: %v, %v", i, o, err)
				}
			}
			must(t, d.Close())
		})
		if sum.Counted != users || sum.Surplus != users/4 {
			t.Errorf("%+v, want %d counted and %d surplus", sum, users, users/4)
		}
		for r := range stream.Round(rounds) {
			if n := w.reports(r+1, 1); n != users {
				t.Errorf("round %d: %d reports of %d users", r+1, n, users)
			}
		}
	})
}

// With UserKeys each user has an account in the ledger, and who has paid too much elsewhere is refused alone.
func TestSubmitChargesUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := memory.NewLedger()
		for round, users := range []int{1, 2} { // user 0 takes part first elsewhere
			w := newWorld(t, plan{rounds: 1, cohort: 1, deadline: time.Minute})
			w.keyed()
			w.play(t.Context(), func(ctx context.Context) {
				c := w.application(participation.NewMemoryStore())
				c.UserKeys, c.Ledger, c.Policy.MaxTotalEpsilon = true, book, 1.5*w.cost()
				d := opened(ctx, t, c)
				for i := range users {
					ticket, err := d.Submit(ctx, fmt.Sprint(i), device.EventOf(good))
					must(t, err)
					o, err := ticket.Outcome(ctx)
					must(t, err)
					if refused := round == 1 && i == 0; refused != (o.State == participation.Refused) {
						t.Errorf("task %d, user %d: %v", round, i, o)
					} else if refused {
						refusal(t, "a spent total", ticket.Accepted(ctx), "total epsilon")
					}
				}
				must(t, d.Close())
			})
		}
	})
}

// Open refuses a configuration that would trust by accident, or forget; and a task that is not the pinned one.
func TestOpenNeedsAPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		w.keyed()
		w.announce(ctx, 1)
		for name, change := range map[string]func(*device.Config){
			"no pin":                   func(c *device.Config) { c.Pin = "" },
			"a pin and first use":      func(c *device.Config) { c.TrustFirstUse = true },
			"half a pin":               func(c *device.Config) { c.Pin = c.Pin[:32] },
			"a pin in words":           func(c *device.Config) { c.Pin = strings.Repeat("x", 64) },
			"another than the policy":  func(c *device.Config) { c.Policy.TaskHash = make([]byte, 32) },
			"no store":                 func(c *device.Config) { c.Store = nil },
			"two stores":               func(c *device.Config) { c.Folder = t.TempDir() },
			"no transport":             func(c *device.Config) { c.Transport = nil },
			"no task":                  func(c *device.Config) { c.Task = "" },
			"a ledger beside a folder": func(c *device.Config) { c.Store, c.Folder, c.Ledger = nil, t.TempDir(), memory.NewLedger() },
			"totals without a ledger":  func(c *device.Config) { c.Policy.MaxTotalEpsilon = 1 },
		} {
			c := w.application(participation.NewMemoryStore())
			change(&c)
			if d, err := device.Open(ctx, c); err == nil {
				t.Errorf("%s: taken", name)
				_ = d.Close()
			}
		}
		c := w.application(participation.NewMemoryStore())
		c.Pin = strings.Repeat("0", 64)
		_, err := device.Open(ctx, c)
		refusal(t, "another task", err, "task hash")
		c.Pin, c.TrustFirstUse = "", true
		must(t, opened(ctx, t, c).Close())
	})
}

// calling is a transport that says which it is.
type calling struct{ stream.Transport }

func (calling) String() string { return "the relay https://r.example" }

// Open waits for a broker and a task, and says so, until its context ends; then the error says what it waited for.
func TestOpenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		w.keyed()
		var log bytes.Buffer
		c := w.application(participation.NewMemoryStore())
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		short, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		c.Transport = calling{c.Transport}
		_, err := device.Open(short, c)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "task "+string(w.name)) ||
			!strings.Contains(err.Error(), "the relay https://r.example") {
			t.Errorf("without a task: %v", err)
		}
		stopped, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := device.Open(stopped, c); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the relay") {
			t.Errorf("given up: %v", err)
		}
		if n := strings.Count(log.String(), "waiting for the task"); n != 1 {
			t.Errorf("told %d times: %s", n, log.String())
		}
		c.Transport = w.broker
		time.AfterFunc(time.Hour, func() { w.announce(t.Context(), 1) })
		must(t, opened(t.Context(), t, c).Close())
	})
}

// A folder keeps participations and ledger for a later process, and one at a time holds it.
func TestOpenKeepsAFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	ctx := t.Context()
	w := newWorld(t, plan{rounds: 1, cohort: 1, deadline: time.Hour})
	w.keyed()
	w.play(ctx, func(ctx context.Context) {
		c := w.application(nil)
		c.Folder, c.Policy.MaxTotalEpsilon = filepath.Join(dir, "devices"), 10
		for life := range 2 {
			d := opened(ctx, t, c)
			if _, err := device.Open(ctx, c); err == nil {
				t.Error("two devices hold one folder")
			}
			if life == 0 {
				_, err := d.Submit(ctx, "anna", device.EventOf(good))
				must(t, err)
			}
			if o, err := d.Outcome(ctx, "anna"); err != nil || o.State != participation.Counted {
				t.Errorf("life %d: %v, %v", life, o, err)
			}
			must(t, d.Close())
			must(t, d.Close())
		}
	})
}

// keyedUnder is keyed for a task of a trust.
func (w *world) keyedUnder(trust accounting.Trust) {
	w.keyed()
	w.spec.Privacy.Trust, w.spec.Privacy.Seal = trust, "hpke"
	w.task.Suite = wire.Suite_SUITE_X25519
	if trust == accounting.Local {
		w.params.Trials = 400
		w.params.Window = uint32(randomizer.WindowOf(400, 1))
		w.task.Plan.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	}
	var err error
	w.task.Declaration, err = w.spec.Canonical()
	must(w.t, err)
	w.hash = taskHash(w.t, w.task)
}
