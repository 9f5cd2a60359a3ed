package device

import (
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// queued returns a round that is open since the epoch, and the queue of events that wait for it, by the first byte of
// their keys.
func queued(step uint64, share uint32, events ...*event) (*round, *queue) {
	r := &round{number: stream.Round(step), message: &wire.Round{Step: step}, opened: time.Unix(0, 0),
		open: &wire.Open{JoinProbability: share},
		place: manifest.Place{First: 1, Cohort: 100, Phase: &wire.Phase{RoundsPerUser: 3}, Stint: manifest.Stint{First: 1,
			Last: 3, Rounds: 3}}}
	q := newQueue(system)
	q.add(events...)
	q.sort(r, func(*event) bool { return false })
	return r, q
}

func fresh(keys ...byte) (all []*event) {
	for _, k := range keys {
		all = append(all, &event{record: participation.Record{Key: participation.Key{k}}})
	}
	return all
}

// member returns an event that answered the first step of the phase.
func member(key byte) *event {
	return &event{record: participation.Record{Key: participation.Key{key}, State: participation.Counted, Rounds: 1,
		Draw: participation.Draw{Round: 1, Step: 1, Phase: 1, Most: 3}}}
}

func keys(events []*event) (out []byte) {
	for _, e := range events {
		out = append(out, e.record.Key[0])
	}
	return out
}

func want(t *testing.T, what string, got []*event, want ...byte) {
	t.Helper()
	if !slices.Equal(keys(got), want) {
		t.Errorf("%s: %v, want %v", what, keys(got), want)
	}
}

// Events join in their order, no more of them than there are places, and no more at once than are asked for.
func TestQueueKeepsOrderAndPlaces(t *testing.T) {
	now := time.Unix(1, 0)
	r, q := queued(1, 0, fresh(3, 1, 2, 5, 4)...)
	got, _ := q.next(r, 2, 9, now)
	want(t, "two at once", got, 3, 1)
	got, _ = q.next(r, 9, 2, now)
	want(t, "two places", got, 2, 5)
	got, _ = q.next(r, 9, 0, now)
	want(t, "no place", got)
	want(t, "left", q.all(), 4)
}

// Each event of a crowded round takes one place to draw for it, and joins when the time of what it drew has come;
// another attempt has all draw again, before those that have not.
func TestQueueDraws(t *testing.T) {
	const rare = 1 // a share of 2^-16
	r, q := queued(1, rare, fresh(1, 2, 3, 4, 5)...)
	got, _ := q.next(r, 9, 3, time.Unix(0, 0))
	if len(got)+len(q.drawn) != 3 || len(q.events) != 2 {
		t.Fatalf("%d join, %d drew and %d wait, want three that drew, and two", len(got), len(q.drawn), len(q.events))
	}
	drawn := len(q.drawn)
	late, _ := q.next(r, 9, 0, time.Unix(3600, 0))
	if len(late) != drawn ||
		!slices.IsSortedFunc(late, func(a, b *event) int { return int(int64(a.draw) - int64(b.draw)) }) {
		t.Errorf("%d of %d joined when all draws were due, want all in their order", len(late), drawn)
	}
	r, q = queued(1, rare, fresh(1, 2, 3, 4, 5)...)
	q.next(r, 9, 3, time.Unix(0, 0))
	first := keys(q.drawn)
	q.recall(0)
	if len(q.drawn) != 0 || !slices.Equal(keys(q.events), append(first, 4, 5)) {
		t.Errorf("after another attempt %v wait, want those that drew %v first", keys(q.events), first)
	}
}

// In a later round of a phase its members join at once, in the order of their keys and whatever the share; others are
// its reserve until the members had their time, and who was counted in no way that lets him join is handed back.
func TestQueueHoldsTheReserve(t *testing.T) {
	answered := member(7) // at this very step
	answered.record.Draw.Round, answered.record.Draw.Step = 2, 2
	r, q := queued(2, 1, append(fresh(1), member(9), member(8), answered)...)
	if n := q.ready(r, time.Unix(1, 0)); n != 3 {
		t.Errorf("%d are ready, want the members", n)
	}
	got, misfits := q.next(r, 9, 9, time.Unix(1, 0))
	want(t, "members", got, 8, 9)
	want(t, "misfits", misfits, 7)
	if n := q.ready(r, time.Unix(1, 0)); n != 0 || len(q.events) != 1 {
		t.Errorf("%d are ready and %d wait, want the reserve alone", n, len(q.events))
	}
	r.open.JoinProbability = 0
	got, _ = q.next(r, 9, 9, time.Unix(0, 0).Add(stream.ReserveAfter(0)-1))
	want(t, "too early", got)
	got, _ = q.next(r, 9, 9, time.Unix(0, 0).Add(stream.ReserveAfter(0)))
	want(t, "the reserve", got, 1)
}
