package helper

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRounds: the helper introduces itself, waits for the task, joins each round and releases it once; it ends when the
// task does.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 6)
		decided := split.Rejects{}
		var joined, released int
		p := w.start(t.Context(), func(c *Config) {
			c.Observer.Decided = func(o split.Outcome, n uint64) { decided[o] += n }
			c.Observer.Joined = func(stream.Round, stream.Attempt) { joined++ }
			c.Observer.Released = func(_ stream.Round, users uint64, _ time.Duration) { released += int(users) }
		})
		var id wire.HelperIdentity
		if m := w.get(t.Context(), w.name.Helper()); m == nil {
			t.Fatal("no identity")
		} else if _, err := seal.Verify(m.Data, w.helperKey, &id); err != nil || string(id.Key) != string(w.helperKey) {
			t.Errorf("identity: %v", err)
		}
		for r := uint64(1); r <= 3; r++ {
			w.announce(t.Context(), r)
			got, a, err := w.runs(t.Context(), r)
			if err != nil || a != 1 {
				t.Fatalf("round %d, attempt %d: %v", r, a, err)
			}
			w.checkTotals(got)
			time.Sleep(5 * time.Second)
			if s := w.shareOf(r); s == nil || s.Users != 6 || s.Refusal != split.None {
				t.Errorf("the Share of round %d is %v", r, s)
			}
			if at := p.Status(); at.Released != stream.Round(r) || at.Round != 0 || at.Trouble != "" {
				t.Errorf("status %+v", at)
			}
		}
		w.end(t.Context(), 3)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if joined != 3 || released != 18 || decided != (split.Rejects{split.Accepted: 18}) {
			t.Errorf("joined %d, released %d, decided %v", joined, released, decided)
		}
	})
}

// TestConfig: nothing is taken for granted, the keys of the others least.
func TestConfig(t *testing.T) {
	w := newWorld(t, 4, 4)
	f := w.opened()
	defer f.Close()
	good := w.config(f, f.Identity())
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no leader's key":          func(c *Config) { c.LeaderKey = nil },
		"no learner's key":         func(c *Config) { c.LearnerKey = nil },
		"a short key":              func(c *Config) { c.LeaderKey = c.LeaderKey[:31] },
		"the helper as the leader": func(c *Config) { c.LeaderKey = c.Identity.Public() },
		"no identity":              func(c *Config) { c.Identity = nil },
		"no folder":                func(c *Config) { c.Folder = nil },
		"no exchange":              func(c *Config) { c.Exchange = nil },
		"no records":               func(c *Config) { c.Records = nil },
		"a task without a name":    func(c *Config) { c.Task = "" },
		"a short lease":            func(c *Config) { c.Lease = 1 },
		"a negative poll":          func(c *Config) { c.Poll = -1 },
		"many workers":             func(c *Config) { c.Workers = maxWorkers + 1 },
		"a negative limit":         func(c *Config) { c.Limits.MaxPayload = -1 },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRunOnce(t *testing.T) {
	w := newWorld(t, 4, 4)
	f := w.opened()
	defer f.Close()
	h, err := New(w.config(f, f.Identity()))
	w.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Run(ctx); err == nil {
		t.Error("a run whose context is over ends well")
	}
	if err := h.Run(t.Context()); err == nil {
		t.Error("a second run")
	}
}
