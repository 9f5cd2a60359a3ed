package method

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Validated wraps a method whose users also report the point's scores on their own events. It keeps the scores and
// passes the gradient to the method. The resulting Validation is post-processing of the same release as the step, so it
// costs no further privacy.
type Validated struct {
	card     convex.Scorecard
	repeated bool // the same users answer all rounds of a phase
	inner    Method
	tally    tally
	told     bool // gradients of a round gave information about losses without a cut
	uncut    uncut
	config   [sha256.Size]byte
}

// NewValidated wraps a method at its start. repeated reports whether the same users answer all rounds of a phase.
func NewValidated(card convex.Scorecard, repeated bool, inner Method) (*Validated, error) {
	if err := card.Validate(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	out := &Validated{card: card, repeated: repeated, inner: inner}
	h := sha256.New()
	own := header{method: methodScores, dim: card.Dim(), config: inner.fingerprint()}
	h.Write(AppendFloats(own.append(nil), card.Norm, card.Low, card.High, card.LabelNoise))
	h.Write([]byte{bit(repeated)})
	h.Sum(out.config[:0])
	return out, nil
}

// Inner returns the method without scores.
func (v *Validated) Inner() Method { return v.inner }

// Query returns the inner method's query.
func (v *Validated) Query() Query { return v.inner.Query() }

// Step gives the method its part of the estimate and keeps the scores. Moments come without scores.
func (v *Validated) Step(e Estimate) error {
	if v.inner.Query().Point == nil {
		return v.inner.Step(e)
	}
	if err := validateEstimate(e, len(e.Gradient)); err != nil {
		return err
	}
	k := v.card.Dim()
	if len(e.Gradient) <= k {
		return fmt.Errorf("step: %d coordinates, want a gradient and %d scores", len(e.Gradient), k)
	}
	own := e
	own.Gradient = e.Gradient[:len(e.Gradient)-k]
	loss := v.card.Loss(e.Gradient[len(e.Gradient)-k])
	own.Loss, own.LossNoise = &loss, math.Sqrt(e.PrivacyVariance+e.RoundingVariance)*(v.card.Loss(1)-v.card.Loss(0))
	slopes, told := v.slopes(own)
	if err := v.inner.Step(own); err != nil {
		return err
	}
	share := v.share(float64(e.Users))
	if told {
		v.addUncut(slopes, share)
	}
	var mean [2]float64
	copy(mean[:], e.Gradient[len(e.Gradient)-k:])
	v.tally.add(share, float64(e.Users), e.NoiseProxy+v.sampling(e.Users), mean)
	return nil
}

// share returns the weight of earlier rounds in recent scores relative to a round of this many users: RecentShare, or
// for a bank the share that its memory keeps.
func (v *Validated) share(users float64) float64 {
	if t := v.tracking(); t != nil {
		return max(0, 1-users/t.Memory)
	}
	return RecentShare
}

func (v *Validated) tracking() *Tracking {
	if p, practical := v.inner.(*Practical); practical {
		return p.Tracking()
	}
	return nil
}

// sampling returns the proxy of the mean of one coordinate over new users, each of whom is in [-Unit, Unit]
// (Hoeffding's lemma). Users who answer repeatedly are not a new sample: statements about them hold for them alone.
func (v *Validated) sampling(users uint64) float64 {
	if v.repeated {
		return 0
	}
	unit := v.card.Unit()
	return unit * unit / float64(users)
}

// Validation sums up the scores; nil before the first. It leaves Worse and Diverges unset for a stream without an end:
// its Tracking reports changes with fewer false alarms than the bands of small rounds, and the best constant of the
// first look does not stay valid.
func (v *Validated) Validation() *Validation {
	if v.tracking() != nil {
		out := v.tally.validation(v.card, v.repeated)
		if out != nil {
			out.Worse = false
		}
		return out
	}
	out := v.tally.validation(v.card, v.repeated)
	if p, ok := v.inner.(*Practical); ok && out != nil && p.looks > 0 {
		within := p.Problem.BaselineWithin(&p.learned, v.card.High)
		scored := v.tally.diverges(v.card, &within)
		out.Diverges = v.uncutDiverges(out, p.Problem.Baseline(&p.learned)) || scored
	}
	return out
}

// Skip skips a step of the inner method.
func (v *Validated) Skip() error { return v.inner.Skip() }

// Done reports whether the inner method is done.
func (v *Validated) Done() bool { return v.inner.Done() }

// Model returns the inner method's model.
func (v *Validated) Model() []float64 { return v.inner.Model() }

func (v *Validated) header() header {
	h := header{method: methodScores, dim: v.card.Dim(), count: v.tally.rounds, config: v.config}
	if v.told {
		h.other = 1
	}
	return h
}

// MarshalBinary returns the state, see learner.Algorithm.
func (v *Validated) MarshalBinary() ([]byte, error) {
	inner, err := v.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return append(v.appendUncut(v.tally.append(v.header().append(nil))), inner...), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (v *Validated) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, v.header())
	if err != nil {
		return err
	}
	if h.other > min(1, h.count) {
		return fmt.Errorf("%w: gradients of %d rounds that said something of losses, of %d", ErrState, h.other, h.count)
	}
	read := tally{rounds: h.count}
	if h.count > 0 {
		if len(rest) < 8*tallyWords {
			return fmt.Errorf("%w: %d bytes do not hold the sums of scores", ErrState, len(data))
		}
		read.read(Floats(rest[:8*tallyWords]))
		rest = rest[8*tallyWords:]
		if err := read.validate(v.card); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	var said uncut
	if h.other > 0 {
		if said, rest, err = readUncut(rest); err != nil {
			return err
		}
	}
	if err := v.inner.UnmarshalBinary(rest); err != nil {
		return err
	}
	v.tally, v.told, v.uncut = read, h.other > 0, said
	return nil
}

// tallyWords is the number of words in the encoding of a tally of at least one round.
const tallyWords = 12

// append appends everything except the number of rounds, which is in the header. It appends nothing before the first
// round.
func (t *tally) append(out []byte) []byte {
	if t.rounds == 0 {
		return out
	}
	out = AppendFloats(out, t.last[0], t.last[1], t.lastProxy, t.prior)
	for _, s := range [...]sums{t.recent, t.overall} {
		out = AppendFloats(out, s.users, s.score[0], s.score[1], s.proxy)
	}
	return out
}

// read is the inverse of append.
func (t *tally) read(words []float64) {
	t.last, t.lastProxy, t.prior = [2]float64{words[0], words[1]}, words[2], words[3]
	for i, s := range [...]*sums{&t.recent, &t.overall} {
		w := words[4+4*i:]
		*s = sums{users: w[0], score: [2]float64{w[1], w[2]}, proxy: w[3]}
	}
}

// validate refuses sums that no rounds can have.
func (t *tally) validate(card convex.Scorecard) error {
	words := Floats(t.append(nil))
	for _, x := range words {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("a sum of scores is not finite")
		}
	}
	for _, x := range [...]float64{t.lastProxy, t.prior, t.recent.proxy, t.overall.proxy} {
		if x < 0 {
			return fmt.Errorf("a variance proxy of scores is negative")
		}
	}
	if t.prior == 0 && t.overall.proxy > 0 {
		return fmt.Errorf("noise in scores that began without")
	}
	for _, s := range [...]sums{t.recent, t.overall} {
		if s.users < 1 {
			return fmt.Errorf("scores of fewer than one user")
		}
		if !card.Correctness && (t.last[1] != 0 || s.score[1] != 0) {
			return fmt.Errorf("scores that nobody reports")
		}
	}
	return nil
}
