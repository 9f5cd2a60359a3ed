package stream

import (
	"math"
	"time"
)

// Bounds of the time in which the share of devices that may join doubles.
const (
	minDoubling  = 250 * time.Millisecond
	maxDoubling  = 30 * time.Second
	freeDoubling = 4 * time.Second // where a round has no deadline: longer than a device is slow to hear
)

// minShare bounds the share that an Open may announce from below, so that any is back at 1 after 16 doublings.
const minShare = 1.0 / (1 << 16)

// doubling is how fast the share grows while a round waits: all devices may join after half of its deadline at the latest,
// after 8 minutes where that is later, and after about one where there is none.
func doubling(deadline time.Duration) time.Duration {
	if deadline <= 0 {
		return freeDoubling
	}
	return min(max(deadline/32, minDoubling), maxDoubling)
}

// share is what an Open's join probability says: 0 is everybody.
func share(probability uint32) float64 {
	if probability == 0 {
		return 1
	}
	return max(float64(probability)/(1<<32), minShare)
}

// JoinProbability is the field of Open for a share of the devices that wait; 1 and more is everybody, 0.
func JoinProbability(of float64) uint32 {
	if !(of < 1) {
		return 0
	}
	return uint32(max(of, minShare) * (1 << 32))
}

// JoinShare is the share of the devices that may have joined an attempt so long after its Open.
func JoinShare(probability uint32, elapsed, deadline time.Duration) float64 {
	return min(1, share(probability)*math.Exp2(max(0, elapsed.Seconds())/doubling(deadline).Seconds()))
}

// ReserveAfter is how long after Open a device joins a later round of an interactive phase that no earlier round of the phase
// has counted: when all who join at once have come, so that it takes the place of one who left.
func ReserveAfter(deadline time.Duration) time.Duration { return 16 * doubling(deadline) }

// JoinAfter is how long after Open a device may join with its draw: 32 uniform bits, once for an attempt,
// which know nothing of its event. It is 0 for the announced share of all draws, and grows so slowly that twice
// as many have come when the time of one doubling is over.
func JoinAfter(probability, draw uint32, deadline time.Duration) time.Duration {
	u := (float64(draw) + 1) / (1 << 32)
	p := share(probability)
	if u <= p {
		return 0
	}
	return time.Duration(math.Log2(u/p) * float64(doubling(deadline)))
}

// Lots are what the events of one client draw for an attempt, together: a client of many events takes one place in each of equal parts of
// all draws, so that of its events as many join as the announced share says, and not more or fewer by chance. They are dealt in the
// order in which events wait, which knows nothing of what they say.
type Lots struct {
	of, dealt uint64
	within    float64 // of a part, in [0, 1)
}

// NewLots is for a client with so many events that wait; random are 32 uniform bits.
func NewLots(of uint64, random uint32) Lots { return Lots{of: of, within: float64(random) / (1 << 32)} }

// Next is the next event's draw, for JoinAfter; without a part that is left it is random.
func (l *Lots) Next(random uint32) uint32 {
	if l.dealt >= l.of {
		return random
	}
	u := (float64(l.dealt) + l.within) / float64(l.of)
	l.dealt++
	return uint32(min(u*(1<<32), math.MaxUint32))
}
