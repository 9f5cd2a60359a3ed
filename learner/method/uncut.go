package method

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
)

// An uncut holds the information that the gradients of rounds give about the losses at their points where
// single losses are not cut.
type uncut struct {
	late float64 // sum over rounds, which count as in tally.recent, of users times what their mean loss is at least
	// mean of the last round's slopes times scores, noise included: by how much a share more of all scores raises the loss
	last float64
}

const (
	uncutWords = 2 // numbers that an uncut is written as

	// recovered is the share of the constant's loss that a last round's slope stays below where scores are no longer too
	// large. At the best multiple of a model it is 0.
	recovered = 0.25
)

// rare is minus the log of the probability that what a round's loss is at least is too large by noise, and by chance of
// the sample: both together exceed it as rarely as twice a band, see diverges.
var rare = surely*surely*math.Log(2/(1-validationConfidence)) + math.Ln2

// slopes reads an estimate's gradient, without scores, as a sloped; false where it gives no information about
// losses.
func (v *Validated) slopes(e Estimate) (sloped, bool) {
	if p, ok := v.inner.(*Practical); ok && v.tracking() == nil {
		return p.slopes(e)
	}
	return sloped{}, false
}

// addUncut counts a round, before its scores are counted.
func (v *Validated) addUncut(s sloped, share float64) {
	doubt, _ := v.inner.(*Practical).Problem.Doubt()
	v.told = true
	v.uncut.late = float64(share*v.uncut.late) + float64(s.users*s.least(doubt, rare, !v.repeated))
	v.uncut.last = s.mean
}

// uncutDiverges writes to out the lower bound on the recent mean loss, if scores show less, and reports whether
// it is above that of the best constant. The lower bound on a round's loss is too large with probability at
// most 4e-7, and the constant's loss too small likewise: where no point is worse than the constant, a task of T
// rounds ever reports it with probability at most (T + 1) 4e-7. A plan whose last scores are not too large by
// much has recovered.
func (v *Validated) uncutDiverges(out *Validation, of practical.Baseline) bool {
	least := v.uncut.late / v.tally.recent.users
	if !v.told || of.Loss == nil {
		return false
	}
	if least > out.Loss.Recent.High {
		out.LossAtLeast = &least
	}
	return v.tally.rounds >= divergeRounds && least > *of.Loss+surely*pointwise(of.LossNoise*of.LossNoise) &&
		v.uncut.last > recovered**of.Loss
}

// appendUncut writes what gradients said, if they said something.
func (v *Validated) appendUncut(out []byte) []byte {
	if !v.told {
		return out
	}
	return appendFloats(out, v.uncut.late, v.uncut.last)
}

// readUncut reads what appendUncut wrote, and returns what follows.
func readUncut(data []byte) (u uncut, rest []byte, err error) {
	if len(data) < 8*uncutWords {
		return u, nil, fmt.Errorf("%w: %d bytes do not hold what gradients said of losses", ErrState, len(data))
	}
	words := floats(data[:8*uncutWords])
	u = uncut{late: words[0], last: words[1]}
	if !(u.late >= 0) || math.IsInf(u.late, 0) || math.IsNaN(u.last) || math.IsInf(u.last, 0) {
		return u, nil, fmt.Errorf("%w: a loss of at least %v, slopes of %v: want finite numbers, the first at least 0",
			ErrState, u.late, u.last)
	}
	return u, data[8*uncutWords:], nil
}
