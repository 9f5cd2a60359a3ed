package helper

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestTasksRefused: a Task that does not name the pinned learner, the pinned leader and this helper, or that is not of
// two operators, ends the helper before it joins anything.
func TestTasksRefused(t *testing.T) {
	other := identity(t)
	for name, test := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"another leader":              {func(w *world) { w.task.StageKey = other.Public() }, "names the stage"},
		"another helper":              {func(w *world) { w.task.HelperKey = other.Public() }, "names the helper"},
		"another learner":             {func(w *world) { w.learner = other }, "signed with another key"},
		"a learner that is not named": {func(w *world) { w.task.LearnerKey = other.Public() }, "names the learner"},
		"another name":                {func(w *world) { w.task.Name = "other" }, "holds a task named"},
		"trust pan": {func(w *world) {
			w.task.Plan.Trust, w.task.Plan.Prio3, w.task.HelperKey = wire.Trust_TRUST_PAN, "", nil
		}, "needs no helper"},
		"no encryption":              {func(w *world) { w.task.Suite = wire.Suite_SUITE_NONE }, "suite"},
		"another Prio3":              {func(w *world) { w.task.Plan.Prio3 = "draft-18" }, "prio3"},
		"no noise":                   {func(w *world) { w.task.Plan.Phases[0].Mechanism.FloorTrials = 0 }, "task: plan"},
		"another coin":               {func(w *world) { w.task.Plan.Phases[0].Mechanism.Coin /= 2 }, "task: plan"},
		"noise of users":             {func(w *world) { w.task.Plan.Phases[0].Mechanism.Trials = 3 }, "task: plan"},
		"other levels":               {func(w *world) { w.task.Plan.Phases[0].Mechanism.Levels = 4 }, "task: plan"},
		"more than the broker takes": {func(w *world) { w.task.Plan.Phases[0].Mechanism.Dim = 1 << 16 }, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 4, 4)
				p := w.start(t.Context(), nil)
				test.change(w)
				w.rehash()
				w.put(t.Context(), w.name.Task(), w.sign(w.learner, w.task))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if err := p.stop(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
			})
		})
	}
}

// TestOpensRefused: an Open that a device would not answer is not joined.
func TestOpensRefused(t *testing.T) {
	for name, change := range map[string]func(w *world, o *wire.Open){
		"another round's manifest": func(_ *world, o *wire.Open) { o.ManifestHash = make([]byte, 32) },
		"another suite":            func(_ *world, o *wire.Open) { o.Suite = wire.Suite_SUITE_X25519 },
		"no key":                   func(_ *world, o *wire.Open) { o.PublicKey = nil },
		"a short key":              func(_ *world, o *wire.Open) { o.PublicKey = o.PublicKey[:32] },
		"another task":             func(_ *world, o *wire.Open) { o.TaskHash = make([]byte, 32) },
		"another's signature":      func(w *world, _ *wire.Open) { w.leader = w.learner },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 4, 4)
				p := w.start(t.Context(), nil)
				w.announce(t.Context(), 1)
				leader := w.leader
				w.opens(t.Context(), 1, 1, func(o *wire.Open) { change(w, o) })
				w.leader = leader
				time.Sleep(10 * time.Second)
				if !w.absent(w.name.Join(1, 1)) {
					t.Error("joined")
				}
				if _, err := w.leads(t.Context(), 1, 2); err != nil {
					t.Errorf("the next attempt: %v", err)
				}
				_ = p.stop()
			})
		})
	}
}

// leads leads one attempt to its end.
func (w *world) leads(ctx context.Context, r, a uint64) (split.Release, error) {
	l := w.opens(ctx, r, a, nil)
	if err := l.joined(ctx, ctx); err != nil {
		return split.Release{}, err
	}
	if err := l.fills(ctx); err != nil {
		return split.Release{}, err
	}
	return l.finishes(ctx)
}

// TestLyingFinish: a leader that ends the attempt with other users, another chain or another number of requests than
// the helper has gets no Share, not for the truth either that it says afterwards; the round is released by the next
// attempt, once.
func TestLyingFinish(t *testing.T) {
	for name, lie := range map[string]func(f *split.Finish){
		"fewer users":    func(f *split.Finish) { f.Users-- },
		"more users":     func(f *split.Finish) { f.Users++ },
		"another chain":  func(f *split.Finish) { f.Chain[0] ^= 1 },
		"fewer requests": func(f *split.Finish) { f.Requests-- },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, left := newWorld(t, 3, 1), new(leavings)
				var dropped int
				p := w.start(t.Context(), func(c *Config) {
					c.Exchange, c.Records = watched{c.Exchange, w, left}, recorded{c.Records, w, left}
					c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
				})
				w.announce(t.Context(), 1)
				l := w.opens(t.Context(), 1, 1, nil)
				w.must(l.joined(t.Context(), t.Context()))
				w.must(l.fills(t.Context()))
				prepared, err := l.core.Prepare(split.Entropy{}, split.Note{})
				w.must(err)
				f := prepared.Finish
				lie(&f)
				l.sends(&f)
				if m, ok := l.read(<-l.answers).(*split.Differs); !ok || m.X != l.x {
					t.Errorf("the lie is answered with %v", m)
				}
				e := split.NewEnding(prepared)
				e.Stored(true)
				if _, err := l.asks(t.Context(), e); err == nil {
					t.Error("the truth after a lie is released")
				}
				time.Sleep(10 * time.Second)
				if s := w.shareOf(1); s != nil || dropped != 1 {
					t.Errorf("%d attempts dropped, Share %v", dropped, s)
				}
				got, err := w.leads(t.Context(), 1, 2)
				w.must(err)
				w.checkTotals(got)
				// The first attempt stays dead, and a third is not joined.
				l.sends(&prepared.Finish)
				if m, ok := l.read(<-l.answers).(*split.Gone); !ok || m.Marked != 1 {
					t.Errorf("the dead attempt is answered with %+v", m)
				}
				if _, err := w.leads(t.Context(), 1, 3); !errors.Is(err, errRefused) {
					t.Errorf("a third attempt: %v", err)
				}
				time.Sleep(10 * time.Second)
				if !w.absent(w.name.Join(1, 3)) {
					t.Error("a round that is released is joined again")
				}
				left.audit(t)
				_ = p.stop()
			})
		})
	}
}

// TestEquivocatedRequest: two requests of one number end the attempt.
func TestEquivocatedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 1)
		p := w.start(t.Context(), nil)
		w.announce(t.Context(), 1)
		l := w.opens(t.Context(), 1, 1, nil)
		w.must(l.joined(t.Context(), t.Context()))
		l.take(l.report(1, nil))
		r, _ := l.core.Cut()
		other := r
		other.Bundles = []split.Bundle{{Users: r.Bundles[0].Users, Sealed: bytes.Clone(r.Bundles[0].Sealed)}}
		other.Bundles[0].Sealed[9] ^= 1
		l.sends(&r)
		if _, ok := l.read(<-l.answers).(*split.Reply); !ok {
			t.Fatal("no reply")
		}
		l.sends(&r) // a copy is answered with the same reply
		if _, ok := l.read(<-l.answers).(*split.Reply); !ok {
			t.Fatal("no second reply")
		}
		l.sends(&other)
		if _, ok := l.read(<-l.answers).(*split.Differs); !ok {
			t.Error("two requests of one number are taken")
		}
		l.sends(&split.Ping{X: l.x})
		if _, ok := l.read(<-l.answers).(*split.Gone); !ok {
			t.Error("the attempt lives on")
		}
		_ = p.stop()
	})
}

// TestPing: the reply to a ping of a held attempt is a pong, which requests a Share above the mark; for any other
// attempt it is a gone, also on the subject of an earlier process.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 1)
		p := w.start(t.Context(), nil)
		w.announce(t.Context(), 1)
		l := w.opens(t.Context(), 1, 1, nil)
		w.must(l.joined(t.Context(), t.Context()))
		ping := func(x split.Attempt, highest uint64) any {
			l.sends(&split.Ping{X: x, Highest: highest})
			return l.read(<-l.answers)
		}
		if m, ok := ping(l.x, 0).(*split.Pong); !ok || m.Show != 0 || m.Instance != split.Instance(l.join.Instance) {
			t.Errorf("ping: %+v", m)
		}
		if m, ok := ping(l.x, 7).(*split.Pong); !ok || m.Show != 7 {
			t.Errorf("ping of a later round: %+v", m)
		}
		strange := l.x
		strange.Join[0] ^= 1
		if m, ok := ping(strange, 0).(*split.Gone); !ok || m.X != strange {
			t.Errorf("ping of another attempt: %+v", m)
		}
		_ = p.stop()
		p = w.start(t.Context(), nil)
		time.Sleep(10 * time.Second)
		if m, ok := ping(l.x, 0).(*split.Gone); !ok || m.Instance == split.Instance(l.join.Instance) {
			t.Errorf("ping of the attempt of an earlier process: %+v", m)
		}
		if p.Status().Leader.IsZero() {
			t.Error("the leader was not heard")
		}
		_ = p.stop()
	})
}
