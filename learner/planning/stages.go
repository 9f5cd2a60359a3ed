package planning

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Stages of silos are restarts in one pass whose blocks are as large in every stage, so that a block is a fixed range
// of a silo's rows whatever round it joins; stages of users, or silos, who answer all rounds are phases of one stint.
// Rounds, blocks and the number of stages are searched together; a stage has twice the rounds of the one before, or as
// many (Lowy, Razaviyayn, Private Federated Learning Without a Trusted Server, ICLR 2023, Appendix E.1, have as many
// while noise is nothing, and twice from then on).

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

// equalStages splits rounds evenly over k stages; the last stage gets the remainder.
func equalStages(rounds uint64, k int) []uint64 {
	if k < 1 || rounds < uint64(k) {
		return nil
	}
	out := slices.Repeat([]uint64{rounds / uint64(k)}, k)
	out[k-1] += rounds % uint64(k)
	return out
}

// staged returns the choices of all stages with some noise: each begins at the distance that the bound of the
// one before gives.
func (d draft) staged(reports, units uint64, stages []uint64, n noise, privacy accounting.Plan) (out []choice,
	searches []search) {
	prior, reach := d.trivial, d.distance
	for _, steps := range stages {
		s := search{p: d.p, t: d.t, objective: d.objective, source: d.source, users: steps * reports * units, distance: reach,
			prior: prior}
		if d.t.Interactive {
			s.users = d.p.Users
		}
		if d.p.Ridge > 0 {
			s.distance = min(reach, restartDistance(prior, d.p.Ridge))
		}
		at := s.situation(reports, units, steps, n)
		c := choice{steps: steps, cohort: reports, units: units, privacy: privacy, situation: at,
			setting: d.objective.tune(d.t, at)}
		out, searches = append(out, c), append(searches, s)
		prior, reach = c.setting.risk, 2*d.objective.radius
	}
	return out, searches
}

// A staging is a number of rounds in stages, with the bound at the end of the last.
type staging struct {
	units  uint64
	stages []uint64
	risk   float64
}

// inRounds returns the best staging of t rounds, with factor times the model's noise; without stages if silos have too
// few units.
func (d draft) inRounds(s *search, t uint64, factor float64) (best staging) {
	m, k := s.shape(t)
	_, high := s.limits()
	rounds := t
	if !d.t.Interactive {
		if k = d.p.Silos.Blocks(t); k == 0 {
			return best
		}
		rounds = min(high, d.p.Silos.Count*(d.p.Silos.Units/k)/m) // blocks rounded down can leave units for further ones
	}
	n := s.from(k).model(m, s.answers(rounds))
	n.privacy, n.rounding = factor*n.privacy, factor*n.rounding
	best.risk = math.Inf(1)
	for count := 1; count <= mostStages; count++ {
		for _, split := range [][]uint64{stagesOf(rounds, count), equalStages(rounds, count)} {
			if split == nil || count > 1 && split[0] == 1 && d.t.Interactive && m < d.p.Silos.Count {
				continue // one round takes all silos
			}
			all, _ := d.staged(m, k, split, n, accounting.Plan{})
			if risk := all[count-1].setting.risk; risk < best.risk*(1-1e-9) {
				best = staging{k, split, risk}
			}
		}
	}
	return best
}

// bestStages minimises the bound over rounds and stages, with factor times the model's noise. Where the same users
// answer all rounds it takes the fewest within a hundredth of the best.
func (d draft) bestStages(s *search, factor float64) (best staging) {
	_, high := s.limits()
	var all []staging
	best.risk = math.Inf(1)
	for t := uint64(1); ; t = s.next(t, high, 0.02) {
		one := d.inRounds(s, t, factor)
		if all = append(all, one); one.stages != nil && one.risk < best.risk*(1-1e-9) {
			best = one
		}
		if t == high {
			break
		}
	}
	if d.t.Interactive {
		for _, one := range all {
			if one.stages != nil && one.risk <= 1.01*best.risk {
				return one
			}
		}
	}
	return best
}

// inStages plans restarts of silos in one pass, or of the same users in all rounds of one stint.
func (d draft) inStages() (Proposal, error) {
	out, err := d.p.proposal(d.method)
	if err != nil {
		return Proposal{}, err
	}
	out.TrivialRisk, out.Plan.Clips = d.trivial, d.p.Lipschitz > d.p.ClipNorm || d.p.Radius > 0
	s := search{p: d.p, t: d.t, objective: d.objective, source: d.source, users: d.p.Users, maxRounds: d.p.MaxRounds}
	m, _ := s.shape(1)
	factor := 1.0
	var all []choice
	var searches []search
	for tries := 0; tries < 3; { // correct the model's level by the accountant's result at its optimum
		at := d.bestStages(&s, factor)
		if at.stages == nil {
			return Proposal{}, fmt.Errorf("%s: the risk bound overflows", d.method)
		}
		var rounds uint64
		for _, steps := range at.stages {
			rounds += steps
		}
		from := s.from(at.units)
		n, privacy, err := from.exact(m, s.answers(rounds))
		switch {
		case err == nil:
		case all != nil:
			tries = 3
			continue
		case d.t.Interactive && rounds > 1: // fewer cost less
			s.maxRounds = rounds / 2
			continue
		default:
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		if next, of := d.staged(m, at.units, at.stages, n, privacy); all == nil ||
			next[len(next)-1].setting.risk < all[len(all)-1].setting.risk {
			all, searches = next, of
		}
		level := n.total() / from.model(m, s.answers(rounds)).total()
		if math.Abs(level/factor-1) < 0.05 {
			break
		}
		factor, tries = level, tries+1
	}
	var risk float64
	for i, c := range all {
		phase, forecast := d.phase(&searches[i], c)
		phase.Again = d.t.Interactive && i > 0
		if math.IsInf(forecast.Risk, 0) || math.IsNaN(forecast.Risk) {
			return Proposal{}, fmt.Errorf("%s: the risk bound overflows; rescale the features", d.method)
		}
		if d.t.Interactive && len(all) > 1 && d.p.Silos.Count > 0 {
			phase.Users = d.p.Silos.Count
		}
		if err := out.add(phase, forecast, d.p.encodedDim(), d.p.encodedNorm(), d.p.scores()); err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", d.method, err)
		}
		risk = forecast.Risk
	}
	d.conclude(&out, risk)
	return out, nil
}
