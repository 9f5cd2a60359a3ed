package method

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// A Validation holds the scores that the cohorts of a run reported at the announced points: progressive validation,
// test then train. It is post-processing of released batches.
//
// Averages are over the points announced so far and do not describe the model that would be released now. For a convex
// loss the loss of the mean point is at most the mean loss of the points.
type Validation struct {
	Rounds     uint64  `json:"rounds"`     // with scores
	Confidence float64 `json:"confidence"` // of each band
	// Repeated reports whether the same users answer all rounds of a phase: the bands are then about them alone, and the
	// model has learned from them.
	Repeated  bool    `json:"repeated,omitempty"`
	Loss      Scores  `json:"loss"`               // each event's loss is moved into the declared range
	LossBound float64 `json:"loss_bound"`         // its upper end: larger losses count as this
	Accuracy  *Scores `json:"accuracy,omitempty"` // share of correct predictions; nil for labels that are no classes
	// Worse reports whether the last round, or recent rounds, are predicted clearly worse than all rounds:
	// their bands lie apart. Then the events changed, or come in an order, such as the order of their labels.
	Worse bool `json:"worse,omitempty"`
	// Diverges reports whether the recent loss is larger than the loss of the best constant by more than twice
	// the bands of both, and the last round's loss by more than its band; or LossAtLeast is larger, and the
	// scores of the last round are still too large. The plan learns nothing, or steps too far. Diverges needs
	// three rounds, and a released baseline.
	Diverges bool `json:"diverges,omitempty"`
	// LossAtLeast is a lower bound on the recent mean loss without the cut at LossBound; nil if it is not above Loss, or
	// if gradients give no information about losses.
	LossAtLeast *float64 `json:"loss_at_least,omitempty"`
	// AtBound reports whether the recent loss is near LossBound, so that the true loss may be much larger.
	AtBound bool `json:"at_bound,omitempty"`
}

// Scores holds one score over three parts of a run.
type Scores struct {
	Last Band `json:"last"` // the last round alone
	// Recent weighs older rounds less, see RecentShare; for a stream without an end, as much as the model remembers them.
	Recent  Band `json:"recent"`
	Overall Band `json:"overall"` // all rounds; the band holds at all rounds simultaneously, however often it is read
}

// A Band is an estimate with an interval that holds the true mean with the confidence of its Validation.
type Band struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// RootMeanSquare converts scores of the squared loss into root mean square errors. unit is the size of one unit of the
// loss's label in the units of the data.
func (s Scores) RootMeanSquare(unit float64) Scores {
	root := func(b Band) Band {
		of := func(loss float64) float64 { return unit * math.Sqrt(2*max(loss, 0)) }
		return Band{Value: of(b.Value), Low: of(b.Low), High: of(b.High)}
	}
	return Scores{Last: root(s.Last), Recent: root(s.Recent), Overall: root(s.Overall)}
}

// RecentShare is the weight of a round in Scores.Recent relative to the round after it.
const RecentShare = 0.9

// validationConfidence is the confidence of bands.
const validationConfidence = 0.95

// A tally adds up scores. Everything in it is a sum over rounds with scores; weights are users.
type tally struct {
	rounds          uint64
	last            [2]float64 // means of the last round
	lastProxy       float64    // sub-Gaussian variance proxy of one of them
	prior           float64    // of the mixture behind Overall: the first round's share of overall.proxy
	recent, overall sums
}

type sums struct {
	users float64    // sum of w_t
	score [2]float64 // sum of w_t times the mean of round t
	proxy float64    // sum of w_t^2 times the proxy of round t
}

func (s *sums) add(share, users float64, mean [2]float64, proxy float64) {
	s.users = float64(share*s.users) + users
	s.proxy = float64(float64(share*share)*s.proxy) + float64(float64(users*users)*proxy)
	for i, m := range mean {
		s.score[i] = float64(share*s.score[i]) + float64(users*m)
	}
}

// worse compares scores that are better the larger they are, or the smaller: the last round's and recent scores
// with all.
func (s *Scores) worse(larger bool) bool {
	below := func(b Band) bool {
		if larger {
			return b.High < s.Overall.Low
		}
		return b.Low > s.Overall.High
	}
	return below(s.Last) || below(s.Recent)
}

// add counts a round of users whose mean has the given sub-Gaussian proxy of one coordinate. share is the factor on the
// weights of earlier rounds in the recent scores.
func (t *tally) add(share, users, proxy float64, mean [2]float64) {
	if t.rounds == 0 {
		t.prior = float64(float64(users*users) * proxy)
	}
	t.rounds++
	t.last, t.lastProxy = mean, proxy
	t.recent.add(share, users, mean, proxy)
	t.overall.add(1, users, mean, proxy)
}

// pointwise returns the half width of a band around a sum with a variance proxy that holds at one moment: by
// Chernoff's bound, a sum S of martingale differences of proxy V in all exceeds sqrt(2 V ln(2/alpha)) in
// magnitude with probability at most alpha.
func pointwise(proxy float64) float64 {
	return math.Sqrt(2 * proxy * math.Log(2/(1-validationConfidence)))
}

// uniform returns the half width of a band that holds at all moments at once: by the normal mixture with
// variance 1/prior and Ville's inequality, |S_t| stays below sqrt((V_t + r) ln((V_t + r)/(r alpha^2))) for all
// t with probability at least 1 - alpha (Robbins, Statistical Methods Related to the Law of the Iterated
// Logarithm, 1970; docs/reference/bounds.md has the steps).
func uniform(proxy, prior float64) float64 {
	if prior == 0 { // neither noise nor a sample
		return 0
	}
	const alpha = 1 - validationConfidence
	return math.Sqrt((proxy + prior) * math.Log((proxy+prior)/(prior*alpha*alpha)))
}

// scores returns the scores of one coordinate. read turns a mean into the score that it encodes, within [low,
// high].
func (t *tally) scores(i int, read func(mean float64) float64, low, high float64) Scores {
	band := func(mean, half float64) Band {
		within := func(x float64) float64 { return min(max(x, low), high) }
		return Band{Value: within(read(mean)), Low: within(read(mean - half)), High: within(read(mean + half))}
	}
	return Scores{
		Last:    band(t.last[i], pointwise(t.lastProxy)),
		Recent:  band(t.recent.score[i]/t.recent.users, pointwise(t.recent.proxy)/t.recent.users),
		Overall: band(t.overall.score[i]/t.overall.users, uniform(t.overall.proxy, t.prior)/t.overall.users),
	}
}

// validation returns the summary of a tally; nil before the first round with scores.
func (t *tally) validation(card convex.Scorecard, repeated bool) *Validation {
	if t.rounds == 0 {
		return nil
	}
	out := &Validation{Rounds: t.rounds, Confidence: validationConfidence, Repeated: repeated, LossBound: card.High,
		Loss: t.scores(0, card.Loss, card.Low, card.High)}
	if card.Correctness {
		accuracy := t.scores(1, card.Accuracy, 0, 1)
		out.Accuracy = &accuracy
	}
	out.AtBound = out.Loss.Recent.Value > card.Low+nearBound*(card.High-card.Low)
	out.Worse = out.Loss.worse(false) || out.Accuracy != nil && out.Accuracy.worse(true)
	return out
}

const (
	divergeRounds = 3   // least number of scored rounds before divergence is reported
	surely        = 2   // bands that scores must lie apart
	numberFactor  = 2   // times the constant's loss of numbers, whose first look is cut and shrunk
	nearBound     = 0.9 // share of the scale
)

// diverges compares the loss with the loss of the best constant, which a first look released with noise of its own. A
// recent mean is off by twice its half width h = sqrt(2 V ln 40) to one side with probability at most exp(-4 ln 40) =
// 4e-7, and so is the constant's: if the recent points are no worse than the best constant, a round reports divergence
// with probability at most 8e-7, and 1,000 rounds with 8e-4. Losses, the constant's too, are cut at the bound, which
// makes them smaller, never larger. The last round must be worse as well, by its own band; otherwise the plan has
// recovered.
func (t *tally) diverges(card convex.Scorecard, of *practical.Baseline) bool {
	if of == nil || of.Loss == nil || t.rounds < divergeRounds {
		return false
	}
	most := *of.Loss + surely*pointwise(of.LossNoise*of.LossNoise)
	if of.Shares == nil {
		most = numberFactor * *of.Loss
	}
	late := card.Loss((t.recent.score[0] - surely*pointwise(t.recent.proxy)) / t.recent.users)
	return late > most && card.Loss(t.last[0]-pointwise(t.lastProxy)) > *of.Loss
}
