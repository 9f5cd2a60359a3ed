package split

import (
	"maps"
	"slices"
)

// The model explores every order of events of one round: two leader processes on one folder, one helper, modelAttempts
// attempts of at most modelRequests requests. Every process may crash or stop at any point, every message may be lost,
// come late or come again, a look at the broker may lag. It runs outbox, inbox, Desk, Ending and the marks as they are;
// only the counting is left out, as it decides nothing here.
const (
	modelAttempts = 2
	modelRequests = 3
	modelWindow   = 2
	modelMinimum  = 2 // requests after which the leader may end
)

// attemptOf returns attempt a of the round that is explored.
func attemptOf(a int) Attempt {
	if a == 0 {
		return Attempt{}
	}
	return Attempt{Round: 1, Number: uint64(a), Open: Hash{byte(a)}, Join: Hash{byte(a), 1}}
}

func numberOf(x Attempt) int { return int(x.Number) }

// requestOf returns request n of attempt a: one user.
func requestOf(a, n, base int) Request {
	return Request{X: attemptOf(a), N: uint64(n), Base: uint64(base),
		Bundles: []Bundle{{Users: []User{{ID: [16]byte{byte(a), byte(n)}}}}}}
}

// A counting is a Helper that counts every user it is shown.
type counting struct{ in inbox }

func (c *counting) attempt() Attempt                  { return c.in.x }
func (c *counting) Erase()                            {}
func (c *counting) receive(r Request) (*Reply, error) { return c.in.receive(r) }
func (c *counting) finish(f Finish, _ Entropy) (Share, error) {
	if f != c.in.finish(c.in.done) {
		return Share{}, errDiffers
	}
	return Share{X: f.X, Requests: f.Requests, Users: f.Users, Chain: f.Chain, Aggregate: []byte{byte(numberOf(f.X))}}, nil
}

// A process is one of the leader's.
type process struct {
	out    *outbox // collecting
	ending *Ending
	marked uint64 // what it knows of the helper's mark, while it looks
	saw    *seen  // what it found in the folder, before it looks at the Share
}

// A seen holds what one process found in the folder at one look. The folder may have changed since.
type seen struct {
	marks    LeaderMarks
	prepared Prepared
	sure     bool // it is the second look, after the Share was found
}

// A history holds which messages of an attempt were ever sent: they may arrive at any time from then on.
type history struct {
	sent, base, replied int
	finish              *Finish
	gone                [2]bool // by marked round
	differs             bool
}

// A model is one state of the whole.
type model struct {
	leaders  [2]process
	desk     *Desk
	opens    int // attempts opened
	joined   int // the last attempt that the helper joined
	past     [modelAttempts + 1]history
	folder   LeaderMarks
	prepared Prepared // whose bytes the folder has
	mark     HelperMark
	share    int // the attempt of the Share on the broker
	batch    int // 0 none, -1 void
	released int // attempts that a process may put a batch of, a bit for each
}

// theHelper represents the helper where a leader's process has a number.
const theHelper = -1

// clone returns a copy in which the machines of one party can be changed.
func (m *model) clone(party int) *model {
	c := *m
	if party == theHelper {
		d := *m.desk
		if held, ok := d.held.(*counting); ok {
			in := held.in
			in.early, in.replies = maps.Clone(in.early), slices.Clone(in.replies)
			d.held = &counting{in: in}
		}
		c.desk = &d
		return &c
	}
	switch l := m.leaders[party]; {
	case l.out != nil:
		out := *l.out
		out.open = slices.Clone(out.open)
		c.leaders[party].out = &out
	case l.ending != nil:
		e := *l.ending
		e.prepared.Aggregate = slices.Clone(e.prepared.Aggregate)
		c.leaders[party].ending = &e
	}
	return &c
}

// key encodes a state: two that have the same one have the same future.
func (m *model) key() string {
	var b []byte
	put := func(values ...int) {
		for _, v := range values {
			b = append(b, byte(v))
		}
	}
	flag := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	for _, l := range m.leaders {
		switch {
		case l.out != nil:
			put(1, numberOf(l.out.x), int(l.out.base), len(l.out.open))
			for _, s := range l.out.open {
				put(flag(s.reply != nil))
			}
		case l.ending != nil:
			e := l.ending
			put(2, numberOf(e.prepared.X()), int(e.prepared.Finish.Requests), int(e.step), int(e.after), int(e.marked),
				numberOf(e.share.X))
		case l.saw != nil:
			put(4, int(l.marked), numberOf(l.saw.marks.Prepared), numberOf(l.saw.marks.Released),
				int(l.saw.prepared.Finish.Requests), flag(l.saw.sure))
		default:
			put(3, int(l.marked))
		}
	}
	put(254)
	if held, ok := m.desk.held.(*counting); ok {
		put(numberOf(held.in.x), int(held.in.base), int(held.in.done), flag(m.desk.committing()))
		for n := uint64(1); n <= modelRequests; n++ {
			_, early := held.in.early[n]
			put(flag(early))
		}
	}
	put(253, m.released, numberOf(m.desk.mark.X), numberOf(m.mark.X), m.opens, m.joined, m.share, m.batch+1,
		numberOf(m.folder.Prepared), numberOf(m.folder.Released), int(m.prepared.Finish.Requests))
	for _, h := range m.past[1:] {
		finish := 0
		if h.finish != nil {
			finish = int(h.finish.Requests)
		}
		put(h.sent, h.base, h.replied, finish, flag(h.gone[0])+2*flag(h.gone[1])+4*flag(h.differs))
	}
	return string(b)
}

// least returns one key for a state and the same with its two processes exchanged.
func (m *model) least() string {
	a := m.key()
	m.leaders[0], m.leaders[1] = m.leaders[1], m.leaders[0]
	b := m.key()
	m.leaders[0], m.leaders[1] = m.leaders[1], m.leaders[0]
	return min(a, b)
}

// An explorer makes the states that follow a state. The steps of the leader's folder are functions, so that a test can
// take their compare-and-set out.
type explorer struct {
	prepare, release, drop func(LeaderMarks, Attempt) (LeaderMarks, bool)
	restart                func(HelperMark) HelperMark // of what the folder has, the mark that a new process of the helper knows
	hasty                  bool                        // a leader makes a round void after one look at its folder
	lying                  bool                        // the helper says anything that it can sign, to anybody
	first                  bool                        // stop at the first thing that is broken
	broken                 map[string]bool             // what was seen that must not be
	replies                map[[2]int]Reply            // to request n of attempt a, once made
	emit                   func(what string, next *model)
}

func (x *explorer) from(m *model) {
	if !x.lying {
		x.helper(m)
	}
	if m.batch == 0 {
		x.look(m, 0)
		x.look(m, 1)
	}
	for i := range m.leaders {
		if m.leaders[i] != (process{}) {
			x.step(m, i, "a leader crashes", func(c *model) { c.leaders[i] = process{} })
		}
		switch {
		case m.leaders[i].out != nil:
			x.collect(m, i)
		case m.leaders[i].ending != nil:
			x.end(m, i)
		}
	}
}

// step emits what f makes of a copy, of which it changes one party.
func (x *explorer) step(m *model, party int, what string, f func(c *model)) {
	c := m.clone(party)
	f(c)
	x.emit(what, c)
}

// helper has what the helper does by itself, and what reaches it.
func (x *explorer) helper(m *model) {
	x.step(m, theHelper, "helper crashes", func(c *model) {
		c.mark = x.restart(c.mark)
		c.desk = NewDesk(Instance{}, c.mark)
	})
	if m.mark.Signed != nil && m.share == 0 && !m.desk.committing() {
		x.step(m, theHelper, "helper puts its share", func(c *model) { c.share = numberOf(c.mark.X) })
	}
	if m.opens > m.joined && !m.desk.committing() {
		if _, _, ok := m.desk.Join(attemptOf(m.opens)); ok {
			x.step(m, theHelper, "helper joins", func(c *model) {
				c.desk.hold(&counting{in: newInbox(attemptOf(c.opens), modelWindow)})
				c.joined = c.opens
			})
		}
	}
	if held, ok := m.desk.held.(*counting); ok && !m.desk.committing() {
		if _, ok := held.in.turn(); ok {
			x.step(m, theHelper, "helper decides", func(c *model) {
				in := &c.desk.held.(*counting).in
				in.decide([]Outcome{Accepted}, []PrepMessage{{}})
				c.past[numberOf(in.x)].replied = int(in.done)
			})
		}
	}
	if m.desk.committing() {
		x.step(m, theHelper, "helper stores its mark", func(c *model) {
			s := c.desk.closing
			c.mark, _ = c.mark.Release(s.X, signed(s))
		})
		if m.mark.X == m.desk.closing.X {
			x.step(m, theHelper, "helper knows its mark", func(c *model) { x.answered(c, c.desk.Committed(c.mark)) })
		}
	}
	for a := 1; a <= modelAttempts; a++ {
		h := m.past[a]
		for n := 1; n <= h.sent; n++ {
			for base := max(0, n-modelWindow); base <= min(n-1, h.base); base++ {
				x.step(m, theHelper, "a request arrives", func(c *model) { x.answered(c, c.desk.Request(requestOf(a, n, base))) })
			}
		}
		if h.finish != nil {
			x.step(m, theHelper, "a finish arrives", func(c *model) { x.answered(c, c.desk.Finish(*h.finish, Entropy{})) })
		}
	}
}

// answered records a message of the helper. It may be lost, and arrive late or twice; a Share is on its way from its
// mark on.
func (x *explorer) answered(c *model, a Answer) {
	switch {
	case a.Gone != nil:
		c.past[numberOf(a.Gone.X)].gone[a.Gone.Marked] = true
	case a.Differs != nil:
		c.past[numberOf(a.Differs.X)].differs = true
	}
}

// look has what an idle process i does: it looks at the folder, and then at the round's Share, which it may not see yet.
// Before it makes the round void it looks at the folder again.
func (x *explorer) look(m *model, i int) {
	l := m.leaders[i]
	if l.out != nil || l.ending != nil {
		return
	}
	again := func(c *model, sure bool) {
		c.leaders[i] = process{marked: l.marked, saw: &seen{c.folder, c.prepared, sure}}
	}
	if l.saw == nil {
		x.step(m, i, "leader looks at its folder", func(c *model) { again(c, false) })
		return
	}
	shares := slices.Compact([]int{0, m.share})
	if x.lying {
		shares = []int{0, 1, 2}
	}
	for _, share := range shares {
		switch finding := l.saw.marks.Find(1, attemptOf(share), l.marked); {
		case finding == Resume:
			x.step(m, i, "leader resumes", func(c *model) {
				p := l.saw.prepared
				p.Aggregate = slices.Clone(p.Aggregate)
				c.leaders[i] = process{ending: ResumeEnding(p)}
			})
		case finding == Void && !l.saw.sure && !x.hasty:
			x.step(m, i, "leader looks at its folder again", func(c *model) { again(c, true) })
		case finding == Void:
			x.step(m, i, "leader voids", func(c *model) { c.batch = -1; c.leaders[i] = process{} })
		case m.opens < modelAttempts:
			x.step(m, i, "leader opens", func(c *model) {
				c.opens++
				out := newOutbox(attemptOf(c.opens), modelWindow)
				c.leaders[i] = process{out: &out}
			})
		}
	}
}

// collect has what process i does while it counts.
func (x *explorer) collect(m *model, i int) {
	out := m.leaders[i].out
	a := numberOf(out.x)
	h := m.past[a]
	if x.lying {
		h.replied, h.gone[0] = h.sent, true
	} else if m.joined < a {
		return // there is no Join to send under
	}
	if out.room() && out.next() <= modelRequests {
		x.step(m, i, "leader sends a request", func(c *model) {
			out := c.leaders[i].out
			c.past[a].sent = int(out.next())
			out.send(requestOf(a, int(out.next()), int(out.base)))
		})
	}
	for n := 1; n <= h.replied; n++ {
		x.step(m, i, "leader hears a reply", func(c *model) {
			out := c.leaders[i].out
			if _, err := out.receive(x.replyOf(a, n)); err != nil {
				x.broken["honest leader and helper differ"] = true
			}
			c.past[a].base = max(c.past[a].base, int(out.base))
		})
	}
	if h.gone[0] || h.gone[1] || h.differs {
		x.step(m, i, "leader hears that its attempt is gone", func(c *model) { c.leaders[i] = process{} })
	}
	if len(out.open) == 0 && out.base >= modelMinimum {
		x.step(m, i, "leader prepares", func(c *model) {
			f := c.leaders[i].out.finish(c.leaders[i].out.base)
			c.leaders[i] = process{ending: NewEnding(Prepared{Finish: f, Aggregate: []byte{byte(a)}})}
		})
	}
}

// replyOf returns the reply to request n of attempt a, which follows from them.
func (x *explorer) replyOf(a, n int) Reply {
	if r, ok := x.replies[[2]int{a, n}]; ok {
		return r
	}
	in := newInbox(attemptOf(a), modelRequests)
	var r Reply
	for k := 1; k <= n; k++ {
		_, _ = in.receive(requestOf(a, k, 0))
		r = in.decide([]Outcome{Accepted}, []PrepMessage{{}})
	}
	x.replies[[2]int{a, n}] = r
	return r
}

// end has what process i does at the end of its attempt.
func (x *explorer) end(m *model, i int) {
	e := m.leaders[i].ending
	a := numberOf(e.prepared.X())
	switch e.Step() {
	case StepStore:
		x.step(m, i, "leader stores prepared", func(c *model) {
			var ok bool
			if c.folder, ok = x.prepare(c.folder, attemptOf(a)); ok {
				c.prepared = c.leaders[i].ending.Prepared()
				c.prepared.Aggregate = slices.Clone(c.prepared.Aggregate)
			}
			c.leaders[i].ending.Stored(ok)
		})
	case StepSend:
		if m.past[a].finish == nil {
			x.step(m, i, "leader sends finish", func(c *model) {
				f := c.leaders[i].ending.Finish()
				c.past[a].finish = &f
			})
		}
		seen := map[int]bool{}
		if m.mark.X == attemptOf(a) && m.past[a].finish != nil {
			seen[a] = true // the helper replies to a copy, or replied before
		}
		if m.share != 0 {
			seen[m.share] = true
		}
		if x.lying {
			seen = map[int]bool{1: true, 2: true}
		}
		for s := range seen {
			x.step(m, i, "leader hears a share", func(c *model) {
				share, err := readSigned(c.mark.Signed)
				switch {
				case x.lying:
					share = Share{X: attemptOf(s), Aggregate: []byte{byte(s)}}
				case err != nil || numberOf(share.X) != s:
					x.broken["a share without its mark"] = true
				}
				c.leaders[i].ending.Share(share, signed(share))
			})
		}
		for marked, said := range m.past[a].gone {
			if said || x.lying {
				x.step(m, i, "leader hears gone", func(c *model) {
					c.leaders[i].ending.Gone(Gone{X: attemptOf(a), Marked: uint64(marked)})
				})
			}
		}
		if m.past[a].differs || x.lying {
			x.step(m, i, "leader hears differs", func(c *model) { c.leaders[i].ending.Differs(Differs{X: attemptOf(a)}) })
		}
	case StepRelease:
		x.step(m, i, "leader stores the share", func(c *model) {
			var ok bool
			c.folder, ok = x.release(c.folder, attemptOf(a))
			c.leaders[i].ending.Released(ok)
			if ok {
				c.released |= 1 << a
			}
		})
	case StepDrop:
		x.step(m, i, "leader overwrites prepared", func(c *model) {
			var ok bool
			if c.folder, ok = x.drop(c.folder, attemptOf(a)); ok {
				c.prepared = Prepared{}
			}
			c.leaders[i].ending.Dropped()
		})
	case StepBatch:
		x.step(m, i, "leader puts the batch", func(c *model) {
			if c.batch == 0 {
				c.batch = a
			}
			c.leaders[i] = process{}
		})
	case StepDied:
		x.step(m, i, "leader goes to the next attempt", func(c *model) { c.leaders[i] = process{} })
	case StepLook:
		x.step(m, i, "leader looks again", func(c *model) { c.leaders[i] = process{marked: e.Marked()} })
	}
}
