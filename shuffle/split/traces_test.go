package split

import (
	"fmt"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
)

// A trace is a world that records its inputs and outputs. Every line is checked against testdata/traces/exchange.txt;
// go test -run TestTraces -update writes that file.
type trace struct {
	*world
	out    *strings.Builder
	mark   HelperMark
	marks  LeaderMarks
	ending *Ending
}

func (t *trace) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// users gives the leader one bundle of n users.
func (t *trace) give(n int) {
	var counts [][]uint32
	for range n {
		counts = append(counts, t.counts())
	}
	t.say("leader takes a bundle: %v", t.world.give(t.message(counts...)))
}

func (t *trace) cut() Request {
	r, ok := t.leader.Cut()
	if !ok {
		t.say("leader has no request")
		return r
	}
	t.sends(r)
	return r
}

func (t *trace) sends(r Request) {
	t.say("leader sends request %d, base %d, of %d users: %x", r.N, r.Base, r.users(), short(r.digest()))
}

// again has the leader send what it has no reply to.
func (t *trace) again() (all []Request) {
	for _, r := range t.leader.Unreplied() {
		t.sends(r)
		all = append(all, r)
	}
	return all
}

func short(h Hash) []byte { return h[:4] }

// answer writes down an answer of the helper.
func (t *trace) answer(a Answer) Answer {
	switch {
	case a.Reply != nil:
		t.reply(*a.Reply)
	case a.Pong != nil:
		t.say("  helper holds or released it, wants the share of round %d", a.Pong.Show)
	case a.Gone != nil:
		t.say("  helper: gone, marked %d", a.Gone.Marked)
	case a.Differs != nil:
		t.say("  helper: differs")
	case a.Commit != nil:
		t.say("  helper asks its folder for the mark: %d requests, %d users, chain %x", a.Commit.Requests, a.Commit.Users, short(a.Commit.Chain))
	case a.Signed != nil:
		s, err := readSigned(a.Signed)
		t.must(err)
		t.say("  helper sends its share of round %d attempt %d: %d users", s.X.Round, s.X.Number, s.Users)
	default:
		t.say("  helper is silent")
	}
	return a
}

func (t *trace) reply(r Reply) {
	t.say("  helper replies %d: %v, chain %x", r.N, r.Outcomes, short(r.Chain))
}

// hears brings requests to the helper, which works on them in order; it returns all replies.
func (t *trace) hears(requests ...Request) (all []Reply) {
	for _, r := range requests {
		t.say("helper hears request %d, base %d", r.N, r.Base)
		if a := t.answer(t.desk.Request(r)); a.Reply != nil {
			all = append(all, *a.Reply)
		}
		for {
			jobs, ok := t.helper.Work()
			if !ok {
				break
			}
			for _, job := range jobs {
				job.Run(t.workers[helper])
			}
			reply, err := t.helper.Decide()
			t.must(err)
			t.reply(reply)
			all = append(all, reply)
		}
	}
	return all
}

// learns brings replies to the leader.
func (t *trace) learns(replies ...Reply) {
	for _, r := range replies {
		decided, err := t.leader.Handle(r)
		t.say("leader hears reply %d: %d decided, %d counted, %d unanswered, %v", r.N, len(decided), t.leader.Users(),
			t.leader.Unanswered(), err)
	}
}

func (t *trace) prepare() {
	p, err := t.leader.Prepare(Entropy{Fresh: [32]byte{1}}, Note{Cutoff: 9})
	t.must(err)
	t.ending = NewEnding(p)
	t.step()
	var ok bool
	t.marks, ok = t.marks.Prepare(p.X())
	t.ending.Stored(ok)
	t.step()
}

func (t *trace) step() { t.say("leader's end: %v", t.ending.Step()) }

func (t *trace) finishes() Answer {
	f := t.ending.Finish()
	t.say("helper hears finish: %d requests, %d users, chain %x", f.Requests, f.Users, short(f.Chain))
	return t.answer(t.desk.Finish(f, Entropy{Fresh: [32]byte{2}}))
}

// stores stores the helper's mark and passes it to the helper.
func (t *trace) stores(s Share) Answer {
	t.mark, _ = t.mark.Release(s.X, signed(s))
	return t.answer(t.desk.Committed(t.mark))
}

// restart starts the helper again from its folder.
func (t *trace) restart() {
	t.say("helper starts again, its mark is of round %d", t.mark.X.Round)
	t.desk = NewDesk(Instance{99}, t.mark)
}

func (t *trace) share(signed []byte, from string) {
	s, err := readSigned(signed)
	t.must(err)
	t.ending.Share(s, signed)
	t.say("leader hears a share from the %s", from)
	t.step()
}

func (t *trace) batch() {
	var ok bool
	t.marks, ok = t.marks.Release(t.ending.Prepared().X())
	t.ending.Released(ok)
	t.step()
	r, err := t.ending.Release(t.cfg.Params)
	t.must(err)
	t.say("released: %d users, %d trials, %v", r.Users, r.NoiseTrials, r.Totals)
}

// full has two requests of two users, all counted.
func (t *trace) full() {
	for range 2 {
		t.give(2)
		t.learns(t.hears(t.cut())...)
	}
}

var traces = []struct {
	name string
	play func(t *trace)
}{
	{"nothing goes wrong", func(t *trace) {
		t.full()
		t.prepare()
		a := t.stores(*t.finishes().Commit)
		t.share(a.Signed, "helper")
		t.batch()
	}},
	{"a request is lost, and the reply to the next", func(t *trace) {
		t.give(2)
		t.cut()
		t.learns(t.hears(t.again()...)...)
		t.give(1)
		t.hears(t.cut())
		t.learns(t.hears(t.again()...)...)
	}},
	{"copies of everything", func(t *trace) {
		t.give(2)
		r := t.cut()
		replies := t.hears(r, r)
		t.learns(replies...)
		t.learns(replies...)
		t.give(2)
		next := t.cut()
		t.learns(t.hears(next, r, next)...)
	}},
	{"requests and replies out of order", func(t *trace) {
		var requests []Request
		for range 3 {
			t.give(1)
			requests = append(requests, t.cut())
		}
		replies := t.hears(requests[2], requests[1], requests[0])
		t.learns(replies[2], replies[0], replies[1])
	}},
	{"the helper starts again before its mark", func(t *trace) {
		t.full()
		t.prepare()
		t.finishes()
		t.restart()
		a := t.finishes()
		t.ending.Gone(*a.Gone)
		t.step()
		t.marks, _ = t.marks.Drop(a.Gone.X)
		t.ending.Dropped()
		t.step()
	}},
	{"the helper starts again after its mark", func(t *trace) {
		t.full()
		t.prepare()
		share := *t.finishes().Commit
		t.mark, _ = t.mark.Release(share.X, signed(share))
		t.restart()
		a := t.finishes()
		t.share(a.Signed, "helper")
		t.batch()
	}},
	{"the helper starts again while it counts", func(t *trace) {
		t.give(2)
		r := t.cut()
		t.restart()
		t.say("helper hears request %d", r.N)
		t.answer(t.desk.Request(r))
		t.say("helper hears ping")
		t.answer(t.desk.Ping(Ping{X: r.X}))
	}},
	{"two requests of one number", func(t *trace) {
		t.give(2)
		r := t.cut()
		t.hears(r)
		other := r
		other.Bundles = nil
		t.say("helper hears request %d with other bytes", other.N)
		t.answer(t.desk.Request(other))
		t.say("helper hears request %d again", r.N)
		t.answer(t.desk.Request(r))
	}},
	{"the leader's chain differs", func(t *trace) {
		t.full()
		t.prepare()
		f := t.ending.Finish()
		f.Chain[0]++
		t.say("helper hears finish with another chain")
		a := t.answer(t.desk.Finish(f, Entropy{}))
		t.ending.Differs(*a.Differs)
		t.step()
		t.marks, _ = t.marks.Drop(f.X)
		t.ending.Dropped()
		t.step()
	}},
	{"the helper's chain differs", func(t *trace) {
		t.give(2)
		replies := t.hears(t.cut())
		replies[0].Chain[0]++
		t.learns(replies...)
		t.learns(replies...)
	}},
	{"finish twice, before and after the mark", func(t *trace) {
		t.full()
		t.prepare()
		share := *t.finishes().Commit
		t.finishes()
		t.stores(share)
		a := t.finishes()
		t.share(a.Signed, "helper")
		t.batch()
		t.finishes()
	}},
	{"the share from the broker, the answer lost", func(t *trace) {
		t.full()
		t.prepare()
		a := t.stores(*t.finishes().Commit)
		t.say("the answer is lost, and the leader starts again")
		t.say("leader looks: %v", t.marks.Find(t.cfg.X.Round, t.cfg.X, 0) == Resume)
		t.ending = ResumeEnding(t.ending.Prepared())
		t.step()
		t.share(a.Signed, "broker")
		t.batch()
	}},
	{"a ping of a leader that knows a later round", func(t *trace) {
		t.full()
		t.say("helper hears ping, highest 7")
		t.answer(t.desk.Ping(Ping{X: t.cfg.X, Highest: 7}))
		t.say("helper is shown its own share of round 7: stops %v", t.desk.Shown(Share{X: Attempt{Round: 7}}))
		t.say("helper is shown nothing of its own above its mark: stops %v", t.desk.Shown(Share{X: Attempt{}}))
	}},
}

// TestTraces holds what leader and helper say in each situation, line by line.
func TestTraces(t *testing.T) {
	var out strings.Builder
	for _, c := range traces {
		fmt.Fprintf(&out, "# %s\n", c.name)
		tr := &trace{world: newWorld(t, config(2, 2, 20), 1), out: &out}
		c.play(tr)
		fmt.Fprintln(&out)
	}
	golden.File(t, "testdata/traces/exchange.txt", out.String())
}
