package stage

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

func TestSeveralRounds(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		t.Run(suite.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 3, cohort: 8, suite: suite})
				var released []uint64
				var accepted int
				c := w.config()
				c.Observer = Observer{
					Released: func(r stream.Round, users uint64, _ time.Duration) { released = append(released, uint64(r), users) },
					Report: func(r Reason) {
						if r == Accepted {
							accepted++
						}
					},
				}
				s := w.new(c)
				w.run(t.Context(), func(ctx context.Context) {
					if err := s.Run(ctx); err != nil {
						t.Error(err)
					}
				})
				if real, void := w.audit(); real != 3 || void != 0 {
					t.Errorf("%d real, %d void batches: want 3, 0", real, void)
				}
				if len(released) != 6 || released[4] != 3 || released[5] != 8 || accepted != 24 {
					t.Errorf("observer: released %v, accepted %d", released, accepted)
				}
				if err := s.Run(t.Context()); err != errRan {
					t.Errorf("a second Run: %v", err)
				}
				for _, m := range w.broker.Dump() {
					if m.Stream == stream.Reports {
						t.Errorf("%s is still in the queue", m.Subject)
					}
					if l, err := stream.ParseLease(m.Data); m.Stream == stream.Leases && (err != nil || l.Newest != 3) {
						t.Errorf("the lease says round %d, %v: want round 3", l.Newest, err)
					}
				}
				if got := s.Status(); got.Phase != "ended" || got.Lease {
					t.Errorf("status %+v", got)
				}
			})
		})
	}
}

func TestBundles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 5 bundles of up to 4 for a cohort of 10: accepted whole, in any order.
		w := newWorld(t, plan{rounds: 2, cohort: 10, bundle: 4, broker: memory.Config{Shuffle: true, Seed: 7}})
		w.run(t.Context(), func(ctx context.Context) {
			if err := w.new(w.config()).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if real, void := w.audit(); real != 2 || void != 0 {
			t.Errorf("%d real, %d void batches", real, void)
		}
	})
}

// TestOpenSaysWhatDevicesNeed: the fields of Open, and that a restart draws a new key and instance.
func TestOpenSaysWhatDevicesNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4, suite: wire.Suite_SUITE_X25519})
		w.announce(t.Context())
		var keys, instances [2]string
		for life := range 2 {
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			s := w.new(w.config())
			go func() { done <- s.Run(ctx) }()
			in := w.invited(ctx, 1, stream.Attempt(life))
			m := w.get(ctx, w.name.Open(1, in.attempt))
			var o wire.Open
			if _, err := w.new(w.config()).read(m, w.stage.Public(), &o); err == nil {
				t.Error("a stage that knows no task took an Open")
			}
			if _, err := s.read(m, w.stage.Public(), &o); err != nil {
				t.Error(err)
			}
			if at := time.UnixMilli(o.StartedUnixMs); time.Since(at) > 5*time.Second || time.Since(at) < -time.Millisecond ||
				in.attempt != stream.Attempt(life+1) {
				t.Errorf("attempt %d started at %v", in.attempt, at)
			}
			keys[life], instances[life] = string(o.PublicKey), string(o.Instance)
			synctest.Wait()
			if got, want := told(s.Status()), "collecting round 1, attempt "; got[:len(want)] != want {
				t.Errorf("status %q", got)
			}
			stop()
			if err := <-done; err != context.Canceled {
				t.Errorf("Run: %v", err)
			}
		}
		if keys[0] == keys[1] || instances[0] == instances[1] {
			t.Error("a restart kept its key or instance")
		}
	})
}

func TestConfigRefusals(t *testing.T) {
	w := newWorld(t, plan{cohort: 4})
	for want, change := range map[string]func(*Config){
		"task name":  func(c *Config) { c.Task = "No" },
		"Records":    func(c *Config) { c.Records = nil },
		"Reports":    func(c *Config) { c.Reports = nil },
		"Identity":   func(c *Config) { c.Identity = nil },
		"LearnerKey": func(c *Config) { c.LearnerKey = make([]byte, 31) },
		"LeaseTTL":   func(c *Config) { c.LeaseTTL = time.Hour },
		"Poll":       func(c *Config) { c.Poll = -1 },
		"Prefetch":   func(c *Config) { c.Prefetch = 1 << 20 },
		"MaxPayload": func(c *Config) { c.Limits.MaxPayload = -1 },
	} {
		c := w.config()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if seen[r.String()] || r.String() == "" || r.String() == "invalid" {
			t.Errorf("reason %d is named %q", r, r)
		}
		seen[r.String()] = true
	}
	if got := Reason(200).String(); got != "invalid" {
		t.Error(got)
	}
	for o := shuffle.Accepted; o.String() != "unknown"; o++ {
		if (reasonOf(o) == Accepted) != (o == shuffle.Accepted) {
			t.Errorf("outcome %v is reason %v", o, reasonOf(o))
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
