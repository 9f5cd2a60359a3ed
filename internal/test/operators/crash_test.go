package operators

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

// errDead is returned by every call of a process that has died.
var errDead = errors.New("the process is dead")

// A trap ends a process at one of its calls: before it is made, or after it, so that its outcome is lost. A process that
// was stopped instead goes on with that call when it is continued, a while later.
type trap struct {
	mu    sync.Mutex
	calls int
	at    int // 0: never
	after bool
	stop  time.Duration // 0: it dies
	die   func()
	dead  bool
	name  string // of the call that was trapped

	fatal string            // the call at which it dies first, by name; empty: none
	heard func(told string) // called with each call that writes, and its result; nil: not called
}

// tell reports a call to the test, unless the process is dead.
func (t *trap) tell(told string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard != nil && !t.dead {
		t.heard(told)
	}
}

// locked are the calls during which the helper holds a lock. A process suspended in one of them would block the others
// in a way that a bubble of synctest does not detect.
var locked = map[string]bool{"reply": true, "release": true, "mark": true, "join": true}

// call makes one call, unless the process is dead.
func (t *trap) call(name string, do func() error) error {
	t.mu.Lock()
	t.calls++
	if t.dead {
		t.mu.Unlock()
		return errDead
	}
	hit := t.calls == t.at && !(t.stop > 0 && locked[name]) || name == t.fatal
	if hit {
		t.name, t.dead = name, t.stop == 0
	}
	t.mu.Unlock()
	if !hit {
		return do()
	}
	if t.stop > 0 {
		if t.after {
			err := do()
			time.Sleep(t.stop)
			return err
		}
		time.Sleep(t.stop)
		return do()
	}
	if t.after {
		_ = do()
	}
	t.die()
	return errDead
}

// trapped are the ports and the folder of one process of either operator.
type trapped struct {
	stream.Records
	stream.ExchangeAsker
	stream.ExchangeServer
	leader stage.Folder
	helper helper.Folder
	*trap
}

func (p *trapped) PutOnce(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	err = p.call("put "+subject, func() error { r, err = p.Records.PutOnce(ctx, subject, data); return err })
	p.tell("put " + subject + content(data) + outcome(r.Ours, err))
	return r, err
}

func (p *trapped) Get(ctx context.Context, subject string) (m stream.Message, err error) {
	err = p.call("get "+subject, func() error { m, err = p.Records.Get(ctx, subject); return err })
	return m, err
}

func (p *trapped) Latest(ctx context.Context, pattern string) (m stream.Message, err error) {
	err = p.call("latest "+pattern, func() error { m, err = p.Records.Latest(ctx, pattern); return err })
	return m, err
}

func (p *trapped) Swap(ctx context.Context, subject string, expected uint64, data []byte) (n uint64, err error) {
	err = p.call("swap "+subject, func() error { n, err = p.Records.Swap(ctx, subject, expected, data); return err })
	return n, err
}

func (p *trapped) Exchange(ctx context.Context, subject string, receive func([]byte)) (func([]byte) error, error) {
	send, err := p.ExchangeAsker.Exchange(ctx, subject, receive)
	if err != nil {
		return nil, err
	}
	return func(m []byte) error {
		err := p.call("send", func() error { return send(m) })
		if err == nil {
			p.tell("send " + verb(m))
		}
		return err
	}, nil
}

func (p *trapped) ServeExchange(ctx context.Context, task stream.Task, take func(string, []byte, func([]byte))) error {
	return p.ExchangeServer.ServeExchange(ctx, task, func(subject string, m []byte, reply func([]byte)) {
		take(subject, m, func(answer []byte) {
			if p.call("reply", func() error { reply(answer); return nil }) == nil {
				p.tell("answer " + verb(answer))
			}
		})
	})
}

// leaderFolder and helperFolder are the folders of a trapped process.
type leaderFolder struct{ *trapped }

func (f leaderFolder) Find(task stream.Hash) (out stage.Found, err error) {
	err = f.call("find", func() error { out, err = f.leader.Find(task); return err })
	return out, err
}

func (f leaderFolder) Begin(task stream.Hash) error {
	return f.call("begin", func() error { return f.leader.Begin(task) })
}

func (f leaderFolder) Prepare(task stream.Hash, p split.Prepared) (ok bool, err error) {
	err = f.call("prepare", func() error { ok, err = f.leader.Prepare(task, p); return err })
	f.tell("prepare" + outcome(ok, err))
	return ok, err
}

func (f leaderFolder) Release(task stream.Hash, x split.Attempt, signed []byte) (ok bool, err error) {
	err = f.call("release", func() error { ok, err = f.leader.Release(task, x, signed); return err })
	f.tell("release" + outcome(ok, err))
	return ok, err
}

func (f leaderFolder) Drop(task stream.Hash, x split.Attempt) (ok bool, err error) {
	err = f.call("drop", func() error { ok, err = f.leader.Drop(task, x); return err })
	f.tell("drop" + outcome(ok, err))
	return ok, err
}

type helperFolder struct{ *trapped }

func (f helperFolder) Mark(task stream.Hash) (m split.HelperMark, joined bool, err error) {
	err = f.call("mark", func() error { m, joined, err = f.helper.Mark(task); return err })
	return m, joined, err
}

func (f helperFolder) Join(task stream.Hash, process split.Instance) error {
	return f.call("join", func() error { return f.helper.Join(task, process) })
}

func (f helperFolder) Knows(process split.Instance) bool { return f.helper.Knows(process) }

func (f helperFolder) Release(x split.Attempt, signed []byte) (m split.HelperMark, err error) {
	err = f.call("release", func() error { m, err = f.helper.Release(x, signed); return err })
	f.tell("release" + outcome(m.X == x, err))
	return m, err
}

// trapLeader and trapHelper start a process whose calls the trap counts.
func (w *world) trapLeader(ctx context.Context, t *trap) *process {
	ctx, t.die = context.WithCancel(ctx)
	return w.lead(ctx, func(c *stage.Config) {
		p := &trapped{Records: c.Records, ExchangeAsker: c.Leader.Exchange, leader: c.Leader.Folder, trap: t}
		c.Records, c.Leader.Exchange, c.Leader.Folder = p, p, leaderFolder{p}
	})
}

func (w *world) trapHelper(ctx context.Context, t *trap) *process {
	ctx, t.die = context.WithCancel(ctx)
	return w.help(ctx, func(c *helper.Config) {
		p := &trapped{Records: c.Records, ExchangeServer: c.Exchange, helper: c.Folder, trap: t}
		c.Records, c.Exchange, c.Folder = p, p, helperFolder{p}
	})
}

// crash runs two rounds in which one operator dies, or is suspended, at its at-th call; then it is started again. It
// returns the name of the call, empty where there were fewer.
func crash(t *testing.T, role string, at int, after bool, still time.Duration) (name string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 3, grants: role == "leader"}) // whose calls are more with tokens
		one := &trap{at: at, after: after, stop: still}
		leader, helper := start(t.Context(), nothing), start(t.Context(), nothing)
		if role == "leader" {
			leader, helper = w.trapLeader(t.Context(), one), w.help(t.Context(), nil)
		} else {
			leader, helper = w.lead(t.Context(), nil), w.trapHelper(t.Context(), one)
		}
		w.runs(t.Context(), func(ctx context.Context) {
			dead := leader.done
			if role == "helper" {
				dead = helper.done
			}
			select {
			case <-ctx.Done():
				return
			case <-dead:
			}
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				return
			}
			if role == "leader" {
				leader = w.lead(t.Context(), nil)
			} else {
				helper = w.help(t.Context(), nil)
			}
		})
		_, _ = leader.stop(), helper.stop()
		if name = one.name; t.Failed() {
			t.Logf("%s, call %d: %s, after %t, still %v", role, at, name, after, still)
		}
	})
	return name
}

func nothing(context.Context) error { return nil }

// TestCrashes: each operator dies before and after each of its calls, or is suspended there for longer than a lease and
// goes on; no round is void, and nobody is counted twice.
func TestCrashes(t *testing.T) {
	step := 5
	if longtest.Run(t, "a crash at every call of both operators, not at every fifth") {
		step = 1
	}
	for _, role := range []string{"helper", "leader"} {
		seen := 0
		for at := 1; ; at += step {
			name := ""
			for _, how := range []struct {
				after bool
				still time.Duration
			}{{}, {after: true}, {still: 3 * lease}, {after: true, still: 3 * lease}} {
				if trapped := crash(t, role, at, how.after, how.still); trapped != "" {
					name = trapped
				}
			}
			if name == "" {
				break
			}
			seen++
		}
		if seen < 30/step {
			t.Errorf("%s: %d calls, want more", role, seen)
		}
		t.Logf("%s: %d calls", role, seen)
	}
}
