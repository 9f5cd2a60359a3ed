package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A placeTable counts the places that one attempt has to give, and gives them before devices charge anybody. Its number
// is bounded by what may still be counted: users in the totals, reports that wait unopened, and places that were given
// and not used are together at most the cohort. It has no clock, lock or network of its own.
//
// A place binds nobody. A report takes the oldest place off when it is opened, no matter who sent it, so that nothing links a
// request to a report.
type placeTable struct {
	cohort, minimum uint64
	bundle          uint64 // users that one request gets at most
	lease           time.Duration
	started         time.Time
	deadline        time.Time // zero: none
	reserved        time.Time // until then only users get places that an earlier attempt charged; zero: everybody does

	accepted  uint64 // users in the totals
	unopened  uint64 // users of reports that are assumed to wait, on the broker or in the stage
	examined  uint64 // messages
	undecided uint64 // users of examined reports whom the helper of trust split has not decided

	grants []givenPlaces // that live, oldest first
	live   uint64        // users of grants
	// Answers by the id of their requests, and these in the order in which they came, of which the oldest are forgotten.
	answers map[[16]byte]stream.PlaceAnswer
	ids     [][16]byte
	oldest  int // in ids, once they are mostAnswers

	counts PlaceCounts
	asks   asks
	warned bool // that most places end unused
}

// A givenPlaces holds places that were given in one answer.
type givenPlaces struct {
	at    time.Time
	users uint64
	until uint64 // messages that had come once its lease was over, the examined ones too; 0: not known yet
}

// PlaceCounts sum up the places of attempts, in users.
type PlaceCounts struct {
	Granted uint64 // places that were given
	Unused  uint64 // of these, those that ended without a report
	Without uint64 // accepted users without a place: the report came late, or never had one
}

func (c *PlaceCounts) add(d PlaceCounts) {
	c.Granted, c.Unused, c.Without = c.Granted+d.Granted, c.Unused+d.Unused, c.Without+d.Without
}

// mostAnswers bounds the answers that are remembered. A request that is repeated after so many others counts as a new
// one: at worst it gets places twice, and those of the first answer end unused.
const mostAnswers = 1 << 16

// answer decides one request. The same id gets the same answer.
func (t *placeTable) answer(now time.Time, r stream.PlaceRequest) stream.PlaceAnswer {
	if a, known := t.answers[r.ID]; known {
		return a
	}
	t.expire(now)
	t.asks.saw(now, t.lease, min(uint64(r.Users), t.bundle))
	a := stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceWait, Time: t.asks.wait(t.lease)}
	switch free := t.free(now); {
	case t.over(now):
		a.Verdict, a.Time = stream.PlaceOver, 0
	case !r.Charged && now.Before(t.reserved):
		a.Time = max(t.reserved.Sub(now), a.Time)
	case free > 0:
		users := min(uint64(r.Users), t.bundle, free)
		t.grants = append(t.grants, givenPlaces{at: now, users: users})
		t.live += users
		t.counts.Granted += users
		a.Verdict, a.Users, a.Time = stream.PlaceGranted, uint32(users), t.lease
	}
	t.remember(a)
	return a
}

func (t *placeTable) remember(a stream.PlaceAnswer) {
	if t.answers == nil {
		t.answers = make(map[[16]byte]stream.PlaceAnswer)
	}
	if len(t.ids) < mostAnswers {
		t.ids = append(t.ids, a.ID)
	} else {
		delete(t.answers, t.ids[t.oldest])
		t.ids[t.oldest] = a.ID
		t.oldest = (t.oldest + 1) % mostAnswers
	}
	t.answers[a.ID] = a
}

// late reports whether the deadline is over.
func (t *placeTable) late(now time.Time) bool { return !t.deadline.IsZero() && !now.Before(t.deadline) }

// over reports whether the attempt takes nobody any more: it is full, or has its minimum at the deadline. Without its
// minimum it goes on, and so do its places.
func (t *placeTable) over(now time.Time) bool {
	return t.accepted >= t.cohort || t.late(now) && t.accepted >= t.minimum
}

// free returns the number of places that may be given.
func (t *placeTable) free(now time.Time) uint64 {
	if t.over(now) {
		return 0
	}
	taken := t.accepted + t.unopened + t.live
	return t.cohort - min(taken, t.cohort)
}

// opened takes off the oldest places of the users of a report that was counted, no matter who sent it.
func (t *placeTable) opened(users uint64) {
	t.accepted += users
	for users > 0 && len(t.grants) > 0 {
		g := &t.grants[0]
		n := min(users, g.users)
		g.users, t.live, users = g.users-n, t.live-n, users-n
		if g.users == 0 {
			t.grants = t.grants[1:]
		}
	}
	t.counts.Without += users
}

// waits notes how many messages were examined, and how many waited behind them at a time that is past, which are taken
// to hold so many users.
func (t *placeTable) waits(examined, messages, users uint64, known time.Time) {
	t.examined, t.unopened = examined, users
	for i := range t.grants {
		g := &t.grants[i]
		if known.Before(g.at.Add(t.lease)) {
			return
		}
		if g.until == 0 {
			g.until = max(examined+messages, 1)
		}
	}
}

// expire ends places with an expired lease and no report that waits to be examined or for the helper. As messages are
// examined in the order in which they came, the report for a place must be among those that had come when its lease
// expired: later messages, such as garbage, keep no place. No place lives longer than one lease after the deadline.
func (t *placeTable) expire(now time.Time) {
	for len(t.grants) > 0 {
		g := t.grants[0]
		wait := t.unopened+t.undecided > 0 && (g.until == 0 || t.examined-min(t.undecided, t.examined) < g.until)
		if now.Before(g.at.Add(t.lease)) || wait && (t.deadline.IsZero() || now.Before(t.last(g))) {
			return
		}
		t.grants, t.live = t.grants[1:], t.live-g.users
		t.counts.Unused += g.users
	}
}

// last returns when a grant ends at the latest, where there is a deadline. After that grants are given only while the
// minimum is missing.
func (t *placeTable) last(g givenPlaces) time.Time {
	if g.at.After(t.deadline) {
		return g.at.Add(t.lease)
	}
	return t.deadline.Add(t.lease)
}

// lives returns until when some place lives, if no report waits; the zero time if none does.
func (t *placeTable) lives(now time.Time) time.Time {
	t.expire(now)
	n := len(t.grants)
	if n == 0 {
		return time.Time{}
	}
	if g := t.grants[n-1]; now.Before(g.at.Add(t.lease)) {
		return g.at.Add(t.lease)
	}
	return now.Add(t.lease / 4) // reports wait: look again then
}

// fewUnused is the number of places that may end unused in any attempt.
const fewUnused = 16

// waves is the number of leases that a flood lasts at least.
const waves = 3

// flooded reports whether somebody requests places and does not use them: after a sixteenth of the deadline most places
// ended unused. One wave of places proves nothing, because devices that receive a round at the same time are slow
// together.
func (t *placeTable) flooded(now time.Time, deadline time.Duration) bool {
	t.expire(now)
	after := deadline / 16
	if deadline == 0 {
		after = longestLease
	}
	return now.Sub(t.started) >= max(after, waves*t.lease) && t.mostUnused()
}

// mostUnused reports whether more than half of the places that were given ended without a report, and so many that
// single devices that died do not explain them. A report that found no place left is taken to have had one that ended, and
// so is one that the helper has not decided.
func (t *placeTable) mostUnused() bool {
	unused := t.counts.Unused - min(t.counts.Without+t.undecided, t.counts.Unused)
	return 2*unused > t.counts.Granted && unused >= max(fewUnused, t.cohort/4)
}

// Bounds of the time for which a place is kept.
const (
	firstLease    = 3 * time.Second
	longestLease  = 30 * time.Second
	shortestLease = 500 * time.Millisecond // no device far away could use a shorter one
)

// leaseWithin returns the time for which places of an attempt are kept, of one that attempts before have shown to do; 0
// where the deadline leaves no time for places. It is a sixteenth of the deadline at most, for places of devices that
// die hold a round up, and half of that at least, for a round that may take long can wait for devices that are slow.
func leaseWithin(shown, deadline time.Duration) time.Duration {
	least, most := firstLease, longestLease
	if deadline > 0 {
		least, most = max(least, deadline/32), min(most, deadline/16)
	}
	if most < shortestLease {
		return 0
	}
	return min(max(shown, least), most).Truncate(time.Millisecond)
}

// shows returns the lease that suits, judged by this attempt: the longest if most places ended unused, because a device
// that receives its place late does not use it; twice its own if more than 1 % of the accepted users found no place
// left; half of it if none did and at most a quarter of the places ended unused. It is never learned from when reports
// come, which senders choose.
func (t *placeTable) shows() time.Duration {
	lease := t.lease
	switch {
	case t.warned || t.mostUnused():
		lease = longestLease
	case t.accepted == 0:
	case 100*t.counts.Without > t.accepted:
		lease *= 2
	case t.counts.Without == 0 && 4*t.counts.Unused <= t.counts.Granted:
		lease /= 2
	}
	return min(max(lease, firstLease), longestLease)
}

// asks counts requests for places, from which follow the time of the next request and the number of users that wait.
type asks struct {
	begun  time.Time // of the span that is counted now
	span   uint64    // requests in it
	before uint64    // in the span before

	first, last time.Time // of the very first span, in which nobody makes a second request
	users       uint64    // that asked in it
}

// asksASecond is the rate of repeated requests, in 1/s, that wait aims at.
const asksASecond = 2000

func (a *asks) saw(now time.Time, lease time.Duration, users uint64) {
	span := lease / 4
	if a.first.IsZero() {
		a.begun, a.first = now, now
	}
	if now.Sub(a.first) < span {
		a.users, a.last = a.users+users, now
	}
	if gone := now.Sub(a.begun); gone >= span {
		if a.before = a.span; gone >= 2*span {
			a.before = 0
		}
		a.begun, a.span = now, 0
	}
	a.span++
}

// wait returns the time after which a request may be made again: a quarter of the lease, and longer if requests exceed
// asksASecond, up to the longest lease.
func (a *asks) wait(lease time.Duration) time.Duration {
	span := lease / 4
	crowd := float64(max(a.span, a.before)) / (asksASecond * span.Seconds())
	return time.Duration(min(max(crowd, 1)*float64(span), float64(longestLease))).Truncate(time.Millisecond)
}

// waiting estimates how many users wait, from requests made before anybody could make a second one; 0: there was none.
func (a *asks) waiting(ramp stream.Ramp) float64 {
	return float64(a.users) / ramp.Share(a.last.Sub(a.first))
}
