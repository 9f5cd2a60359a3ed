package curator

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// constants are the numbers of a test for concentration and of the release of a filtered mean after it, of so many
// points (Lowy, Liu and Asi 2024, Algorithm 1). Scores are in pairs. Radii are in units of a tau that each phase
// has.
type constants struct {
	groups int    // C
	filter filter // r_s, r_f and U
	test   accounting.ScoreTest
	coins  bool    // points are included with their weights as probabilities: the paper's rule
	sigma  float64 // of the release, in units of tau
}

// request describes a test of all pairs among the given number of points, with the radii of a filter, for
// calibration.
func request(points, rounds int, f filter, b accounting.Budget, failure float64) accounting.ScoreRequest {
	c := int64(points)
	return accounting.ScoreRequest{Budget: b,
		Rounds: rounds, Failure: failure, Sensitivity: int64(scoreSensitivity(points)), Most: c * c,
		Least: c*c/2 + 2*c + 1, Apart: func(full int64) float64 { return f.with(full, points).sensitivity(points, 0) }}
}

// with returns the filter with U for a score of so many pairs.
func (f filter) with(full int64, points int) filter {
	return filter{f.score, f.near, float64(full) / float64(points)}
}

// calibrateGroups returns the test that leaves the least noise, of Gaussian noise as a guide: with r_s = tau,
// and r_f = tau times near, 1 or 2. A test of well-behaved points, all of whom are within tau of each other,
// halts with the probability failure at most. An error: too few groups.
func calibrateGroups(groups int, near float64, b accounting.Budget, failure float64) (constants, error) {
	f := filter{1, near, 0}
	test, sigma, err := accounting.CalibrateTest(request(groups, 1, f, b, failure))
	if err != nil {
		return constants{sigma: math.Inf(1)}, err
	}
	return constants{groups: groups, filter: f.with(test.Full, groups), test: test, sigma: sigma}, nil
}

// bestGroups calls calibrateGroups with the better of the two radii of the filter: equal ones if U is above
// 2C/3.
func bestGroups(groups int, b accounting.Budget, failure float64) (constants, error) {
	one, err := calibrateGroups(groups, 1, b, failure)
	if err == nil && one.filter.full > 0.7*float64(groups) {
		return one, nil
	}
	two, _ := calibrateGroups(groups, 2, b, failure)
	if two.sigma < one.sigma {
		return two, nil
	}
	return one, err
}

// A printed is Algorithm 1 with the paper's constants, in real numbers.
type printed struct {
	groups, phases   int     // C, l
	q, growth        float64 // q, p
	eta, people, tau float64 // of the whole; n_1, tau_1 of the first phase
	sigma            float64 // sigma_1
}

// paperNumbers returns the numbers of Theorem B.1 with q = 0.1.
func paperNumbers(p Public) printed {
	n, m, d, l, b := float64(p.People), float64(p.Items), float64(p.Dim), p.Lipschitz, p.Budget
	out := printed{groups: paperGroups(b, p.Items, p.People), phases: paperPhases(p.People), q: 0.1, growth: 1.5 +
		math.Log(m)/math.Log(n)}
	out.eta = p.Set.Radius() / (l * math.Sqrt(d*m*n*b.Epsilon))
	out.people = n * shares(out.q, 1)[0]
	out.tau, out.sigma = out.radius(p, out.eta/math.Exp2(out.growth), out.people/float64(out.groups)*m)
	return out
}

// radius returns tau and sigma of a phase of the paper.
func (x printed) radius(p Public, eta, steps float64) (tau, sigma float64) {
	n, m, d := float64(p.People), float64(p.Items), float64(p.Dim)
	tau = 1000 * eta * p.Lipschitz * math.Sqrt(steps) * math.Log(n*d*m)
	log := math.Log(n / p.Budget.Delta)
	return tau, 100 * tau * log * log / (p.Budget.Epsilon * float64(x.groups))
}

func (x printed) String() string {
	return fmt.Sprintf("the paper's constants: groups %d, phases %d, first step size %.3g, radius %.3g and noise %.3g",
		x.groups, x.phases, x.eta/math.Exp2(x.growth), x.tau, x.sigma)
}
