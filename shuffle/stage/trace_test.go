package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A scene is a situation whose trace is kept in testdata: processes of a stage, and a test that plays learner, users
// and broker. Lines with a bar are what the test does, those with an arrow phases that begin; the others are a phase's
// effects and their results, calls of the observer, and log lines. A line that comes again in its phase is counted.
// Waits and fetches that brought nothing are left out. Waits are the same in every run.
type scene struct {
	*world
	ctx     context.Context
	trace   golden.Trace
	marks   *memoryMarks
	lives   uint64
	running []*process
	adapt   func(*Config) // nil: processes are configured as the world says
}

func newScene(t *testing.T, p plan) *scene { return newWorld(t, p).scene() }

// scene returns a scene in a world.
func (w *world) scene() *scene { return &scene{world: w, ctx: w.t.Context(), marks: &memoryMarks{}} }

// does records what the test does next, does it, and waits.
func (s *scene) does(what string, wait time.Duration, f func()) {
	s.trace.Part("", "| "+what)
	f()
	time.Sleep(wait + 7*time.Millisecond) // so that nothing that it does falls together with a poll
	synctest.Wait()
}

// waits lets time go by.
func (s *scene) waits(d time.Duration) { s.does(fmt.Sprintf("%v go by", d), d, func() {}) }

// announces puts the task, where it is not there, and a round of the step of its number.
func (s *scene) announces(r stream.Round) {
	s.does(fmt.Sprintf("the learner announces round %d", r), 3*time.Second, func() {
		s.put(s.ctx, s.name.Task(), s.sign(s.learner, s.task))
		time.Sleep(100 * time.Millisecond)
		s.put(s.ctx, s.name.Round(r), s.sign(s.learner, s.round(r, uint64(r))))
	})
}

func (s *scene) ends(last stream.Round) {
	s.does(fmt.Sprintf("the learner ends the task after round %d", last), 30*time.Second, func() { s.end(s.ctx, last) })
}

// answers sends the reports of the users from one number on, to the newest attempt at a round, one after the other.
func (s *scene) answers(r stream.Round, from, n int) {
	s.does(fmt.Sprintf("users report to round %d: %d", r, n), 3*time.Second, func() {
		in := s.invited(s.ctx, r, 0)
		for _, u := range s.users(r)[from : from+n] {
			s.answer(s.ctx, in, []uint64{u})
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// puts puts a record that another life of the stage has signed.
func (s *scene) puts(what, subject string, m proto.Message) {
	s.does(what, time.Second, func() { s.put(s.ctx, subject, s.sign(s.stage, m)) })
}

// fails has the broker answer operations on subjects of a verb with a fault; without a fault it is well again.
func (s *scene) fails(what string, op memory.Op, verb string, f memory.Fault) {
	s.does(what, 0, func() {
		s.broker.Inject(func(o memory.Op, subject string) memory.Fault {
			if a, _ := stream.ParseSubject(subject); o == op && (verb == "" || a.Verb == verb) {
				return f
			}
			return memory.None
		})
	})
}

// A process is a life of the stage in a scene, and its connection.
type process struct {
	stream.Records
	stream.ReportReader
	s     *scene
	who   string
	stop  func()
	over  chan struct{}
	dead  atomic.Bool
	dies  string // the call at which it dies, and whether the broker did it
	after bool
	phase string
	users uint64
}

// begins starts a process, under a name where it is not the only one. It waits a second, so that it has the lease.
func (s *scene) begins(who string) *process {
	p := &process{s: s, over: make(chan struct{})}
	if who != "" {
		p.who = who + ": "
	}
	s.does(strings.TrimSpace("a stage begins "+who), time.Second, func() { p.run() })
	return p
}

// beginsTo starts a process that dies at a call, before or after the broker does it.
func (s *scene) beginsTo(die string, after bool) *process {
	p := &process{s: s, over: make(chan struct{}), dies: die, after: after}
	s.does("a stage begins", time.Second, func() { p.run() })
	return p
}

func (p *process) run() {
	s := p.s
	s.lives++
	s.running = append(s.running, p)
	c := s.config()
	p.Records, p.ReportReader = c.Records, c.Reports
	c.Records, c.Reports, c.Marks = p, p, s.marks
	c.Workers = 1
	c.Logger = golden.LogLines(func(line string) { p.say(line) })
	c.Observer = Observer{
		Report:  func(r Reason) { p.say("tell report: " + r.String()) },
		Dropped: func(r stream.Round, a stream.Attempt) { p.say(fmt.Sprintf("tell dropped %d.%d", r, a)) },
		Voided:  func(r stream.Round) { p.say(fmt.Sprintf("tell voided %d", r)) },
		Failed:  func(call string) { p.say("tell failed: " + call) },
		Released: func(r stream.Round, users uint64, _ time.Duration) {
			p.say(fmt.Sprintf("tell released %d: %d users", r, users))
		},
	}
	if s.adapt != nil {
		s.adapt(&c)
	}
	st := s.new(c)
	st.jitter = rand.New(rand.NewPCG(s.lives, 0))
	st.do = func(ctx context.Context, e effects) (result, error) {
		p.enters(st.Status().Phase)
		r, err := st.perform(ctx, e)
		p.did(e, r, err)
		return r, err
	}
	ctx, stop := context.WithCancel(s.ctx)
	p.stop = stop
	go func() {
		defer close(p.over)
		err := st.Run(ctx)
		if !p.dead.Load() {
			p.say(fmt.Sprintf("Run returns: %v", err))
		}
	}()
}

// ends asks a process to stop, and waits until it has.
func (p *process) ends() {
	p.s.does(strings.TrimSpace("the stage is asked to stop "+strings.TrimSuffix(p.who, ": ")), 0, func() { p.stop(); <-p.over })
}

// falls ends a process without its saying so.
func (p *process) falls() {
	p.s.does(strings.TrimSpace("the stage is killed "+strings.TrimSuffix(p.who, ": ")), 0, func() { p.die(); <-p.over })
}

func (p *process) die() {
	p.dead.Store(true)
	p.stop()
}

// say writes a line, or counts it where its phase has said it before.
func (p *process) say(text string) {
	if !p.dead.Load() {
		p.s.trace.Count(p.who, text)
	}
}

// enters notes which phase the process is in.
func (p *process) enters(phase string) {
	if phase != p.phase && !p.dead.Load() {
		p.phase, p.users = phase, 0
		p.s.trace.Part(p.who, "-> "+phase)
	}
}

// did writes what a phase wanted, and what came of it.
func (p *process) did(did effects, r result, err error) {
	switch {
	case err != nil:
		p.say(p.wanted(did) + ": " + err.Error())
	case did.call == collect:
		if users := did.attempt.mixer.Users(); users != p.users {
			p.users = users
			p.say(fmt.Sprintf("fetch: %d of %d users", users, did.attempt.round.mixer.Cohort))
		}
	case did.call != wait:
		p.say(p.wanted(did) + ": " + p.came(did, r))
	}
}

func (p *process) short(subject string) string {
	return strings.TrimPrefix(subject, "panlearn."+string(p.s.name)+".")
}

// wanted describes an effect, without drawn values.
func (p *process) wanted(e effects) string {
	switch e.call {
	case get:
		return "read " + p.short(e.subject)
	case latest:
		return "read the newest of " + p.short(e.subject)
	case queued:
		return "look at the queue"
	case purge:
		return fmt.Sprintf("purge reports below %d", e.before)
	case marked:
		return "read the marks"
	case mark:
		return fmt.Sprintf("mark round %d", e.round)
	case put:
		return "put " + p.short(e.subject) + p.content(e)
	}
	return e.call.String()
}

// content describes the decision in a record that is put.
func (p *process) content(e effects) (text string) {
	a, err := stream.ParseSubject(e.subject)
	must(p.s.t, err)
	body := func(m proto.Message) {
		_, err := seal.Verify(e.data, p.s.stage.Public(), m)
		must(p.s.t, err)
	}
	switch a.Verb {
	case "open":
		var o wire.Open
		body(&o)
		ramp := stream.RampOf(o.JoinProbability, o.JoinDoublingMs)
		if text = ", asking all"; o.JoinProbability != 0 {
			text = fmt.Sprintf(", asking %.3g and twice as many each %v", ramp.Share(0), ramp.Doubling)
		}
		if o.PlacesMs > 0 {
			text += fmt.Sprintf(", places for %v", time.Duration(o.PlacesMs)*time.Millisecond)
		}
	case "batch":
		var b wire.Batch
		body(&b)
		if b.Void {
			return ", void: " + b.Reason
		}
		text = fmt.Sprintf(", %d users, cutoff %d", b.Users, b.Cutoff)
		for _, r := range b.Rejects {
			text += fmt.Sprintf(", %d %s", r.Count, r.Reason)
		}
	case "close":
		var c wire.Close
		body(&c)
		if c.Void {
			return ", void"
		}
		text = fmt.Sprintf(", cutoff %d", c.Cutoff)
	}
	return text
}

// came describes the result of an effect.
func (p *process) came(did effects, r result) string {
	switch did.call {
	case get, latest:
		if r.message == nil {
			return "no"
		}
		if did.call == latest {
			return p.short(r.message.Subject)
		}
		return "yes"
	case put:
		if r.put.Ours {
			return "stands"
		}
		return "another's stands"
	case queued:
		if r.queue == nil {
			return "not known"
		}
		return fmt.Sprintf("%d messages", r.queue.Messages)
	case marked:
		return fmt.Sprintf("round %d", r.marked)
	case mark:
		if !r.ours {
			return "another's stands"
		}
	}
	return "done"
}

// reaches returns an error once the process is dead, and dies where it is to.
func (p *process) reaches(call string) (before, after func() error) {
	fail := func() error {
		if p.dead.Load() {
			return errCrash
		}
		return nil
	}
	if call != p.dies || p.dead.Load() {
		return fail, fail
	}
	die := func() error {
		how := ", which the broker did not get"
		if p.after {
			how = ", which the broker did"
		}
		p.s.trace.Say(p.who, "dies at: "+call+how)
		p.die()
		return errCrash
	}
	if p.after {
		return fail, die
	}
	return die, fail
}

func (p *process) PutOnce(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	before, after := p.reaches("put " + p.short(subject))
	if err = before(); err != nil {
		return r, err
	}
	r, err = p.Records.PutOnce(ctx, subject, data)
	return r, errors.Join(err, after())
}

func (p *process) Get(ctx context.Context, subject string) (m stream.Message, err error) {
	if p.dead.Load() {
		return m, errCrash
	}
	m, err = p.Records.Get(ctx, subject)
	if subject == p.s.name.Lease() {
		p.say("look at the lease: " + p.holder(m, err))
	}
	return m, err
}

// holder returns the name of the process that holds a record's lease.
func (p *process) holder(m stream.Message, err error) string {
	l, broken := stream.ParseLease(m.Data)
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return "nobody's"
	case err != nil:
		return err.Error()
	case broken != nil:
		return broken.Error()
	case l.TTL == 0:
		return fmt.Sprintf("given up, round %d", l.Newest)
	}
	return fmt.Sprintf("for %v, round %d", l.TTL, l.Newest)
}

func (p *process) Latest(ctx context.Context, pattern string) (m stream.Message, err error) {
	if p.dead.Load() {
		return m, errCrash
	}
	return p.Records.Latest(ctx, pattern)
}

func (p *process) Swap(ctx context.Context, subject string, expected uint64, data []byte) (n uint64, err error) {
	if p.dead.Load() {
		return 0, errCrash
	}
	n, err = p.Records.Swap(ctx, subject, expected, data)
	came := "stands"
	switch {
	case errors.Is(err, stream.ErrConflict):
		came = "another's stands"
	case err != nil:
		came = err.Error()
	}
	p.say("write the lease " + p.holder(stream.Message{Data: data}, nil) + ": " + came)
	return n, err
}

func (p *process) Fetch(ctx context.Context, most int, wait time.Duration) ([]stream.Delivery, error) {
	if p.dead.Load() {
		return nil, errCrash
	}
	all, err := p.ReportReader.Fetch(ctx, most, wait)
	for i := range all {
		ack := all[i].Ack
		all[i].Ack = func() error { p.say("acknowledge"); return ack() }
	}
	return all, err
}

// TestTraces plays each situation and compares what the stage decided, in which order and when, with its trace.
func TestTraces(t *testing.T) {
	const dir = "testdata/traces"
	golden.Count(t, dir, len(scenes))
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t)
				for _, p := range s.running {
					p.stop()
					<-p.over
				}
				s.trace.Compare(t, dir, name)
			})
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
