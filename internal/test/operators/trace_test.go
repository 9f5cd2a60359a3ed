package operators

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A play is a situation of both operators whose trace is kept in testdata: what each of them put, sent, answered and
// wrote to its folder, in its own order. The two traces follow one another, without times: which of the two is first at
// something is the machine's. Lines with a bar are what the test does. Pings and their answers are left out, and what
// is said again at once is said once.
type play struct {
	*world
	ctx   context.Context
	mu    sync.Mutex
	lines map[string][]string
}

const (
	leads = "leader: "
	helps = "helper: "
)

func (p *play) say(who, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = strings.ReplaceAll(text, "panlearn."+string(p.name)+".", "")
	if all := p.lines[who]; strings.HasSuffix(text, "ping") || strings.HasSuffix(text, "pong") || len(all) > 0 && all[len(all)-1] == text {
		return
	}
	p.lines[who] = append(p.lines[who], text)
}

// does writes into both traces what the test does, does it, and waits.
func (p *play) does(what string, wait time.Duration, f func()) {
	for _, who := range []string{leads, helps} {
		p.say(who, "| "+what)
	}
	f()
	time.Sleep(wait)
	synctest.Wait()
}

func (p *play) listens(who string) *trap {
	return &trap{heard: func(told string) { p.say(who, told) }}
}

// reports sends reports of users from one number on to an attempt of round 1.
func (p *play) reports(a stream.Attempt, from, n int) {
	p.does(fmt.Sprintf("users report to attempt %d: %d", a, n), 3*time.Second, func() {
		o := p.opening(1, 1, a)
		if o == nil {
			p.t.Fatalf("attempt %d is not open", a)
		}
		for _, u := range p.users(p.cohort)[from : from+n] {
			p.send(p.ctx, o.x, p.report(o, []user{u}, nil))
		}
	})
}

// verb names a message of the exchange.
func verb(message []byte) string {
	var s wire.Signed
	var e wire.Exchange
	switch {
	case splitwire.IsShare(message):
		return "share"
	case stream.Unmarshal(message, &s) != nil || stream.Unmarshal(s.Body, &e) != nil:
		return "something else"
	}
	return strings.ToLower(strings.TrimPrefix(e.Verb.String(), "VERB_"))
}

// content describes the decision in a record.
func content(data []byte) string {
	var s wire.Signed
	var b wire.Batch
	if stream.Unmarshal(data, &s) != nil || s.Kind != stream.KindOf(&b) || stream.Unmarshal(s.Body, &b) != nil {
		return ""
	}
	if b.Void {
		return ", void: " + b.Reason
	}
	return fmt.Sprintf(", attempt %d, %d users", b.Attempt, b.Users)
}

func outcome(done bool, err error) string {
	switch {
	case err != nil:
		return ": fails"
	case !done:
		return ": another stands"
	}
	return ""
}

// plays are the situations. Each ends with both operators stopped.
var plays = map[string]func(p *play){
	"a round": func(p *play) {
		leader, helper := p.trapLeader(p.ctx, p.listens(leads)), p.trapHelper(p.ctx, p.listens(helps))
		time.Sleep(3 * time.Second)
		p.reports(1, 0, 3)
		p.ends(leader, helper)
	},
	"the helper joins late": func(p *play) {
		leader := p.trapLeader(p.ctx, p.listens(leads))
		time.Sleep(time.Minute)
		var helper *process
		p.does("a helper begins", 3*time.Second, func() { helper = p.trapHelper(p.ctx, p.listens(helps)) })
		p.reports(1, 0, 3)
		p.ends(leader, helper)
	},
	"the helper dies between join and finish": func(p *play) {
		leader, helper := p.trapLeader(p.ctx, p.listens(leads)), p.trapHelper(p.ctx, p.listens(helps))
		time.Sleep(3 * time.Second)
		p.reports(1, 0, 2)
		p.does("the helper ends, and begins again", 10*time.Second, func() {
			_ = helper.stop()
			helper = p.trapHelper(p.ctx, p.listens(helps))
		})
		p.reports(2, 0, 3)
		p.ends(leader, helper)
	},
	"the deadline passes under the minimum": func(p *play) {
		leader, helper := p.trapLeader(p.ctx, p.listens(leads)), p.trapHelper(p.ctx, p.listens(helps))
		time.Sleep(3 * time.Second)
		p.reports(1, 0, 1)
		p.does("a minute goes by", time.Minute, func() {})
		p.reports(1, 1, 1)
		p.does("a minute goes by", time.Minute, func() {})
		p.ends(leader, helper)
	},
	"a leader begins again with a prepared share": func(p *play) {
		dies := p.listens(leads)
		leader, helper := p.trapLeader(p.ctx, dies), p.trapHelper(p.ctx, p.listens(helps))
		time.Sleep(3 * time.Second)
		dies.mu.Lock()
		dies.heard = func(told string) {
			p.say(leads, told)
			if told == "prepare" {
				dies.fatal = "send" // the finish
			}
		}
		dies.mu.Unlock()
		p.reports(1, 0, 3)
		_ = leader.stop()
		p.does("the leader has died before it sent finish, and begins again", 20*time.Second, func() {
			leader = p.trapLeader(p.ctx, p.listens(leads))
		})
		p.ends(leader, helper)
	},
	"the helper refuses the round": func(p *play) {
		h, leader := p.trapHelper(p.ctx, p.listens(helps)), p.trapLeader(p.ctx, p.listens(leads))
		time.Sleep(3 * time.Second)
		p.does("the leader ends, and a copy of the helper's machine refuses the round", 0, func() {
			_ = leader.stop()
			o := p.opening(1, 1, 1)
			id, err := seal.LoadIdentity(filepath.Join(p.helperDir, "identity.pem"))
			p.must(err)
			data, err := splitwire.SignShare(id, split.Share{X: o.x, Refusal: split.Marked})
			p.must(err)
			p.put(p.ctx, p.name.Share(1), data)
		})
		p.does("the leader begins again", 20*time.Second, func() { leader = p.trapLeader(p.ctx, p.listens(leads)) })
		p.ends(leader, h)
	},
}

func (p *play) ends(all ...*process) {
	for _, one := range all {
		_ = one.stop()
	}
}

// TestTraces plays each situation, and compares what both operators did with its trace.
func TestTraces(t *testing.T) {
	const dir = "testdata/traces"
	golden.Count(t, dir, len(plays))
	for name, acts := range plays {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w := newWorld(t, plan{rounds: 1, cohort: 3, minimum: 2, deadline: 20 * time.Second})
				p := &play{world: w, ctx: ctx, lines: map[string][]string{}}
				var all sync.WaitGroup
				all.Go(func() { w.learn(ctx) })
				acts(p)
				cancel()
				all.Wait()
				var trace golden.Trace
				for who, lines := range p.lines {
					for _, l := range lines {
						trace.Say(who, l)
					}
				}
				trace.Compare(t, dir, name)
			})
		})
	}
}
