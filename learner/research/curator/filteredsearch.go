package curator

import (
	"fmt"
	"math"
)

// fewestFiltered returns Least of filtered: one phase of one step.
func fewestFiltered(p Public) int { return leastFiltered(p.Budget, 1, p.failure()) }

// A filteredSearch has what its candidates share.
type filteredSearch struct {
	public Public
	fewest int                      // people of a phase
	known  map[[3]int]filteredPhase // calibrated, by people, steps and phases
}

func newFilteredSearch(p Public) *filteredSearch {
	return &filteredSearch{p, fewestFiltered(p), map[[3]int]filteredPhase{}}
}

// searchFiltered takes the phases of the smallest bound, with Gaussian noise as a guide.
func searchFiltered(p Public) (*filteredPlan, error) {
	s := newFilteredSearch(p)
	blurs := []float64{0}
	if math.IsInf(p.Smoothness, 1) {
		blurs = nil
		paper := p.Set.Radius() * math.Sqrt(float64(p.Dim)) / (p.Budget.Epsilon * float64(p.People) * math.Sqrt(
			float64(p.Items)))
		for factor := 1.; factor <= 4096; factor *= 4 {
			blurs = append(blurs, factor*paper)
		}
	}
	var best *filteredPlan
	for _, blur := range blurs {
		for _, f := range []*filteredPlan{s.best(blur, p.People, mostPhases, p.Set.Radius()), s.reduced(blur)} {
			if f != nil && (best == nil || f.bound() < best.bound()) {
				best = f
			}
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no phases of %d people have a finite bound", p.People)
	}
	for i := range best.phases { // the search took one test for many numbers of steps
		s.hide(&best.phases[i], best.phases[i].all(), len(best.phases))
	}
	return best, nil
}

// mostSteps bounds the number of steps of a phase that a search tries.
const mostSteps = 1024

// best returns the plan with the phases of the smallest bound for so many people, who start at a distance
// from the minimiser of the risk; nil: none.
func (s *filteredSearch) best(blur float64, people, phases int, distance float64) *filteredPlan {
	guess := s.public.Lipschitz / distance
	var best *filteredPlan
	least := math.Inf(1)
	for sizes := range schedules(people, phases, s.fewest) {
		for _, growth := range []float64{0.5, 1, 2} {
			var at float64
			try := func(lambda float64) float64 {
				f := s.phased(blur, sizes, lambda, growth, distance)
				if f == nil {
					return math.Inf(1)
				}
				return f.bound()
			}
			if at = argmin(guess*1e-5, guess*1e3, try); try(at) < least {
				best, least = s.phased(blur, sizes, at, growth, distance), try(at)
			}
		}
	}
	return best
}

// phased returns a plan with phases of these sizes with lambda_i = lambda 2^(growth i), and in each the
// stages and steps of the smallest gap. Nil: a test is not possible.
func (s *filteredSearch) phased(blur float64, sizes []int, lambda, growth, distance float64) *filteredPlan {
	f := &filteredPlan{public: s.public, blur: blur}
	for i, n := range sizes {
		n -= n % 2 // one of an odd number is left out
		weight := lambda * math.Exp2(growth*float64(i))
		root := math.Sqrt(1 + f.smoothness()/(weight+s.public.Ridge))
		var best filteredPhase
		least := math.Inf(1)
		for stages := 1; stages <= 12; stages++ {
			for _, times := range []float64{1, 2, 4} {
				ph := filteredPhase{stages: stages, steps: int(math.Ceil(min(times*root, mostSteps)))}
				if ph.all() > mostSteps && stages > 1 {
					continue
				}
				known := s.calibrated(n, ph.all(), len(sizes))
				ph.people, ph.lambda, ph.threshold, ph.radius = known.people, weight, known.threshold, known.radius
				ph.sigma, ph.plain, ph.block = known.sigma, known.plain, known.block
				if gap := f.gap(ph); gap < least {
					best, least = ph, gap
				}
			}
		}
		if math.IsInf(least, 1) {
			return nil
		}
		if i == 0 {
			best.distance = distance
		}
		f.phases = append(f.phases, best)
	}
	return f
}

// calibrated returns the test, the radius and the noise of a phase. The first two are for the next of a few numbers
// of steps that is not below.
func (s *filteredSearch) calibrated(people, steps, phases int) filteredPhase {
	up := 1
	for up < steps {
		up *= 4
	}
	key := [3]int{people, up, phases}
	ph, ok := s.known[key]
	if !ok {
		ph.people = people
		s.hide(&ph, up, phases)
		s.known[key] = ph
	}
	ph.sigma *= math.Sqrt(float64(steps) / float64(up))
	return ph
}

// hide gives a phase of so many steps the test, the radius and the noise of its releases; or the plain mean and its
// noise, if that is less.
func (s *filteredSearch) hide(ph *filteredPhase, steps, phases int) {
	p := s.public
	ph.plain, ph.block = true, 0
	ph.sigma = plainSensitivity(ph.people, p.Lipschitz) * perShift(p.Budget) * math.Sqrt(float64(steps))
	block := (ph.people + mostCompared - 1) / mostCompared
	points := ph.people / block &^ 1
	t, err := calibrateThreshold(points, steps, p.Budget, p.failure()/float64(phases))
	if radius := s.radius(points, block, steps*phases); err == nil && t.sigma*radius < ph.sigma {
		ph.plain, ph.threshold, ph.radius, ph.sigma = false, t, radius, t.sigma*radius
		if block > 1 {
			ph.block, ph.people = block, points*block
		}
	}
}

// mostCompared bounds the number of points of which all pairs are compared: of more people points are means of several.
const mostCompared = 1 << 12

// radius returns the distance within which all points of a phase lie of each other, each the mean gradient of so many
// people, in so many steps of all phases; no two are further apart than 2L.
func (s *filteredSearch) radius(points, block, steps int) float64 {
	return min(spreadRadius(points, block*s.public.Items, steps, s.public.failure())*s.public.spread(), 2) * s.public.Lipschitz
}

// gap bounds the expected gap of a phase's objective after its stages, each from where the last one ended (Ghadimi
// and Lan 2012, Proposition 9; docs/proofs/curator.md, accelerated).
func (f *filteredPlan) gap(ph filteredPhase) float64 {
	p := f.public
	strong := ph.lambda + p.Ridge
	large, steep, n := f.smoothness()+strong, p.steepest(), float64(ph.steps)
	noise := 8 * float64(p.Dim) * ph.sigma * ph.sigma / (strong * (n + 1))
	off := min(steep/strong, p.diameter()) // the start's distance from the minimiser
	gap := 2*large*off*off/(n*(n+1)) + noise
	for range ph.stages - 1 {
		gap = 4*large/(strong*n*(n+1))*gap + noise
	}
	return gap
}

// bound bounds the expected excess risk, for rows that are independent draws:
//
//	lambda_1 R^2/2, then for every phase 4 L^2/(nu_i n_i m) and, after the first, lambda_i e_(i-1)^2/2, and (L + mu R) e_l
//
// with nu = lambda + mu and e_i^2 = 2 gap_i/nu_i the mean square of the distance to the minimiser of the
// phase; L times the radius of the smoothing; and the whole range of the risk where a test halts or people
// are further apart than planned for, each with the probability failure at most.
func (f *filteredPlan) bound() float64 {
	p := f.public
	risk, runs := 0., 0.
	for start := 0; start < len(f.phases); { // of the last run: those before it are in its distance
		end := start + 1
		for end < len(f.phases) && f.phases[end].distance == 0 {
			end++
		}
		risk = f.runBound(f.phases[start:end])
		start = end
		runs++
	}
	if f.unfiltered() { // nothing is tested
		runs = 0
	}
	return risk + p.Lipschitz*f.blur + 2*runs*p.failure()*p.steepest()*p.diameter()
}

func (f *filteredPlan) runBound(phases []filteredPhase) float64 {
	p := f.public
	off := phases[0].distance // from the minimiser of the last phase, or of the risk
	sum := 0.
	for _, ph := range phases {
		strong := ph.lambda + p.Ridge
		sum += ph.lambda*off*off/2 + generalisation(p, strong, ph.people)
		off = f.off(ph)
	}
	return sum + p.steepest()*off
}

// off bounds the root mean square distance of a phase's release from its minimiser: what noise and descent leave. Both
// are in the set.
func (f *filteredPlan) off(ph filteredPhase) float64 {
	return min(math.Sqrt(2*f.gap(ph)/(ph.lambda+f.public.Ridge)), f.public.diameter())
}
