package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/wire"
)

// exact is the oracle without noise.
type exact struct {
	block   func(i int32) block.Block
	reports *report.Exact
}

func (o exact) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	if err := o.reports.At(q.Point, q.Frame); err != nil {
		return method.Estimate{}, nil, err
	}
	var sum []float64
	for _, user := range cohort {
		said := o.reports.Mean(o.block(user))
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
	block   func(i int32) block.Block
	phase   *wire.Phase
	params  randomizer.Params
	of      report.Config
	makers  map[int]*report.Maker // by the units of a block
	entropy rand.Source           // of the devices
	seed    uint64
	packed  []byte
	forge   func(i int32, p randomizer.Params, report []byte) // see Config.Forge
	// own are the parameters of a report about so many units; nil: the plan's.
	own func(units uint64) (randomizer.Params, error)
	// planned returns the number of reports that a step is planned for, up to which the stage adds noise;
	// nil: the number of reports that there are.
	planned func(step uint64) uint64
}

// maker returns the maker of reports about this many units.
func (o *mixed) maker(units int) (*report.Maker, error) {
	if m := o.makers[units]; m != nil {
		return m, nil
	}
	p := o.params
	if units > 1 {
		p.Units = uint64(units)
	}
	var err error
	if o.own != nil {
		if p, err = o.own(uint64(units)); err != nil {
			return nil, err
		}
	}
	m, err := report.New(o.of, p, o.entropy)
	o.makers[units] = m
	return m, err
}

func (o *mixed) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	var generators uint64
	planned := uint64(len(cohort))
	if o.planned != nil {
		planned = max(planned, o.planned(q.Step))
	}
	noise := planned
	if o.phase.Top > 0 {
		noise = o.phase.Cohort
	}
	mixer, err := shuffle.NewMixer(shuffle.Config{Params: o.params, Cohort: planned, Planned: noise,
		Minimum: min(o.phase.Minimum, uint64(len(cohort))),
		Entropy: func() rand.Source {
			generators++
			return Entropy(o.seed, "mixer", q.Step, generators)
		}})
	if err != nil {
		return method.Estimate{}, nil, err
	}
	var last *report.Maker
	for i, user := range cohort {
		b := o.block(user)
		maker, err := o.maker(b.Units())
		if err != nil {
			return method.Estimate{}, nil, err
		}
		if maker != last {
			if err := maker.At(q.Point, q.Frame); err != nil {
				return method.Estimate{}, nil, err
			}
			last = maker
		}
		o.packed = maker.Report(o.packed[:0], b)
		if o.forge != nil {
			o.forge(user, o.params, o.packed)
		}
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

// gaussian is the oracle of another trust model: the exact mean and Gaussian noise. It represents mechanisms with a
// nearly normal mean over a cohort, as the mean of many users' messages is.
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
