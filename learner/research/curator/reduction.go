package curator

import "math"

// reduced returns the reduction for strongly convex objectives (Feldman, Koren and Talwar 2020, section 5.1;
// Lowy, Liu and Asi 2024, Remark 3.6): runs of Algorithm 3 on fresh people, twice as many each time. A run's
// bound on the risk bounds how far from the minimiser the next one starts, and that is the distance that the
// next one, of one phase or two, is planned for. People are in one run, and a run has the whole budget. Nil:
// no ridge, or too few people.
func (s *filteredSearch) reduced(blur float64) *filteredPlan {
	p := s.public
	if p.Ridge == 0 {
		return nil
	}
	distance := p.Set.Radius()
	all := &filteredPlan{public: p, blur: blur}
	for _, n := range reductionSizes(p.People) {
		run := s.best(blur, n, 2, distance)
		if run == nil {
			return nil
		}
		all.phases = append(all.phases, run.phases...)
		distance = min(distance, math.Sqrt(2*run.bound()/p.Ridge))
	}
	if len(all.phases) == 0 {
		return nil
	}
	return all
}
