package split

import "time"

// MaxRequestBytes is the largest encoding of a request.
const MaxRequestBytes = 512 << 10

// Window is the most requests that may be unanswered. A helper keeps so many replies.
const Window = 32

// Bounds of the exchange.
const (
	maxUsers     = 256       // of one request
	windowBytes  = 8 << 20   // of the requests of a window
	windowShares = 64 << 20  // bytes of output shares that wait for a reply
	leastIDs     = 1_000_000 // an attempt may show the helper so many, or four cohorts
)

// Again returns how long the leader waits for a reply before it sends a request, ping or finish for the times-th time
// more: max(4 round trips, 250 ms) and the time that the last replies took, doubled each time, up to a quarter of the
// lease.
func Again(roundTrip, replies, lease time.Duration, times int) time.Duration {
	most := lease / 4
	wait := max(4*roundTrip, 250*time.Millisecond) + replies
	for range times {
		if wait >= most {
			break
		}
		wait *= 2
	}
	return min(wait, most)
}

// After returns how long the leader waits before it opens the next attempt, after an attempt and times more before it
// were gone: one second, doubled each time, up to a minute.
func After(times int) time.Duration {
	wait := time.Second
	for range times {
		if wait *= 2; wait >= time.Minute {
			return time.Minute
		}
	}
	return wait
}
