package helper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
)

var errCrash = errors.New("the process is gone")

// A mortal is a helper's connection, and its folder, that die at one call, before it is done or after. A call is named
// by what it does, on which subject, and for the how many-th time. It also records the Shares that left.
type mortal struct {
	stream.Records
	stream.ExchangeServer
	Folder
	at    string // "": never
	after bool
	die   func()
	left  *leavings

	mu    sync.Mutex
	dead  bool
	times map[string]int
	trace []string
}

// leavings are the distinct Shares with an aggregate that any life of the helper sent, by round.
type leavings struct {
	mu     sync.Mutex
	shares map[uint64]map[string]bool
}

func (l *leavings) note(w *world, data []byte) {
	s, err := splitwire.VerifyShare(data, w.helperKey)
	if err != nil || s.Refusal != split.None {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shares == nil {
		l.shares = map[uint64]map[string]bool{}
	}
	if l.shares[s.X.Round] == nil {
		l.shares[s.X.Round] = map[string]bool{}
	}
	l.shares[s.X.Round][string(data)] = true
}

// audit: nothing but one Share a round leaves.
func (l *leavings) audit(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, all := range l.shares {
		if len(all) != 1 {
			t.Errorf("%d Shares of round %d left", len(all), r)
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
	err = m.call("put", subject, func() (err error) { r, err = m.Records.PutOnce(ctx, subject, data); return err })
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

func (m *mortal) Join(task stream.Hash, process split.Instance) error {
	return m.call("folder join", "", func() error { return m.Folder.Join(task, process) })
}

func (m *mortal) Mark(task stream.Hash) (out split.HelperMark, joined bool, err error) {
	err = m.call("folder mark", "", func() (err error) { out, joined, err = m.Folder.Mark(task); return err })
	return out, joined, err
}

func (m *mortal) Release(x split.Attempt, signed []byte) (out split.HelperMark, err error) {
	err = m.call("folder release", "", func() (err error) { out, err = m.Folder.Release(x, signed); return err })
	return out, err
}

func (m *mortal) ServeExchange(ctx context.Context, task stream.Task, take func(string, []byte, func([]byte))) error {
	return m.call("serve", "", func() error {
		return m.ExchangeServer.ServeExchange(ctx, task, func(subject string, message []byte, reply func([]byte)) {
			_ = m.call("take", "", func() error {
				take(subject, message, func(answer []byte) {
					_ = m.call("reply", "", func() error { reply(answer); return nil })
				})
				return nil
			})
		})
	})
}

// lives runs a helper that dies at a call, and the next one that does not. It returns the trace of the first life.
func lives(t *testing.T, at string, after bool) (trace []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		left := new(leavings)
		var last *process
		life := func(at string) (dies <-chan struct{}, m *mortal) {
			dead := make(chan struct{})
			m = &mortal{at: at, after: after, times: map[string]int{}, die: sync.OnceFunc(func() { close(dead) }), left: left}
			last = w.start(t.Context(), func(c *Config) {
				m.Records, m.ExchangeServer, m.Folder = c.Records, watched{c.Exchange, w, left}, c.Folder
				c.Records, c.Exchange, c.Folder = recorded{m, w, left}, m, m
			})
			return dead, m
		}
		dies, first := life(at)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var driver sync.WaitGroup
		driver.Go(func() {
			for r := uint64(1); r <= 2; r++ {
				w.announce(ctx, r)
				got, _, err := w.runs(ctx, r)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%q (%t): round %d: %v", at, after, r, err)
					}
					return
				}
				w.checkTotals(got)
			}
			w.end(ctx, 2)
		})
		time.Sleep(time.Minute)
		select {
		case <-dies:
			_ = last.stop()
			life("")
			time.Sleep(3 * time.Minute)
		default:
		}
		for r := uint64(1); r <= 2; r++ {
			if s := w.shareOf(r); s == nil || s.Refusal != split.None {
				t.Errorf("%q (%t): the Share of round %d is %v", at, after, r, s)
			}
		}
		cancel()
		driver.Wait()
		if err := last.stop(); err != nil {
			t.Errorf("%q (%t): %v", at, after, err)
		}
		left.audit(t)
		trace = first.trace
	})
	return trace
}

// recorded notes the Shares that are put, watched those that are sent.
type recorded struct {
	stream.Records
	w    *world
	left *leavings
}

func (r recorded) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	r.left.note(r.w, data)
	return r.Records.PutOnce(ctx, subject, data)
}

type watched struct {
	stream.ExchangeServer
	w    *world
	left *leavings
}

func (s watched) ServeExchange(ctx context.Context, task stream.Task, take func(string, []byte, func([]byte))) error {
	return s.ExchangeServer.ServeExchange(ctx, task, func(subject string, message []byte, reply func([]byte)) {
		take(subject, message, func(answer []byte) {
			s.left.note(s.w, answer)
			reply(answer)
		})
	})
}

// TestRestartAtAnyCall: whichever call the helper dies at, before it or after, the next process goes on with the folder:
// each round is released once, with each user in it once, and one Share of it ever leaves. No round is lost.
func TestRestartAtAnyCall(t *testing.T) {
	trace := lives(t, "", false)
	if len(trace) < 40 {
		t.Fatalf("%d calls alone: %v", len(trace), trace)
	}
	all := longtest.Run(t, "deaths at reads that were made before, and at other calls that were made twice before")
	for _, at := range trace {
		_, number, _ := strings.Cut(at, "#")
		most := 2
		if strings.HasPrefix(at, "get ") || strings.HasPrefix(at, "latest ") {
			most = 1
		}
		if times, _ := strconv.Atoi(number); times > most && !all {
			continue
		}
		for _, after := range []bool{false, true} {
			lives(t, at, after)
		}
	}
}

// TestExchangeThatLoses: lost, doubled and late messages and replies change nothing except the time.
func TestExchangeThatLoses(t *testing.T) {
	for seed := range longtest.Seeds(t, uint64(8)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 6)
			left := new(leavings)
			p := w.start(t.Context(), func(c *Config) {
				c.Exchange, c.Records = watched{c.Exchange, w, left}, recorded{c.Records, w, left}
			})
			random := memory.Random(seed, memory.Rates{Lost: .2, Duplicate: .2, Lag: .2})
			w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
				if op == memory.Exchange || op == memory.Answer {
					return random(op, subject)
				}
				return memory.None
			})
			for r := uint64(1); r <= 3; r++ {
				w.announce(t.Context(), r)
				got, a, err := w.runs(t.Context(), r)
				if err != nil || a != 1 {
					t.Fatalf("seed %d, round %d, attempt %d: %v", seed, r, a, err)
				}
				w.checkTotals(got)
			}
			time.Sleep(10 * time.Second)
			left.audit(t)
			if err := p.stop(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// TestBrokerThatLoses: the same of all that the broker does.
func TestBrokerThatLoses(t *testing.T) {
	for seed := range longtest.Seeds(t, uint64(8)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 4)
			left := new(leavings)
			p := w.start(t.Context(), func(c *Config) {
				c.Exchange, c.Records = watched{c.Exchange, w, left}, recorded{c.Records, w, left}
			})
			w.broker.Inject(memory.Random(seed, memory.Rates{Lost: .1, LostAck: .1, Duplicate: .1, Lag: .1}))
			for r := uint64(1); r <= 2; r++ {
				w.announce(t.Context(), r)
				got, _, err := w.runs(t.Context(), r)
				if err != nil {
					t.Fatalf("seed %d, round %d: %v", seed, r, err)
				}
				w.checkTotals(got)
			}
			w.broker.Inject(nil)
			time.Sleep(30 * time.Second)
			left.audit(t)
			if w.shareOf(2) == nil {
				t.Errorf("seed %d: no Share of round 2", seed)
			}
			_ = p.stop()
		})
	}
}
