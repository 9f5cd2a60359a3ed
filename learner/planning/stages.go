package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Stages of silos are restarts in one pass whose blocks are as large in every stage, so that a block is a fixed range of a silo's rows whatever
// round it joins. Rounds, blocks and the number of stages are searched together; a stage has twice the rounds of the one before (Lowy,
// Razaviyayn, Private Federated Learning Without a Trusted Server, ICLR 2023, Appendix E.1).

// mostStages bounds the search: 2^k - 1 rounds are the fewest of k stages.
const mostStages = 12

// stagesOf splits rounds over k stages; nil where they are too few.
func stagesOf(rounds uint64, k int) []uint64 {
	if k < 1 || k > mostStages || rounds < 1<<k-1 {
		return nil
	}
	out, left := make([]uint64, k), rounds
	for j := range out[:k-1] {
		out[j] = uint64(float64(rounds) * float64(uint64(1)<<j) / float64(uint64(1)<<k-1))
		left -= out[j]
	}
	out[k-1] = left
	return out
}

// staged are the choices of all stages with some noise: each begins where the bound of the one before says.
func (d draft) staged(reports, units uint64, stages []uint64, n noise, privacy accounting.Plan) (out []choice, searches []search) {
	prior, reach := d.trivial, d.distance
	for _, steps := range stages {
		s := search{p: d.p, t: d.t, objective: d.objective, source: d.source, users: steps * reports * units, distance: reach, prior: prior}
		if d.p.Ridge > 0 {
			s.distance = min(reach, RestartDistance(prior, d.p.Ridge))
		}
		at := s.situation(reports, units, steps, n)
		c := choice{steps: steps, cohort: reports, units: units, privacy: privacy, noise: n, situation: at, setting: d.objective.tune(d.t, at)}
		out, searches = append(out, c), append(searches, s)
		prior, reach = c.setting.risk, 2*d.objective.radius
	}
	return out, searches
}

// bestStages minimises the bound over rounds and stages, with factor times the model's noise.
func (d draft) bestStages(factor float64) (units uint64, stages []uint64) {
	best := math.Inf(1)
	s := search{p: d.p, t: d.t, objective: d.objective, source: d.source, users: d.p.Users, maxRounds: d.p.MaxRounds}
	_, high := s.limits()
	for t := uint64(1); ; t = s.next(t, high, 0.02) {
		if k := d.p.Silos.Blocks(t); k > 0 {
			m := d.p.Silos.Reports
			rounds := min(high, d.p.Silos.Count*(d.p.Silos.Units/k)/m) // blocks rounded down can leave units for further ones
			n := s.from(k).model(m, 1)
			n.privacy, n.rounding = factor*n.privacy, factor*n.rounding
			for count := 1; count <= mostStages; count++ {
				split := stagesOf(rounds, count)
				if split == nil {
					break
				}
				all, _ := d.staged(m, k, split, n, accounting.Plan{})
				if risk := all[count-1].setting.risk; risk < best*(1-1e-9) {
					best, units, stages = risk, k, split
				}
			}
		}
		if t == high {
			return units, stages
		}
	}
}

// inStages plans restarts of silos in one pass.
func (d draft) inStages() (Proposal, error) {
	out, err := d.p.proposal(d.method)
	if err != nil {
		return Proposal{}, err
	}
	out.TrivialRisk, out.Plan.Clips = d.trivial, d.p.Lipschitz > d.p.ClipNorm || d.p.Radius > 0
	m, factor := d.p.Silos.Reports, 1.0
	var all []choice
	var searches []search
	for range 3 { // the model's level is corrected by what the accountant says of its optimum
		units, stages := d.bestStages(factor)
		if stages == nil {
			return Proposal{}, fmt.Errorf("%s: the risk bound overflows", d.method)
		}
		from := d.source.about(units)
		n, privacy, err := from.exact(m, 1)
		if err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		if next, at := d.staged(m, units, stages, n, privacy); all == nil || next[len(next)-1].setting.risk < all[len(all)-1].setting.risk {
			all, searches = next, at
		}
		level := n.total() / from.model(m, 1).total()
		if math.Abs(level/factor-1) < 0.05 {
			break
		}
		factor = level
	}
	for i, c := range all {
		phase, forecast := d.phase(&searches[i], c)
		if math.IsInf(forecast.Risk, 0) || math.IsNaN(forecast.Risk) {
			return Proposal{}, fmt.Errorf("%s: the risk bound overflows; rescale the features", d.method)
		}
		if err := out.add(len(out.Forecasts), phase, forecast, d.p.encodedDim(), d.p.encodedNorm(), d.p.scores()); err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		out.ExcessRisk = forecast.Risk
	}
	out.Vacuous = out.ExcessRisk >= out.TrivialRisk
	return out, nil
}
