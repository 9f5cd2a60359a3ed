package client

import (
	"container/heap"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
)

// lots decide which of the waiting events join an attempt, and when. While more devices wait than a round takes,
// the stage announces which share of them may join at once; the others follow, the later the larger their lot is, and most
// find the round closed before (stream.JoinAfter). A lot is drawn once for an attempt, from the operating system's
// generator and nothing else.
type lots struct {
	round   stream.Round
	attempt stream.Attempt
	waiting queue // events that drew a lot and did not win yet
}

// A queue is a heap of events by their lots.
type queue []*event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].lot < q[j].lot }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)        { *q = append(*q, e.(*event)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}

// lucky takes up to n events off those that wait, which may join the newest attempt now.
func (g *gateway) lucky(n int) []*event {
	r := g.current
	if g.lots.round != r.number || g.lots.attempt != r.attempt.Number {
		g.unlot()
		g.lots.round, g.lots.attempt = r.number, r.attempt.Number
	}
	var batch []*event
	elapsed := g.elapsed(time.Now())
	wins := func(e *event) bool {
		return stream.JoinAfter(r.open.JoinProbability, e.lot, manifest.Deadline(r.message)) <= elapsed
	}
	for len(batch) < n && len(g.lots.waiting) > 0 && wins(g.lots.waiting[0]) {
		batch = append(batch, heap.Pop(&g.lots.waiting).(*event))
	}
	for len(batch) < n && len(g.again) > 0 {
		e := g.again[0]
		member := g.member(e)
		if !member && g.places() <= uint64(len(batch)) {
			break
		}
		g.again = g.again[1:]
		if !g.mayJoin(e) { // a step that it answered, or none of its phase: the round was not made for it
			delete(g.events, e.part.Key)
			g.answer(e)
			continue
		}
		if member { // it was asked, and is awaited
			batch = append(batch, e)
			continue
		}
		if r.open.JoinProbability != 0 {
			e.lot = newLot()
		}
		if r.open.JoinProbability == 0 || wins(e) {
			batch = append(batch, e)
			continue
		}
		heap.Push(&g.lots.waiting, e)
	}
	return batch
}

func newLot() uint32 {
	var bits [4]byte
	_, _ = rand.Read(bits[:]) // never fails: it ends the process instead
	return binary.BigEndian.Uint32(bits[:])
}

// unlot puts the events that lost back among those that wait, before all others.
func (g *gateway) unlot() {
	if len(g.lots.waiting) > 0 {
		g.again = append(g.lots.waiting, g.again...)
		g.lots.waiting = nil
	}
}

// elapsed is how long the newest attempt is open, by the clock of whoever says more: a device that comes late to a round
// that waits must not be kept waiting.
func (g *gateway) elapsed(now time.Time) time.Duration {
	r := g.current
	return max(now.Sub(r.opened), now.Sub(time.UnixMilli(r.open.StartedUnixMs)))
}

// places is how many more events may draw a lot for the newest attempt: a gateway offers a round as many of its users as
// the round takes of all, and the share of them that joins is the announced one.
func (g *gateway) places() uint64 {
	taken := g.current.joined + g.absent()
	if g.lots.round == g.current.number && g.lots.attempt == g.current.attempt.Number {
		taken += uint64(len(g.lots.waiting))
	}
	return g.current.message.Cohort - min(taken, g.current.message.Cohort)
}
