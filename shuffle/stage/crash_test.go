package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var errCrash = errors.New("the process is gone")

// mortal is a stage's connection that dies at one call, before or after the broker did it. A call is named by what it
// does, on which subject, and for the how many-th time: "put batch.1 #1". It also records what crossed the wire.
type mortal struct {
	stream.Records
	stream.ReportReader
	at    string // "": never
	after bool
	die   func()
	wires *wires

	mu    sync.Mutex
	dead  bool
	times map[string]int
	trace []string
}

// wires are the distinct bytes of batches that any life of any stage has sent.
type wires struct {
	mu   sync.Mutex
	sent map[string]map[string]bool
}

func (w *wires) record(subject string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = map[string]map[string]bool{}
	}
	if w.sent[subject] == nil {
		w.sent[subject] = map[string]bool{}
	}
	w.sent[subject][string(data)] = true
}

// audit: of no round did two different real batches cross the wire, even if only one was stored.
func (w *wires) audit(t testing.TB, world *world) {
	t.Helper()
	for subject, all := range w.sent {
		real := 0
		for data := range all {
			var b wire.Batch
			if _, err := seal.Verify([]byte(data), world.stage.Public(), &b); err == nil && !b.Void {
				real++
			}
		}
		if real > 1 {
			t.Errorf("%s: %d different batches crossed the wire", subject, real)
		}
	}
}

func (m *mortal) call(verb, subject string, do func() error) error {
	m.mu.Lock()
	name := strings.TrimSuffix(verb+" "+strings.TrimPrefix(subject, "panlearn.churn."), " ")
	m.times[name]++
	name = fmt.Sprintf("%s #%d", name, m.times[name])
	m.trace = append(m.trace, name)
	was := m.dead
	m.dead = m.dead || name == m.at
	now := m.dead
	m.mu.Unlock()
	if !now {
		return do()
	}
	if !was {
		if m.after {
			_ = do()
		}
		m.die()
	}
	return errCrash
}

func (m *mortal) PutOnce(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	err = m.call("put", subject, func() (err error) {
		if a, _ := stream.ParseSubject(subject); a.Verb == "batch" {
			m.wires.record(subject, data)
		}
		r, err = m.Records.PutOnce(ctx, subject, data)
		return err
	})
	return r, err
}

func (m *mortal) Get(ctx context.Context, subject string) (r stream.Message, err error) {
	err = m.call("get", subject, func() (err error) { r, err = m.Records.Get(ctx, subject); return err })
	return r, err
}

func (m *mortal) Latest(ctx context.Context, pattern string) (r stream.Message, err error) {
	err = m.call("latest", pattern, func() (err error) { r, err = m.Records.Latest(ctx, pattern); return err })
	return r, err
}

func (m *mortal) Swap(ctx context.Context, subject string, expected uint64, data []byte) (n uint64, err error) {
	err = m.call("swap", subject, func() (err error) { n, err = m.Records.Swap(ctx, subject, expected, data); return err })
	return n, err
}

func (m *mortal) Fetch(ctx context.Context, max int, wait time.Duration) (ds []stream.Delivery, err error) {
	err = m.call("fetch", "", func() (err error) { ds, err = m.ReportReader.Fetch(ctx, max, wait); return err })
	for i := range ds {
		ack := ds[i].Ack
		ds[i].Ack = func() error { return m.call("ack", "", ack) }
	}
	return ds, err
}

func (m *mortal) Queue(ctx context.Context) (q stream.Queue, err error) {
	err = m.call("queue", "", func() (err error) { q, err = m.ReportReader.Queue(ctx); return err })
	return q, err
}

func (m *mortal) Purge(ctx context.Context, before uint64) error {
	return m.call("purge", "", func() error { return m.ReportReader.Purge(ctx, before) })
}

// life runs one stage process that dies at a call ("": at none). It returns its calls, and whether it lived to the
// end.
func (w *world) life(ctx context.Context, at string, after bool, sent *wires, change func(*Config)) (trace []string,
	lived bool) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	c := w.config()
	m := &mortal{Records: c.Records, ReportReader: c.Reports, at: at, after: after, die: die, wires: sent,
		times: map[string]int{}}
	c.Records, c.Reports = m, m
	if change != nil {
		change(&c)
	}
	err := w.new(c).Run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Errorf("Run: %v", err)
	}
	return m.trace, err == nil
}

// healthy returns the calls of a life that ends by itself.
func healthy(t *testing.T, p plan) (trace []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, p)
		w.run(t.Context(), func(ctx context.Context) { trace, _ = w.life(ctx, "", false, new(wires), nil) })
	})
	return trace
}

// TestCrashAtEveryCall kills the stage at each call of a healthy life in turn, the call done or not, and starts
// another. A round is void exactly where the claim may be on the broker without its batch.
func TestCrashAtEveryCall(t *testing.T) {
	p := plan{rounds: 2, cohort: 3, spares: 1}
	trace := healthy(t, p)
	died := 0
	for _, at := range trace {
		for _, after := range []bool{false, true} {
			wantVoid := (strings.HasPrefix(at, "put claim.") && after) || (strings.HasPrefix(at, "put batch.") && !after)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, p)
				var sent wires
				w.run(t.Context(), func(ctx context.Context) {
					if _, lived := w.life(ctx, at, after, &sent, nil); !lived {
						died++
						w.life(ctx, "", false, &sent, nil)
					}
				})
				sent.audit(t, w)
				if real, void := w.audit(); real != 2 || (void == 1) != wantVoid {
					t.Errorf("crash at %s (done: %t): %d real, %d void batches", at, after, real, void)
				}
			})
		}
	}
	t.Logf("killed %d times; a healthy life makes %d calls", died, len(trace))
	if died < len(trace) {
		t.Errorf("killed only %d times in %d calls", died, len(trace))
	}
}

// TestCrashTwice kills two lives in a row, at every pair of kinds of calls.
func TestCrashTwice(t *testing.T) {
	p := plan{rounds: 1, cohort: 2, spares: 2}
	afters := []bool{false}
	if longtest.Run(t, "crashes at every pair of calls: only pairs of calls that write, first time each") {
		afters = append(afters, true)
	}
	var calls []string
	for _, at := range healthy(t, p) {
		first := strings.HasSuffix(at, " #1")
		if writes := first && strings.HasPrefix(at, "put") || strings.HasPrefix(at, "swap"); writes || len(afters) > 1 {
			calls = append(calls, at)
		}
	}
	calls = append(calls, "put open.1.2 #1", "put claim.1 #2", "put batch.1 #2")
	for _, one := range calls {
		for _, two := range calls {
			for _, after := range afters {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, p)
					var sent wires
					w.run(t.Context(), func(ctx context.Context) {
						for _, at := range []string{one, two, ""} {
							if _, lived := w.life(ctx, at, after != (at == two), &sent, nil); lived {
								return
							}
						}
					})
					sent.audit(t, w)
					if real, void := w.audit(); real != 1 || void > 2 {
						t.Errorf("crash at %s, %s: %d real, %d void batches", one, two, real, void)
					}
				})
			}
		}
	}
}
