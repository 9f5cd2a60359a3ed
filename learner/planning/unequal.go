package planning

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// An unequalBound is the bound of a plan for silos of different sizes, each of which draws its own noise (Lowy,
// Razaviyayn, ICLR 2023, Theorem H.1, with our noise). Noise is the standard deviation of a coordinate in the first
// phase, in units of L.
type unequalBound struct {
	Bound float64
	// Least and Largest are the extremes of the noise of a silo's report; Mean is the noise of the unweighted mean over
	// all silos, which the model uses; ByRows is the noise of the mean weighted by rows, the theorem's p_i, which is not
	// implemented.
	Least, Largest, Mean, ByRows float64
}

// Unequal bounds the expected excess risk of a plan of silos who answer all rounds, where silo i has rows[i] units. The
// objective is the mean over silos of each one's mean, and noise has the mean of their variances. The effect of a
// replaced unit and the smoothness of the mean loss are computed as if all silos had as few units as the smallest.
func (p Problem) Unequal(plan Proposal, rows []uint64) (out unequalBound, err error) {
	switch {
	case !p.local() || !p.Interactive || p.Practical != nil || p.Silos.Count == 0:
		return out, fmt.Errorf("silo rows: want a proved plan of silos who answer many rounds, under trust local")
	case uint64(len(rows)) != p.Silos.Count:
		return out, fmt.Errorf("silo rows: %d numbers, want one for each of %d silos", len(rows), p.Silos.Count)
	case slices.Min(rows) < p.Silos.Least:
		return out, fmt.Errorf("silo rows: %d, want at least silo.least, %d", slices.Min(rows), p.Silos.Least)
	}
	own, forecasts := plan, slices.Clone(plan.Forecasts)
	for i, f := range plan.Plan.Phases {
		if f.Again {
			continue
		}
		releases, b, err := manifest.Costliest(plan.Plan, i).OwnBudget()
		if err != nil {
			return out, err
		}
		more := make([][]float64, len(rows)) // ratio of a silo's trials to the planned ones, by phase of the stint
		for k, n := range rows {
			if more[k], err = ownShare(releases, n, b); err != nil {
				return out, fmt.Errorf("silo rows: %d: %w", n, err)
			}
		}
		for j := range releases {
			sum := 0.0
			for k := range rows {
				sum += more[k][j]
			}
			forecasts[i+j].Privacy.NoiseStd *= math.Sqrt(sum / float64(len(rows)))
		}
		if i == 0 {
			out.noise(plan.Forecasts[0].Privacy.NoiseStd*math.Sqrt(float64(f.Cohort)), rows, more)
		}
	}
	own.Forecasts = forecasts
	p.Silos.Units = slices.Min(rows)
	p.Silos.Least = min(p.Silos.Least, p.Silos.Units)
	p.Users = p.Silos.Count * p.Silos.Units
	var ok bool
	if out.Bound, ok = p.with(own, func(f *wire.Phase) turnout { return turnout{f.Cohort: 1} }); !ok {
		return out, fmt.Errorf("silo rows: the plan has no bound")
	}
	return out, nil
}

// ownShare returns, for each release, the ratio of the trials of a silo of units units to the planned trials.
func ownShare(of []accounting.Release, units uint64, b accounting.Budget) ([]float64, error) {
	out := slices.Repeat([]float64{1}, len(of))
	if units == max(1, of[0].Units) {
		return out, nil
	}
	trials, err := accounting.OwnTrials(of, units, b)
	for i := range trials {
		out[i] = float64(trials[i]) / float64(of[i].Trials)
	}
	return out, err
}

// noise sets the fields from the planned noise and the ratio of each silo's variance to it.
func (u *unequalBound) noise(planned float64, rows []uint64, more [][]float64) {
	var all, mean, weighed float64
	for _, n := range rows {
		all += float64(n)
	}
	u.Least = math.Inf(1)
	for k, n := range rows {
		std := planned * math.Sqrt(more[k][0])
		u.Least, u.Largest = min(u.Least, std), max(u.Largest, std)
		mean += std * std / float64(len(rows)) / float64(len(rows))
		weighed += std * std * float64(n) / all * float64(n) / all
	}
	u.Mean, u.ByRows = math.Sqrt(mean), math.Sqrt(weighed)
}
