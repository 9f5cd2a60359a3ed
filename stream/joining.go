package stream

import (
	"math"
	"time"
)

// Bounds of the time in which the share of devices that may join doubles.
const (
	minDoubling  = 250 * time.Millisecond
	maxDoubling  = 30 * time.Second
	freeDoubling = time.Second // where a round has no deadline: longer than a wake takes to reach a slow device
	workDoubling = 16          // times what a stage needs for a cohort, where half of the deadline leaves the time
	holds        = 4           // the part of a doubling for which the share stays as it is announced
	mostDoubling = time.Hour
)

// minShare bounds the share that an Open may announce from below, so that any is back at 1 after 16 doublings.
const minShare = 1.0 / (1 << 16)

// doubling returns the time in which the joining share doubles while a round waits: all devices may join after half of
// its deadline at the latest, after 8 minutes if that is later, and after a quarter of a minute if there is no
// deadline.
func doubling(deadline time.Duration) time.Duration {
	if deadline <= 0 {
		return freeDoubling
	}
	return min(max(deadline/32, minDoubling), maxDoubling)
}

// A Ramp decides when the devices that wait for a round may join an attempt: a share of them at once, no others for a
// quarter of Doubling, in which the reports of these arrive, and then twice as many after each Doubling.
type Ramp struct {
	Probability uint32 // the share, of 2^32; 0 is everybody
	Doubling    time.Duration
}

// RampOf returns the ramp that an Open announces.
func RampOf(probability, doublingMs uint32) Ramp {
	r := Ramp{Probability: probability, Doubling: time.Duration(doublingMs) * time.Millisecond}
	if doublingMs == 0 {
		r.Doubling = freeDoubling
	}
	return r
}

// NewRamp returns a ramp that begins with a share of the devices that wait; 1 and more is everybody. work is the time
// that the stage takes to open the reports of a cohort: a share that doubles meanwhile would invite more reports before
// any device learns that these are enough. All devices may join before half of the deadline is over, or after some
// minutes if there is none. If the stage works for so long that the share would grow meanwhile, the share stays as
// announced until the stage is done, for a quarter of the deadline or of a minute at most: a user who joins a full
// round pays for nothing, and a round that fills late costs nobody anything.
func NewRamp(share float64, work, deadline time.Duration) Ramp {
	r := Ramp{Doubling: max(doubling(deadline), min(workDoubling*work, 2*maxDoubling))}
	if share < 1 {
		share = max(share, minShare)
		r.Probability = uint32(share * (1 << 32))
		if last := time.Duration(float64(deadline/2) / (1.0/holds - math.Log2(share))); deadline > 0 {
			r.Doubling = min(r.Doubling, max(last, minDoubling))
		}
		r.Doubling = max(r.Doubling, min(holds*work, max(2*maxDoubling, deadline), mostDoubling))
	}
	r.Doubling = r.Doubling.Truncate(time.Millisecond)
	return r
}

// AskRamp returns the ramp of an attempt with places: a share of the devices requests places at once, and twice as many
// after each second, because a request costs nothing.
func AskRamp(share float64) Ramp {
	r := Ramp{Doubling: freeDoubling}
	if share < 1 {
		r.Probability = uint32(max(share, minShare) * (1 << 32))
	}
	return r
}

// first returns the share of the devices that may join at once.
func (r Ramp) first() float64 {
	if r.Probability == 0 {
		return 1
	}
	return max(float64(r.Probability)/(1<<32), minShare)
}

// Share returns the share of the devices that may have joined an attempt this long after its Open.
func (r Ramp) Share(elapsed time.Duration) float64 {
	return min(1, r.first()*math.Exp2(max(0, elapsed.Seconds()/r.Doubling.Seconds()-1.0/holds)))
}

// After returns the time after Open at which a device may join with its draw: 32 uniform bits, drawn once for an
// attempt and independent of its event. It is 0 for the announced share of all draws, and grows so slowly that twice
// as many have come when the time of one doubling is over.
func (r Ramp) After(draw uint32) time.Duration {
	u := (float64(draw) + 1) / (1 << 32)
	if u <= r.first() {
		return 0
	}
	return time.Duration((1.0/holds + math.Log2(u/r.first())) * float64(r.Doubling))
}

// Turn adjusts the draw of an organisation so that all organisations report equally often: took is the number of its
// reports in earlier rounds, asked the number that those rounds asked for in all, and of the number of organisations.
// Those with fewer reports come first, in an order that is drawn. If they reported otherwise than asked, the first
// ones still do not come all at once.
func Turn(draw uint32, took, asked, of, cohort uint64) uint32 {
	u := float64(draw) / (1 << 32)
	behind := 1 - float64(asked%of)/float64(of) // the part of all that had fewer
	behind = min(max(behind, float64(cohort)/float64(2*of)), 0.75)
	if took <= asked/of {
		u *= behind
	} else {
		u = behind + u*(1-behind)
	}
	return uint32(min(u*(1<<32), math.MaxUint32))
}

// ReserveAfter returns the time after Open at which a device that no earlier round of an interactive phase has counted
// joins a later round of the phase: when all who join at once have come, so that it takes the place of one who left.
// It is at most half of the deadline, for a round that closes earlier would never take the device.
func ReserveAfter(deadline time.Duration) time.Duration {
	after := 16 * doubling(deadline)
	if deadline > 0 {
		after = min(after, deadline/2)
	}
	return after
}

// Lots deals the draws of one client's events for an attempt: a client of many events takes one place in each of equal
// parts of all draws, so that the announced share of its events joins, and not more or fewer by chance. Draws are
// dealt in the order in which events wait, which is independent of their content.
type Lots struct {
	of, dealt uint64
	within    float64 // of a part, in [0, 1)
}

// NewLots returns the Lots of a client with so many events that wait; random is 32 uniform bits.
func NewLots(of uint64, random uint32) Lots { return Lots{of: of, within: float64(random) / (1 << 32)} }

// Next returns the next event's draw, for Ramp.After. Once all parts are dealt it returns random.
func (l *Lots) Next(random uint32) uint32 {
	if l.dealt >= l.of {
		return random
	}
	u := (float64(l.dealt) + l.within) / float64(l.of)
	l.dealt++
	return uint32(min(u*(1<<32), math.MaxUint32))
}
