package split

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// check notes what a state has that must not be.
func (x *explorer) check(m *model) {
	if m.released&(m.released-1) != 0 {
		x.broken["two releases of one round"] = true
	}
	if x.lying {
		return
	}
	switch {
	case m.batch == -1:
		x.broken["void"] = true
	case m.batch > 0 && numberOf(m.mark.X) != m.batch:
		x.broken["batch of another attempt than the helper's mark"] = true
	case m.batch > 0 && m.folder.Released != attemptOf(m.batch):
		x.broken["batch without a stored share"] = true
	}
	for _, l := range m.leaders {
		if l.ending != nil && l.ending.Step() == StepBatch {
			f, s := l.ending.prepared.Finish, l.ending.share
			if f != (Finish{X: s.X, Requests: s.Requests, Users: s.Users, Chain: s.Chain}) ||
				l.ending.prepared.Aggregate[0] != s.Aggregate[0] {
				x.broken["halves of different attempts, or of different users"] = true
			}
		}
	}
}

// explore visits every state and returns their number, the shortest way to each broken thing, and the number of states
// from which no outcome can come although an attempt is left.
func (x *explorer) explore() (states int, ways map[string][]string, stuck int) {
	type visited struct {
		from int32
		what string
	}
	var (
		list  []visited
		back  [][]int32 // who leads to it
		live  []int32   // with an outcome, or without an attempt left
		index = map[string]int32{}
		queue []*model
		at    int32 = -1
	)
	ways = map[string][]string{}
	x.broken = map[string]bool{}
	x.emit = func(what string, m *model) {
		key := m.least()
		to, ok := index[key]
		if !ok {
			to = int32(len(list))
			index[key] = to
			list, back, queue = append(list, visited{at, what}), append(back, nil), append(queue, m)
			if m.batch != 0 || m.opens == modelAttempts {
				live = append(live, to)
			}
			x.check(m)
		}
		if at >= 0 {
			back[to] = append(back[to], at)
		}
		for b := range x.broken {
			if ways[b] == nil {
				way := []string{what}
				for s := at; s >= 0; s = list[s].from {
					way = append(way, list[s].what)
				}
				slices.Reverse(way)
				ways[b] = way
			}
		}
	}
	x.emit("begin", &model{desk: NewDesk(Instance{}, HelperMark{})})
	for at = 0; int(at) < len(list) && !(x.first && len(ways) > 0); at++ {
		m := queue[at]
		queue[at] = nil
		x.from(m)
	}
	reached := make([]bool, len(list))
	for _, s := range live {
		reached[s] = true
	}
	for len(live) > 0 {
		s := live[len(live)-1]
		live = live[:len(live)-1]
		for _, p := range back[s] {
			if !reached[p] {
				reached[p] = true
				live = append(live, p)
			}
		}
	}
	for _, r := range reached {
		if !r {
			stuck++
		}
	}
	return len(list), ways, stuck
}

// honest returns an explorer of the machines as they are.
func honest() *explorer {
	return &explorer{prepare: LeaderMarks.Prepare, release: LeaderMarks.Release, drop: LeaderMarks.Drop,
		restart: func(m HelperMark) HelperMark { return m }, replies: map[[2]int]Reply{}}
}

// No order of crashes, stops, lost, late and doubled messages makes a round void, or a batch of halves that do not
// belong together.
func TestModelOfExchangeAndEnd(t *testing.T) {
	longtest.Sequential(t)
	t.Parallel()
	states, ways, stuck := honest().explore()
	t.Logf("%d states", states)
	if states < 10_000 {
		t.Errorf("%d states: the model is broken", states)
	}
	for what, way := range ways {
		t.Errorf("%s: %q", what, way)
	}
	if stuck > 0 {
		t.Errorf("%d states with an attempt left have no way to an outcome", stuck)
	}
}

// With the compare-and-set of the leader's folder taken out, whole or step by step, without the second look into it before
// a round is void, and with a helper that forgets its mark, the model finds what breaks: so it would see it in the machines. Release alone is not among them: an
// honest helper has one Share to store.
func TestModelWithoutCompareAndSet(t *testing.T) {
	longtest.Sequential(t)
	t.Parallel()
	prepare := func(m LeaderMarks, a Attempt) (LeaderMarks, bool) { m.Prepared = a; return m, true }
	release := func(m LeaderMarks, a Attempt) (LeaderMarks, bool) { m.Released = a; return m, true }
	drop := func(m LeaderMarks, a Attempt) (LeaderMarks, bool) { m.Prepared = Attempt{}; return m, true }
	for what, change := range map[string]func(*explorer){
		"all":     func(x *explorer) { x.prepare, x.release, x.drop = prepare, release, drop },
		"prepare": func(x *explorer) { x.prepare = prepare },
		"drop":    func(x *explorer) { x.drop = drop },
		"look":    func(x *explorer) { x.hasty = true },
		"helper":  func(x *explorer) { x.restart = func(HelperMark) HelperMark { return HelperMark{} } },
	} {
		x := honest()
		x.first = true
		change(x)
		states, ways, _ := x.explore()
		if len(ways) == 0 {
			t.Errorf("without compare-and-set in %s: %d states, and nothing is broken", what, states)
		}
		for broken, way := range ways {
			t.Logf("%s: %s after %d states: %q", what, broken, states, way)
		}
	}
}

// A helper that lies to each process as it likes, with two Shares of one round, with gone and differs after a Share, and
// a broker that shows each process another Share, make rounds void and never get two releases of one round. That is
// what the compare-and-set of the release is for: without it they do.
func TestModelOfALyingHelper(t *testing.T) {
	longtest.Sequential(t)
	t.Parallel()
	x := honest()
	x.lying = true
	states, ways, _ := x.explore()
	t.Logf("%d states", states)
	if states < 500 || len(ways) > 0 {
		t.Errorf("%d states, broken: %q", states, ways)
	}
	x = honest()
	x.lying, x.first = true, true
	x.release = func(m LeaderMarks, a Attempt) (LeaderMarks, bool) { m.Released = a; return m, true }
	if states, ways, _ = x.explore(); ways["two releases of one round"] == nil {
		t.Errorf("without compare-and-set in release: %d states, and no two releases", states)
	}
}
