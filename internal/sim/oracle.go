package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/wire"
)

// exact is the oracle without noise.
type exact struct {
	examples []convex.Example
	reports  *report.Exact
}

func (o exact) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	if err := o.reports.At(q.Point, q.Frame); err != nil {
		return method.Estimate{}, nil, err
	}
	var sum []float64
	for _, user := range cohort {
		said := o.reports.Unit(o.examples[user])
		if sum == nil {
			sum = make([]float64, len(said))
		}
		for j, v := range said {
			sum[j] += v
		}
	}
	for j := range sum {
		sum[j] /= float64(len(cohort))
	}
	return method.Estimate{Gradient: sum, Users: uint64(len(cohort))}, nil, nil
}

// mixed is the protocol in one phase: report, mix, release, estimate.
type mixed struct {
	examples []convex.Example
	phase    *wire.Phase
	params   randomizer.Params
	reports  *report.Maker
	seed     uint64
	packed   []byte
}

func (o *mixed) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	var generators uint64
	mixer, err := shuffle.NewMixer(shuffle.Config{Params: o.params, Cohort: uint64(len(cohort)), Minimum: min(o.phase.Minimum, uint64(len(cohort))),
		Entropy: func() rand.Source {
			generators++
			return Entropy(o.seed, "mixer", q.Step, generators)
		}})
	if err != nil {
		return method.Estimate{}, nil, err
	}
	if err := o.reports.At(q.Point, q.Frame); err != nil {
		return method.Estimate{}, nil, err
	}
	for i, user := range cohort {
		o.packed = o.reports.Report(o.packed[:0], block.Of(o.examples[user]))
		if out := mixer.Add([]shuffle.ReportID{reportID(q.Step, uint64(i))}, o.packed); out != shuffle.Accepted {
			return method.Estimate{}, nil, fmt.Errorf("the mixer found a report %v", out)
		}
	}
	release, err := mixer.Close()
	if err != nil {
		return method.Estimate{}, nil, err
	}
	estimate, err := method.EstimateMean(o.params, release.Totals, release.Users, release.NoiseTrials)
	return estimate, &release, err
}

// gaussian is the oracle of another trust model: the exact mean and Gaussian noise. It stands for mechanisms whose mean over a
// cohort is close to normal, which that of many users' messages is.
type gaussian struct {
	exact
	std   func(phase int, users uint64) float64
	phase int
	seed  uint64
}

func (o gaussian) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	out, _, err := o.exact.mean(q, cohort)
	if err != nil {
		return method.Estimate{}, nil, err
	}
	std := o.std(o.phase, out.Users)
	normal := rand.New(Entropy(o.seed, "gaussian", q.Step))
	for j := range out.Gradient {
		out.Gradient[j] += std * normal.NormFloat64()
	}
	out.PrivacyVariance, out.NoiseProxy = std*std, std*std
	return out, nil, nil
}
