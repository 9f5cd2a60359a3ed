package method

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
)

// An uncut holds the information that the gradients of rounds give about losses without a cut.
type uncut struct {
	late float64 // sum over rounds, weighted as in tally.recent, of users times the lower bound on their mean loss
	// last is the mean of the last round's slopes times scores, noise included: the derivative of the loss as all scores
	// are scaled up.
	last float64
}

const (
	uncutWords = 2 // numbers in the encoding of an uncut

	// recovered is the share of the constant's loss below which the last round's slope shows that scores are no longer too
	// large. At the best multiple of a model the slope is 0.
	recovered = 0.25
)

// rare is minus the log of the probability that the lower bound on a round's loss is too large due to noise, and due to
// sampling: both together are as rare as an error of twice a band, see diverges.
var rare = surely*surely*math.Log(2/(1-validationConfidence)) + math.Ln2

// slopes returns the sloped of an estimate without scores, or false if it gives no information about losses.
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

// uncutDiverges writes the lower bound on the recent mean loss to out, if scores show less, and reports whether it
// exceeds the loss of the best constant. The lower bound on a round's loss is too large with probability at most 4e-7,
// and the constant's loss too small likewise: if no point is worse than the constant, a task of T rounds ever reports
// divergence with probability at most (T + 1) 4e-7. A plan whose last scores are not much too large has recovered.
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

// appendUncut appends the encoding of the uncut, if it holds information.
func (v *Validated) appendUncut(out []byte) []byte {
	if !v.told {
		return out
	}
	return AppendFloats(out, v.uncut.late, v.uncut.last)
}

// readUncut reads what appendUncut wrote, and returns the remaining bytes.
func readUncut(data []byte) (u uncut, rest []byte, err error) {
	if len(data) < 8*uncutWords {
		return u, nil, fmt.Errorf("%w: %d bytes do not hold what gradients said of losses", ErrState, len(data))
	}
	words := Floats(data[:8*uncutWords])
	u = uncut{late: words[0], last: words[1]}
	if !(u.late >= 0) || math.IsInf(u.late, 0) || math.IsNaN(u.last) || math.IsInf(u.last, 0) {
		return u, nil, fmt.Errorf("%w: a loss of at least %v, slopes of %v: want finite numbers, the first at least 0",
			ErrState, u.late, u.last)
	}
	return u, data[8*uncutWords:], nil
}
