package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// A loser selects what brokers and disks lose of the records that they acknowledged.
type loser int

const (
	losesNothing loser = iota
	losesLeases        // the lease, and the reports that nobody has opened
	losesRecords       // any stream, and single records
	losesAll           // the stage's marks and the learner's disk, too
	loserKinds
)

// Whose marks a stage process has.
const (
	ownMarks    = iota // its own, which end with it
	sharedMarks        // the marks of one folder for both
	apartMarks         // the marks of a folder of its own
	marksKinds
)

// losses holds what was lost so far, and the copies to which it can be put back.
type losses struct {
	earlier []map[stream.Stream]memory.Copy // of the broker before each operation
	backups []*storetest.Memory             // of the learner's disk
	goneMu  sync.Mutex
	gone    map[string]bool   // subjects whose record was lost, or overwritten by an older one; goneMu guards it
	emptied atomic.Bool       // reports were lost, and their sequences given again
	rewound atomic.Bool       // the learner's disk is one from the past
	marks   atomic.Bool       // a stage's marks were lost, or rolled back
	said    map[string]int    // what ended a process, by the cause that it named
	accept  bool              // the learner may apply the broker's records again
	spam    map[[16]byte]bool // message ids of strange reports
}

// streams lists the streams that an operation chooses from.
var streams = []stream.Stream{stream.Leases, stream.Reports, stream.Rounds, stream.Attempts, stream.Batches,
	stream.Attempts}

// keep copies everything before an operation.
func (w *world) keep() {
	if w.Loser == losesNothing {
		return
	}
	all := map[stream.Stream]memory.Copy{}
	for _, s := range streams {
		all[s] = w.broker.Copy(name, s)
	}
	w.earlier = append(w.earlier, all)
	w.mu.Lock()
	disk := w.disk
	w.mu.Unlock()
	w.backups = append(w.backups, disk.Copy()) // a commit that is under way has the disk's lock, and takes w.mu
}

// stream returns the stream that an operation is about.
func (w *world) stream(who int) stream.Stream {
	if w.Loser == losesLeases {
		who %= 2
	}
	return streams[who%len(streams)]
}

// aftermath bounds the time in which a loss may have effects. After the loss of a lease two processes may
// both believe that they hold it, until the lost one has expired, the next has been given up, and both have
// looked again.
const aftermath = 6 * leaseOf

// rollBack sets one stream back to its content of some operations ago, as a server does that lost its newest
// writes and comes back.
func (w *world) rollBack(o op) {
	if w.Loser == losesNothing {
		return
	}
	s, to := w.stream(o.Who), memory.Copy{}
	if ago := 1 + o.What%8; ago < 7 && ago < len(w.earlier) {
		to = w.earlier[len(w.earlier)-1-ago][s]
	}
	w.troubled(fmt.Sprintf("rolls %v back", s), nil, aftermath)
	w.broker.Disconnect()
	for _, subject := range w.broker.Restore(name, s, to) {
		w.notes(subject)
	}
	if s == stream.Reports {
		w.emptied.Store(true)
	}
	w.broker.Connect()
}

// lose removes one of the newest records of a stream, in silence.
func (w *world) lose(o op) {
	if w.Loser == losesNothing {
		return
	}
	var newest []string
	for _, m := range w.broker.Dump() {
		if m.Stream == w.stream(o.Who) && m.Stream != stream.Reports {
			newest = append(newest, m.Subject)
		}
	}
	if n := len(newest); n > 0 {
		subject := newest[n-1-o.What%min(n, 4)]
		w.loseRecord(subject)
	}
}

// restore puts the learner's disk back to what it was some operations ago, or empties it (What < 0).
func (w *world) restore(o op) {
	if w.Loser < losesAll {
		return
	}
	w.learner.crash()
	<-w.learner.current().done
	w.learner.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disk = w.backups[max(0, len(w.backups)-2-max(0, o.What)%6)].Copy(); o.What < 0 {
		w.disk = storetest.NewMemory()
	}
	w.rewound.Store(true)
}

// loseRecord removes the record of a subject from the broker, and notes the fault.
func (w *world) loseRecord(subject string) {
	w.troubled("loses a record", nil, aftermath)
	w.broker.Lose(subject)
	w.notes(subject)
}

// notes that the record of a subject was lost.
func (w *world) notes(subject string) {
	w.goneMu.Lock()
	defer w.goneMu.Unlock()
	w.gone[subject] = true
}

func (w *world) isGone(subject string) bool {
	w.goneMu.Lock()
	defer w.goneMu.Unlock()
	return w.gone[subject]
}

// lost reports whether any record of these kinds was lost.
func (w *world) lost(verbs ...string) bool {
	w.goneMu.Lock()
	defer w.goneMu.Unlock()
	for subject := range w.gone {
		at, err := stream.ParseSubject(subject)
		must(err)
		if slices.Contains(verbs, at.Verb) {
			return true
		}
	}
	return false
}

// guarded reports whether no loss of the broker can make a round be released a second time: no record that
// decides it was lost, or the stages share marks and kept them.
func (w *world) guarded(round uint64) bool {
	r := stream.Round(round)
	return !w.isGone(name.Claim(r)) && !w.isGone(name.Batch(r)) || w.Marks == sharedMarks && !w.marks.Load()
}

// mayDiffer reports whether a record may be replaced by a different one: it was lost, and nothing else
// decides its content. Of the batches of a guarded round one may be real, and a batch after a loss is void.
func (w *world) mayDiffer(at stream.Address, subject string, versions [][]byte) bool {
	round := uint64(at.Round)
	if w.isSwept(subject) && at.Verb != "round" && at.Verb != "batch" {
		return true // put again by who was away: nobody acts on it
	}
	switch at.Verb {
	case "task": // made again by a learner that does not remember the first
		return w.isGone(subject) && w.rewound.Load()
	case "round", "end": // computed from another batch, or of another task, by such a learner
		return w.isGone(subject) && w.rewound.Load() && w.lost("batch", "task")
	case "open":
		return w.isGone(subject)
	case "claim":
		return w.isGone(subject) && !w.guarded(round)
	case "close":
		return w.isGone(subject) && w.isGone(name.Batch(at.Round))
	case "batch":
		real := 0
		for _, v := range versions {
			if !body(v, &wire.Batch{}).Void {
				real++
			}
		}
		return (w.isGone(subject) || w.isSwept(subject)) && (real <= 1 || !w.guarded(round))
	}
	return false
}

// adrift reports whether a user was asked, or released, in a round that a loss may have caused to be released
// twice. For such users only the promises hold that their devices keep themselves.
func (w *world) adrift(d *publisher, user int, at []seat) bool {
	for _, t := range d.reports {
		if t.user == user && !w.guarded(t.round) {
			return true
		}
	}
	return slices.ContainsFunc(at, func(s seat) bool { return !w.guarded(s.round) })
}

// named notes that a process ended and said why, where it had a reason: a sentence is what an operator acts on.
func (w *world) named(p *process, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var what string
	switch {
	case errors.Is(err, service.ErrStateRolledBack) && w.rewound.Load():
		what, w.accept = "the learner's state is older", w.Accept
		if strings.Contains(err.Error(), "removed") { // nothing leads on from there
			what, w.accept = older, false
		}
	case errors.Is(err, service.ErrBrokerRolledBack) && w.lost("task", "round", "end", "batch"):
		what = "the broker is older"
	case errors.Is(err, service.ErrOtherLearner) && w.rewound.Load():
		what = replaced
	case p != w.learner && w.rewound.Load() && w.lost("batch") && w.lost("round") &&
		(errors.As(err, new(*consent.RefusedError)) ||
			strings.Contains(err.Error(), "another learner announced the same round")):
		what = "another learner announced the round"
	case p != w.learner && w.remade() && w.lost("task") && (strings.Contains(err.Error(), "is of another task") ||
		strings.Contains(err.Error(), "task hash is")):
		what = "the task was made anew"
	case p != w.learner && strings.Contains(err.Error(), "or the broker was rolled back") && w.lost("batch"):
		what = "the broker was rolled back"
	default:
		return false
	}
	w.said[what]++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = !w.accept
	return true
}

// replaced is the cause that a learner names when its disk did not announce what the broker holds: the disk
// was emptied, or it went back and a batch that had been applied was lost, so that another follows.
const replaced = "the state folder was replaced"

// remade reports whether the learner may have announced, or committed, something else than the broker holds.
func (w *world) remade() bool {
	return w.rewound.Load() && (w.said[replaced] > 0 || w.lost("batch", "task"))
}

// A memo is a folder of marks. It outlives the processes that write to it.
type memo struct {
	mu       sync.Mutex
	round    stream.Round
	instance [stream.InstanceSize]byte
	before   stream.Round // the mark that this one took the place of
}

// lifeMarks are marks as one life has them.
type lifeMarks struct {
	*memo
	l *link
}

// Claimed implements stage.Marks.
func (m lifeMarks) Claimed(stream.Hash) (stream.Round, error) {
	err := m.l.enter()
	if err == errCut { // a disk is no network
		err = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.round, err
}

// Claim implements stage.Marks.
func (m lifeMarks) Claim(_ stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (bool, error) {
	if err := m.l.enter(); err == errGone {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if round > m.round {
		m.before, m.round, m.instance = m.round, round, instance
	}
	return m.round == round && m.instance == instance, nil
}

// marksOf returns the marks of a stage process, nil for its own.
func (w *world) marksOf(number int, l *link) stage.Marks {
	switch w.Marks {
	case sharedMarks:
		return lifeMarks{w.memos[0], l}
	case apartMarks:
		return lifeMarks{w.memos[number], l}
	}
	return nil
}

// loseMarks empties a folder of marks, or puts the last mark back.
func (w *world) loseMarks(o op) {
	if w.Loser < losesAll {
		return
	}
	m := w.memos[o.Who%len(w.memos)]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round > 0 {
		w.marks.Store(true)
	}
	if o.What%2 == 0 {
		m.before = 0
	}
	m.round, m.instance = m.before, [stream.InstanceSize]byte{}
}

// flood sends strange reports with a device's credentials: to attempts that are open, over, or do not exist; noise, or
// copies of others' reports. Copies are sent only where sequences were never given again: otherwise a copy could have a
// report counted after its device got a sequence above the cutoff.
func (w *world) flood(o op) {
	round, attempt := max(1, w.openRound())+uint64(o.Who%3), 1+o.What%3
	if o.Who%3 == 2 {
		round = max(1, round-3)
	}
	var others []memory.Stored
	for _, m := range w.broker.Dump() {
		if m.Stream == stream.Reports && !w.emptied.Load() && w.Loser == losesNothing {
			others = append(others, m)
		}
	}
	var out []stream.Outgoing
	for i := range 1 + o.What {
		r := stream.Outgoing{Subject: name.Report(stream.Round(round), stream.Attempt(attempt)), Data: make([]byte, 100+i)}
		if n := len(others); n > 0 && o.What%2 == 1 {
			r.Subject, r.Data = others[i%n].Subject, others[i%n].Data
		}
		r.ID = [16]byte{0xff, byte(i), byte(len(w.spam)), byte(len(w.spam) >> 8)}
		w.spam[r.ID] = true
		out = append(out, r)
	}
	_, _ = w.broker.Publish(context.Background(), out) // the flooder ignores the answers
}

// suspend pauses a process: each of its calls and each reply waits until it goes on.
func (l *link) suspend(length time.Duration) {
	l.set(func(l *link) { l.asleep = time.Now().Add(length) })
}

// slept waits until the process goes on, or is woken; one that ended in its sleep wakes within a minute.
func (l *link) slept() {
	for {
		l.mu.Lock()
		until, dead := l.asleep, l.dead
		l.mu.Unlock()
		if dead || !time.Now().Before(until) {
			return
		}
		time.Sleep(min(time.Until(until), time.Minute))
		if l.ctx.Err() != nil { // it had to end meanwhile
			return
		}
	}
}
