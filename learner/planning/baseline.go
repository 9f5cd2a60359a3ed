package planning

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Names of the baselines: other ways to spend the same budget on the same users.
const (
	BaselineLocal     = "local"      // nobody is trusted: each user sends one message that is private by itself
	BaselineCentral   = "central"    // a trusted curator, each user in one round
	BaselineMultiPass = "multi-pass" // a trusted curator who asks everybody in every round
	BaselinePaper     = "paper"      // this system with the closed-form constants of the paper
)

// maxPasses limits the multi-pass baseline: passes cost a curator nothing but time.
const maxPasses = 10_000

// A Baseline is another way to spend the same budget, with its risk under the same bounds.
type Baseline struct {
	Name      string
	Mechanism string // what adds the noise
	Method    string // the method of the bound: the best for the mechanism
	Rounds    uint64
	Cohort    uint64  // of the first phase
	NoiseStd  float64 // of one coordinate of the mean of a round of the first phase, in units of the clip norm
	Risk      float64 // bound on the expected excess risk
	Err       error   // why there is no bound
}

// A formula is a source whose noise has a closed form, which is exact.
type formula func(m, rounds uint64) noise

func (f formula) about(uint64) source { return f } // problems of baselines have no blocks

func (f formula) model(m, rounds uint64) noise { return f(m, rounds) }

func (f formula) exact(m, rounds uint64) (noise, accounting.Plan, error) {
	return f(m, rounds), accounting.Plan{}, nil
}

// central returns the noise of a trusted curator with the analytic Gaussian mechanism, whose sensitivity is 2/m for each
// of the rounds. In a single round the curator randomizes each vector by itself, as alone does, if that is better, as it
// is for large epsilons and small cohorts.
func central(mu float64, alone formula) formula {
	return func(m, rounds uint64) noise {
		sd := 2 / (float64(m) * mu)
		if rounds == 1 {
			return noise{privacy: min(sd*sd, alone(m, 1).privacy)}
		}
		return noise{privacy: sd * sd * float64(rounds)}
	}
}

// local returns the noise of the mechanism in which each user randomizes alone.
func local(perUser float64) formula {
	return func(m, _ uint64) noise { return noise{privacy: perUser / float64(m)} }
}

// localOf returns the better one of two mechanisms for one message, and its name.
func localOf(p Problem, mu float64) (formula, string, error) {
	unit, err := PrivUnitError(p.encodedDim(), p.Epsilon)
	if gauss := 4 / (mu * mu); err == nil && gauss < unit {
		return local(gauss), "analytic Gaussian mechanism of every unit alone", nil
	}
	return local(unit), "PrivUnitG of every unit alone", err
}

// baselineProblem returns the problem without the parts that only this system has, and without scores. Units report for
// themselves.
func baselineProblem(p Problem) Problem {
	p.Validation, p.Silos, p.Units = nil, Silos{}, 0
	p.Trust, p.HonestFraction, p.Interactive = accounting.Shuffle, accounting.One, true
	p.Cohort, p.Minimum, p.MaxBits, p.MaxRounds, p.Profile = 0, 0, 0, 0, accounting.Numeric
	return p
}

// Baselines returns the baselines: local differential privacy, a trusted curator, and the paper's constants. Each uses
// the best applicable method, except the last, which uses the named method.
func (p Problem) Baselines(method string) ([]Baseline, error) {
	if err := p.validateRequest(); err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta})
	if err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	q := baselineProblem(p)
	alone, mechanism, err := localOf(q, mu)
	if err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	var once, again []string
	for _, m := range schedule.Names() {
		if q.Applies(m) != nil {
			continue
		}
		if traitsOf(m).Interactive {
			again = append(again, m)
		} else {
			once = append(once, m)
		}
	}
	curator := central(mu, alone)
	out := []Baseline{baseline(q, BaselineLocal, mechanism, once, alone), baseline(q, BaselineCentral, centralMechanism,
		once, curator)}
	q.MaxRounds = maxPasses
	if len(again) > 0 {
		out = append(out, baseline(q, BaselineMultiPass, centralMechanism, again, curator))
	}
	return append(out, p.paper(method)), nil
}

// baseline returns the baseline of the best of the methods with a source of noise.
func baseline(p Problem, name, mechanism string, methods []string, from source) Baseline {
	out := Baseline{Name: name, Mechanism: mechanism, Err: fmt.Errorf("no method applies")}
	for _, m := range methods {
		d, err := newDraft(p, m, from)
		var plan Proposal
		if err == nil {
			plan, err = d.plan()
		}
		if err != nil {
			if out.Method == "" {
				out.Err = err
			}
			continue
		}
		if !plan.OnRecords && (out.Method == "" || plan.ExcessRisk < out.Risk) { // only bounds on the population
			first := plan.Plan.Phases[0]
			out.Method, out.Rounds, out.Cohort, out.Risk, out.Err = m, manifest.Planned(plan.Plan), first.Cohort,
				plan.ExcessRisk, nil
			out.NoiseStd = math.Sqrt(from.model(first.Cohort, uint64(manifest.Costliest(plan.Plan, 0).Stint.Rounds)).total())
		}
	}
	return out
}

// paper returns the baseline of the method with the paper's constants, which assume trust shuffle and honest users.
func (p Problem) paper(method string) Baseline {
	out := Baseline{Name: BaselinePaper, Mechanism: "this one with the closed-form constants of Cheu et al.", Method: method}
	p.Algorithm, p.Profile, p.Trust, p.HonestFraction, p.MaxBits = method, accounting.Paper, accounting.Shuffle,
		accounting.One, 0
	p.Validation, p.Units = nil, 0
	if p.Silos.Count > 0 {
		p.Silos, p.Minimum = Silos{}, 0
	}
	if traitsOf(method).Minimizers {
		out.Err = errors.New("its constants are of gradients")
		return out
	}
	plan, err := MakePlan(p)
	if err != nil {
		out.Err = err
		return out
	}
	out.Rounds, out.Cohort = manifest.Planned(plan.Plan), manifest.Gradients(plan.Plan).Cohort
	out.Risk, out.NoiseStd = plan.ExcessRisk, plan.First().Privacy.NoiseStd
	return out
}

// PrivUnitError returns the mean squared error, per coordinate of a d-vector, of the best PrivUnitG at a pure epsilon,
// in units of the squared norm L^2 of the ball that contains the vectors: the error of one message of a user who trusts
// nobody.
//
// PrivUnitG (Asi, Feldman, Talwar, Optimal Algorithms for Mean Estimation under Local Differential Privacy, ICML 2022)
// sends a Gaussian vector U ~ N(0, I/D) in D dimensions, drawn with probability p from the cap <U, u> >= gamma around
// the unit vector u and else from its complement, divided by m = E<U, u>. With q = P[<U, u> < gamma] it is
// epsilon-private for p/(1-p) q/(1-q) <= e^epsilon, unbiased, and of error E||U||^2/m^2 - 1, within a factor 1 + o(1)
// of the least of all unbiased pure mechanisms. A vector of the ball is made a unit vector by one more coordinate, so D
// = d + 1.
func PrivUnitError(dim int, epsilon float64) (float64, error) {
	if dim < 1 || !(epsilon > 0) || math.IsInf(epsilon, 0) {
		return 0, fmt.Errorf("dim, epsilon: %d, %v, want a dimension of at least 1 and a finite epsilon above 0", dim,
			epsilon)
	}
	// z is gamma in standard deviations of <U, u>; the error has one valley in it.
	const least, most = 1e-6, 40
	z := smallest(least, most, func(z float64) float64 { return privUnitError(dim, epsilon, z) })
	return min(privUnitError(dim, epsilon, z), privUnitError(dim, epsilon, 0)), nil
}

func privUnitError(dim int, epsilon, z float64) float64 {
	normal := distuv.UnitNormal
	density, above := normal.Prob(z), normal.Survival(z)
	odds := math.Exp(epsilon) * above / (1 - above) // p/(1-p)
	p := odds / (1 + odds)
	if above == 0 || p == 0 {
		return math.Inf(1)
	}
	// Of a standard normal Z: E[Z; Z >= z] = density, E[Z^2; Z >= z] = z density + above.
	mean := density * (p/above - (1-p)/(1-above))
	square := p*(z*density+above)/above + (1-p)*(1-above-z*density)/(1-above)
	d := float64(dim + 1)
	// All of this is in units of 1/sqrt(D) of <U, u>; the other D-1 coordinates have 1/D each.
	return ((d-1+square)/(mean*mean) - 1) / float64(dim)
}
