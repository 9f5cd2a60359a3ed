package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// devices computes what the users' devices compute in one phase.
type devices struct {
	loss     convex.Loss
	score    func(dst, theta []float64, e convex.Example)
	examples []convex.Example
	how      *convex.Preconditioner
	clip     float64
	dim      int
	vector   []float64      // scratch: what is reported, then the scores
	scaled   convex.Example // scratch
}

// report is what a user's device says of its event: the clipped gradient, or the clipped squares of its features.
func (d *devices) report(user int32, q learner.Query) []float64 {
	g, x := d.vector[:d.dim], d.examples[user]
	if q.Moments {
		d.how.Squares(g, x)
		return d.vector
	}
	if q.Scales != nil {
		d.how.Rescale(&d.scaled, x, q.Scales)
		x = d.scaled
	}
	d.loss.Gradient(g, q.Point, x)
	convex.Clip(g, d.clip)
	if own := d.vector[d.dim:]; len(own) > 0 {
		d.score(own, q.Point, x)
	}
	return d.vector
}

// exact is the oracle without noise.
type exact struct{ *devices }

func (o exact) mean(q learner.Query, cohort []int32) (learner.Estimate, *shuffle.Release, error) {
	sum := make([]float64, len(o.vector))
	for _, user := range cohort {
		for j, g := range o.report(user, q) {
			sum[j] += g
		}
	}
	for j := range sum {
		sum[j] /= float64(len(cohort))
	}
	return learner.Estimate{Gradient: sum, Users: uint64(len(cohort))}, nil, nil
}

// mixed is the protocol in one phase: encode, pack, mix, release, estimate.
type mixed struct {
	*devices
	phase   learner.Phase
	params  randomizer.Params
	encoder *randomizer.VectorSum
	seed    uint64
	counts  []uint32
	packed  []byte
}

func (o *mixed) mean(q learner.Query, cohort []int32) (learner.Estimate, *shuffle.Release, error) {
	var generators uint64
	mixer, err := shuffle.NewMixer(shuffle.Config{Params: o.params, Cohort: uint64(len(cohort)), Minimum: min(o.phase.Minimum, uint64(len(cohort))),
		FloorTrials: o.phase.Privacy.FloorTrials, Entropy: func() rand.Source {
			generators++
			return Entropy(o.seed, "mixer", q.Step, generators)
		}})
	if err != nil {
		return learner.Estimate{}, nil, err
	}
	for i, user := range cohort {
		if o.counts, err = o.encoder.Encode(o.counts, o.report(user, q)); err != nil {
			return learner.Estimate{}, nil, err
		}
		o.packed = o.params.Pack(o.packed[:0], o.counts)
		if out := mixer.Add([]shuffle.ReportID{reportID(q.Step, uint64(i))}, o.packed); out != shuffle.Accepted {
			return learner.Estimate{}, nil, fmt.Errorf("the mixer found a report %v", out)
		}
	}
	release, err := mixer.Close()
	if err != nil {
		return learner.Estimate{}, nil, err
	}
	estimate, err := learner.EstimateMean(o.params, release.Totals, release.Users, release.NoiseTrials)
	return estimate, &release, err
}
