package stage

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// at returns a time of tests, so long after the Open of the attempt.
func at(after time.Duration) time.Time { return time.Unix(1e9, 0).Add(after) }

func newTable(cohort, minimum uint64) *placeTable {
	return &placeTable{cohort: cohort, minimum: minimum, bundle: 64, lease: 3 * time.Second, started: at(0),
		deadline: at(time.Minute)}
}

func asking(n uint64, users uint32) (r stream.PlaceRequest) {
	binary.BigEndian.PutUint64(r.ID[:], n)
	r.Users = users
	return r
}

// give requests places and returns how many were given.
func give(t *placeTable, now time.Time, n uint64, users uint32) uint32 {
	return t.answer(now, asking(n, users)).Users
}

func TestPlacesNeverExceedTheCohort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cohort := rapid.Uint64Range(1, 60).Draw(rt, "cohort")
		table := newTable(cohort, rapid.Uint64Range(1, cohort).Draw(rt, "minimum"))
		now, ids := at(0), uint64(0)
		var given, ended uint64
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "later")))
			case 1, 2:
				ids++
				id := rapid.Uint64Range(max(1, ids)-1, ids).Draw(rt, "id")
				known := table.answers[asking(id, 1).ID]
				got := table.answer(now, asking(id, rapid.Uint32Range(1, 100).Draw(rt, "users")))
				if known.Verdict != 0 && got != known {
					rt.Fatalf("the same id got %+v, and then %+v", known, got)
				}
				if known.Verdict == 0 {
					given += uint64(got.Users)
				}
				taken := table.accepted + table.unopened + table.live
				if known.Verdict == 0 && got.Users > 0 && taken > cohort {
					rt.Fatalf("%d places given, and now %d of %d are taken", got.Users, taken, cohort)
				}
				if got.Users > 64 {
					rt.Fatalf("%d users in one answer: want max_bundle at most", got.Users)
				}
			case 3: // reports come, with places and without
				table.unopened = rapid.Uint64Range(0, 20).Draw(rt, "unopened")
			case 4:
				table.opened(min(rapid.Uint64Range(1, 5).Draw(rt, "opened"), table.cohort-min(table.accepted, table.cohort)))
			}
			var live uint64
			for _, g := range table.grants {
				live += g.users
			}
			if ended = table.counts.Unused; live != table.live || table.counts.Granted != given || live+ended > given {
				rt.Fatalf("%d live, %d counted so; %d given, %d counted so; %d unused", live, table.live, given,
					table.counts.Granted, ended)
			}
		}
	})
}

func TestReportsThatWaitTakePlaces(t *testing.T) {
	table := newTable(10, 5)
	table.opened(3)
	table.unopened = 4
	if got := give(table, at(0), 1, 10); got != 3 {
		t.Errorf("%d places beside 3 counted and 4 that wait: want 3 of 10", got)
	}
	if got := give(table, at(0), 2, 1); got != 0 {
		t.Errorf("%d places where none is left", got)
	}
}

func TestReportTakesTheOldestPlaceOff(t *testing.T) {
	table := newTable(10, 5)
	give(table, at(0), 1, 4)
	give(table, at(time.Second), 2, 4)
	table.opened(5) // of anybody
	if len(table.grants) != 1 || table.grants[0] != (givenPlaces{at: at(time.Second), users: 3}) || table.live != 3 {
		t.Errorf("left %+v, %d live: want 3 of the newer places", table.grants, table.live)
	}
	if table.opened(4); table.counts.Without != 1 || table.live != 0 {
		t.Errorf("%d users found no place, %d live: want 1, 0", table.counts.Without, table.live)
	}
}

func TestSameRequestSameAnswer(t *testing.T) {
	table := newTable(2, 1)
	first, full := table.answer(at(0), asking(1, 2)), table.answer(at(0), asking(2, 1))
	if first.Users != 2 || full.Verdict != stream.PlaceWait {
		t.Fatalf("%+v and %+v: want both places, and to wait", first, full)
	}
	table.opened(2)
	for i, want := range []stream.PlaceAnswer{first, full} {
		if got := table.answer(at(time.Second), asking(uint64(i)+1, 1)); got != want {
			t.Errorf("%+v at first, then %+v", want, got)
		}
	}
	for n := range uint64(mostAnswers + 10) {
		table.answer(at(time.Second), asking(n+3, 1))
	}
	if n := len(table.answers); n != mostAnswers || len(table.ids) != mostAnswers {
		t.Errorf("%d answers and %d ids are remembered: want %d", n, len(table.ids), mostAnswers)
	}
}

func TestPlaceEndsAfterItsLease(t *testing.T) {
	table := newTable(1, 1)
	give(table, at(0), 1, 1)
	if got := give(table, at(3*time.Second-1), 2, 1); got != 0 {
		t.Error("the place was given to another before its lease was over")
	}
	if got := give(table, at(3*time.Second), 3, 1); got != 1 || table.counts.Unused != 1 {
		t.Errorf("%d places after the lease, %d unused: want 1, 1", got, table.counts.Unused)
	}
	table.unopened = 1 // it may be the report that the place is for
	table.expire(at(30 * time.Second))
	if table.live != 1 {
		t.Error("the place ended while a report waited that may be its own")
	}
	if table.expire(at(63*time.Second - 1)); table.live != 1 {
		t.Error("the place ended before one lease after the deadline")
	}
	if table.expire(at(63 * time.Second)); table.live != 0 {
		t.Error("the place lives one lease after the deadline")
	}
}

// TestGarbageKeepsNoPlaces: what comes after a lease is over is not the report that its place waits for.
func TestGarbageKeepsNoPlaces(t *testing.T) {
	table := newTable(2, 1)
	give(table, at(0), 1, 1)
	give(table, at(time.Second), 2, 1)
	for _, c := range []struct {
		now, known         time.Duration
		examined, messages uint64
		live               uint64
	}{
		{3 * time.Second, 2900 * time.Millisecond, 0, 5, 2}, // the fetch was before: a report may have come after it
		{3 * time.Second, 3 * time.Second, 1, 6, 2},         // 7 had come
		{4 * time.Second, 3900 * time.Millisecond, 6, 9, 2},
		{4 * time.Second, 3900 * time.Millisecond, 7, 20, 1},
		{5 * time.Second, 4 * time.Second, 8, 30, 1}, // 38 had come
		{9 * time.Second, 9 * time.Second, 37, 99, 1},
		{9 * time.Second, 9 * time.Second, 38, 99, 0},
	} {
		table.waits(c.examined, c.messages, 1, at(c.known))
		if table.expire(at(c.now)); table.live != c.live {
			t.Errorf("%+v: %d places live", c, table.live)
		}
	}
	if table.counts.Unused != 2 {
		t.Errorf("%d places ended unused: want 2", table.counts.Unused)
	}
}

func TestAfterTheDeadlineNoPlaceIsGiven(t *testing.T) {
	table := newTable(10, 5)
	table.opened(5)
	if got := table.answer(at(time.Minute), asking(1, 1)); got.Verdict != stream.PlaceOver {
		t.Errorf("%+v after the deadline with the minimum: want that it is over", got)
	}
	missing := newTable(10, 5)
	missing.opened(4)
	if got := give(missing, at(2*time.Minute), 1, 1); got != 1 {
		t.Error("no place after the deadline while the minimum is missing: the round would never close")
	}
	if until := missing.lives(at(2 * time.Minute)); until != at(2*time.Minute+3*time.Second) {
		t.Errorf("it lives until %v: want one lease", until)
	}
	full := newTable(1, 1)
	full.opened(1)
	if got := full.answer(at(0), asking(1, 1)); got.Verdict != stream.PlaceOver {
		t.Errorf("%+v of a full round: want that it is over", got)
	}
}

func TestChargedBeforeAreServedFirst(t *testing.T) {
	table := newTable(10, 5)
	table.reserved = at(3 * time.Second)
	charged := asking(2, 1)
	charged.Charged = true
	if got := table.answer(at(time.Second), asking(1, 1)); got.Verdict != stream.PlaceWait || got.Time != 2*time.Second {
		t.Errorf("%+v for others in the first lease: want to wait for the rest of it", got)
	}
	if got := table.answer(at(time.Second), charged); got.Users != 1 {
		t.Errorf("%+v for users who were charged before: want a place", got)
	}
	if got := give(table, at(3*time.Second), 3, 1); got != 1 {
		t.Error("no place for others after the first lease")
	}
}

func TestLeaseFollowsFromReportsWithoutPlaces(t *testing.T) {
	for _, c := range []struct {
		lease                     time.Duration
		accepted, without, unused uint64
		want                      time.Duration
	}{
		{3 * time.Second, 1000, 11, 0, 6 * time.Second},
		{3 * time.Second, 1000, 10, 0, 3 * time.Second},
		{20 * time.Second, 100, 2, 0, 30 * time.Second},
		{12 * time.Second, 1000, 0, 250, 6 * time.Second},
		{12 * time.Second, 1000, 0, 334, 12 * time.Second}, // a quarter of the places given
		// devices that are far away find no place that lasts less, and show nothing
		{3 * time.Second, 1000, 0, 0, 3 * time.Second},
		{6 * time.Second, 0, 0, 0, 6 * time.Second},
		{3 * time.Second, 100, 0, 101, 30 * time.Second},
		{3 * time.Second, 100, 100, 150, 6 * time.Second}, // reports came late, which is no flood
	} {
		table := &placeTable{lease: c.lease, accepted: c.accepted, counts: PlaceCounts{
			Granted: c.accepted - c.without + c.unused, Unused: c.unused, Without: c.without}}
		if got := table.shows(); got != c.want {
			t.Errorf("%v after %+v: want %v", got, c, c.want)
		}
	}
	for _, c := range []struct{ shown, deadline, want time.Duration }{
		{0, 0, 3 * time.Second},
		{0, 5 * time.Minute, 9375 * time.Millisecond},
		{12 * time.Second, 5 * time.Minute, 12 * time.Second},
		{20 * time.Second, 5 * time.Minute, 18750 * time.Millisecond},
		{3 * time.Second, 0, 3 * time.Second},
		{time.Hour, 0, 30 * time.Second},
		{3 * time.Second, 16 * time.Second, time.Second},
		{30 * time.Second, time.Hour, 30 * time.Second},
		{3 * time.Second, 7 * time.Second, 0},
	} {
		if got := leaseWithin(c.shown, c.deadline); got != c.want {
			t.Errorf("%v with a deadline of %v, where %v did: want %v", got, c.deadline, c.shown, c.want)
		}
	}
}

// TestHelperKeepsPlaces: reports that a helper has not decided keep their places until one lease after the deadline, and
// are no flood however long it takes; decided ones do not.
func TestHelperKeepsPlaces(t *testing.T) {
	for _, undecided := range []uint64{40, 0} {
		table := newTable(40, 20)
		for n := range uint64(40) {
			give(table, at(0), n, 1)
		}
		table.undecided = undecided
		table.waits(40, 0, 0, at(3*time.Second))
		kept := uint64(0)
		if undecided > 0 {
			kept = 40
		}
		if table.expire(at(9 * time.Second)); table.live != kept {
			t.Errorf("%d undecided: %d places live, want %d", undecided, table.live, kept)
		}
		if got := table.flooded(at(9*time.Second), time.Minute); got != (undecided == 0) {
			t.Errorf("%d undecided: flooded %v", undecided, got)
		}
		if got := table.flooded(at(time.Hour), time.Minute); got != (undecided == 0) {
			t.Errorf("%d undecided, long after the deadline: flooded %v", undecided, got)
		}
	}
}

func TestFloodOfPlaces(t *testing.T) {
	flood := func(used uint64) bool {
		table := newTable(40, 20)
		for n := range uint64(40) {
			give(table, at(0), n, 1)
		}
		table.opened(used)
		if table.flooded(at(time.Minute/16), time.Minute) || table.flooded(at(9*time.Second-1), time.Minute) {
			t.Error("flooded before a sixteenth of the deadline, or after one wave of places")
		}
		if table.flooded(at(time.Minute-1), 16*time.Minute) {
			t.Error("flooded before a sixteenth of a long deadline")
		}
		return table.flooded(at(9*time.Second), time.Minute)
	}
	if !flood(19) {
		t.Error("21 of 40 places ended unused: want a flood")
	}
	if flood(20) {
		t.Error("20 of 40 places ended unused: want no flood")
	}
	endless := newTable(40, 20)
	endless.lease, endless.deadline = longestLease, time.Time{}
	for n := range uint64(40) {
		give(endless, at(0), n, 1)
	}
	if endless.flooded(at(3*longestLease-1), 0) || !endless.flooded(at(3*longestLease), 0) {
		t.Error("without a deadline, too, a flood lasts three leases")
	}
	few := newTable(10, 5)
	give(few, at(0), 1, 10)
	if few.flooded(at(10*time.Second), time.Minute) {
		t.Error("10 unused places are few enough to be devices that died")
	}
}

func TestAsksSayWhenToAskAgain(t *testing.T) {
	var few, many asks
	for n := range 100 {
		few.saw(at(time.Duration(n)*time.Millisecond), 4*time.Second, 1)
	}
	if got := few.wait(4 * time.Second); got != time.Second {
		t.Errorf("asked again after %v where few ask: want a quarter of the lease", got)
	}
	for range 20_000 {
		many.saw(at(0), 4*time.Second, 1)
	}
	if got := many.wait(4 * time.Second); got != 10*time.Second {
		t.Errorf("asked again after %v where 20,000 ask in a second: want 10s, for %d a second", got, asksASecond)
	}
	if got := many.waiting(stream.AskRamp(0.25)); got < 79_999 || got > 80_001 {
		t.Errorf("%v users are taken to wait where a quarter of them, 20,000, asked", got)
	}
}

// TestOneAskIsNoCrowd: a request that names more users than it can get does not make the stage believe that they wait.
func TestOneAskIsNoCrowd(t *testing.T) {
	now := time.Now()
	p := &placeTable{cohort: 1000, minimum: 900, bundle: 64, lease: 3 * time.Second, started: now, deadline: now.Add(time.Minute)}
	p.answer(now, stream.PlaceRequest{ID: [16]byte{1}, Users: 1<<32 - 1})
	if n := p.asks.waiting(stream.AskRamp(1)); n > float64(p.bundle) {
		t.Errorf("%.0f users are taken to wait: one request asks for %d at most", n, p.bundle)
	}
}
