package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/acsa"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A filteredPhase is one phase of Algorithm 3 by Algorithm 2: accelerated gradient descent on the mean loss of its
// people + (lambda/2)||. - c||^2, where c is the last release, with the noisy filtered mean of all of their
// gradients in every step.
type filteredPhase struct {
	people        int     // n_i
	lambda        float64 // lambda_i
	stages, steps int     // of accelerated descent: T_i = stages steps in all
	radius        float64 // r_s = r_f of people's gradients
	threshold     threshold
	lattice       lattice
	sigma         float64 // std of the noise of a step that is wanted
	// plain phases release the mean of all gradients, without filter and test: where that has the less noise
	plain bool
	// block holds the number of people who make one of the points that are compared, the mean of their gradients; 0: 1
	block int

	// distance bounds the root mean square distance of the start from the minimiser of the risk, where the phase begins a
	// run; 0: it begins none
	distance float64
}

// points returns the number of points that are compared.
func (ph filteredPhase) points() int { return ph.people / max(ph.block, 1) }

func (ph filteredPhase) all() int { return ph.stages * ph.steps }

// A filteredPlan is Algorithm 3 in Mode F.
type filteredPlan struct {
	public Public
	blur   float64 // radius of the smoothing; 0: none
	phases []filteredPhase
}

// smoothness returns the smoothness of the smoothed loss.
func (f *filteredPlan) smoothness() float64 {
	if f.blur == 0 {
		return f.public.Smoothness
	}
	return blurredSmoothness(f.public.Lipschitz, f.blur, f.public.Dim)
}

// filter returns the filter of a phase, scaled to its radius.
func (ph filteredPhase) filter() filter { return ph.threshold.filter.scaled(ph.radius) }

// ratio bounds how far one person moves a filtered mean gradient, in diameters of the ball of radius L; it is
// at most 1.
func (f *filteredPlan) ratio(ph filteredPhase) float64 {
	l := f.public.Lipschitz
	if ph.plain {
		return plainSensitivity(ph.people, l) / (2 * l) * (1 + 0x1p-40)
	}
	return min(ph.filter().sensitivity(ph.points(), l)/(2*l)*(1+0x1p-40), 1)
}

// plainSensitivity bounds how far one person moves the mean of everybody's gradients, as it is computed:
// 2L/n, and the error of floating-point numbers.
func plainSensitivity(people int, l float64) float64 {
	n := float64(people)
	return 2*l/n*(1+0x1p-40) + 4*(n+8)*0x1p-53*l
}

// run runs Algorithm 3. Phases have people of their own.
func (f *filteredPlan) run(ctx context.Context, loss convex.Loss, people []Person, entropy rand.Source) (Result,
	error) {
	people, err := admitted(f.public, loss, people)
	if err != nil {
		return Result{}, err
	}
	return follow(f.public.start(), len(f.phases), func(i int, from []float64) ([]float64, bool, error) {
		mine := people[:f.phases[i].people]
		people = people[len(mine):]
		return f.accelerate(ctx, f.phases[i], loss, mine, from, entropy)
	})
}

// accelerate runs Algorithm 2 on these people from a centre. If it did not pass all tests, its result must
// not be published.
func (f *filteredPlan) accelerate(ctx context.Context, ph filteredPhase, loss convex.Loss, people []Person,
	centre []float64, entropy rand.Source) (x []float64, passed bool, err error) {
	p, d := f.public, len(centre)
	smooth := newBlur(f.blur, d, entropy)
	strong := ph.lambda + p.Ridge
	descent := acsa.New(strong, f.smoothness()+strong, p.Set, centre)
	points, part, mean := make([][]float64, ph.points()), make([]float64, d), make([]float64, d)
	one := make([]float64, d)
	for i := range points {
		points[i] = make([]float64, d)
	}
	noise, err := ph.lattice.open(p.Lipschitz, entropy)
	if err != nil {
		return nil, false, err
	}
	filter, passed := ph.filter(), true
	everybody := slices.Repeat([]float64{1}, len(points))
	var tests *series
	if !ph.plain {
		tests = ph.threshold.begin(entropy)
	}
	for t := range ph.all() {
		if t > 0 && t%ph.steps == 0 {
			descent.Restart()
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		at := descent.Query()
		for i := range points {
			clear(points[i])
		}
		for i, who := range people[:len(points)*max(ph.block, 1)] {
			smooth.gradient(one, part, loss, who, at, p.Lipschitz)
			addTo(points[i%len(points)], one)
		}
		if ph.block > 1 {
			for _, y := range points {
				for j := range y {
					y[j] /= float64(ph.block)
				}
				convex.Clip(y, p.Lipschitz) // changes nothing except for rounding
			}
		}
		ok := true
		if ph.plain {
			weightedMean(mean, points, everybody)
			err = noise.release(mean)
		} else {
			ok, err = tests.testAndRelease(mean, points, filter, noise)
		}
		if err != nil {
			return nil, false, err
		}
		passed = passed && ok
		for j, v := range at {
			mean[j] += float64(ph.lambda*(v-centre[j])) + float64(p.Ridge*v)
		}
		descent.Step(mean)
	}
	x = descent.Aggregate()
	p.Set.Project(x, x)
	return x, passed, nil
}

// planFiltered returns a plan of the calibrated Algorithm 3, or of runs of it on growing parts where there is
// a ridge and the bound is smaller.
func planFiltered(p Public) (*Plan, error) {
	if least := fewestFiltered(p); p.People < least {
		return nil, &TooFewError{"filtered", p.People, least}
	}
	f, err := searchFiltered(p)
	if err != nil {
		return nil, err
	}
	spent, err := f.calibrate()
	if err != nil {
		return nil, err
	}
	last := f.phases[len(f.phases)-1]
	return &Plan{Method: "filtered", unfiltered: f.unfiltered(),
		Public: p, Spent: accounting.Budget{Epsilon: p.Budget.Epsilon, Delta: spent}, Phases: len(f.phases),
		NoiseStd: f.off(last) / math.Sqrt(float64(p.Dim)), Bound: f.bound(), Notes: f.notes(), run: f.run}, nil
}

// unfiltered reports whether every phase releases plain means.
func (f *filteredPlan) unfiltered() bool {
	return !slices.ContainsFunc(f.phases, func(ph filteredPhase) bool { return !ph.plain })
}

// calibrate gives every phase a lattice of few trials at which all of its tests and releases together are within the
// budget, and returns the largest delta that was evaluated.
func (f *filteredPlan) calibrate() (spent float64, err error) {
	p := f.public
	for i := range f.phases {
		ph := &f.phases[i]
		spend := ph.threshold.test.Delta
		if ph.plain {
			spend = func(epsilon float64, releases accounting.Curve) float64 { return releases.Delta(epsilon) }
		} else if err := ph.filter().validate(ph.points()); err != nil {
			return 0, err
		}
		ratio, delta := f.ratio(*ph), 0.
		if ph.lattice, delta, err = smallest(p.Dim, p.Lipschitz, ratio, p.Budget.Delta, func(l lattice) float64 {
			return spend(p.Budget.Epsilon, l.curve(ratio, ph.all()))
		}); err != nil {
			return 0, err
		}
		spent = max(spent, delta)
		ph.sigma = ph.lattice.std(p.Lipschitz)
	}
	return spent, nil
}

func (f *filteredPlan) notes() []string {
	var notes []string
	if f.blur > 0 {
		notes = append(notes, fmt.Sprintf("smoothed over %.4g: smoothness %.4g", f.blur, f.smoothness()))
	}
	l, runs := f.public.Lipschitz, 0
	for i, ph := range f.phases {
		t := ph.threshold
		how := "the plain mean, which a person moves by 2 L/n: the filter would need more noise"
		if !ph.plain {
			how = fmt.Sprintf("radius %.4g L, test from %.5g on with U %.5g, epsilon %.3g of it for the tests", ph.radius/l,
				float64(t.test.Threshold)/float64(t.people), t.filter.full, t.test.Epsilon())
			if ph.block > 1 {
				how = fmt.Sprintf("means of %d people, ", ph.block) + how
			}
		}
		notes = append(notes, fmt.Sprintf("phase %d: people %d, lambda %.4g, steps %d in %d stages, %s, noise %.4g L a step",
			i+1, ph.people, ph.lambda, ph.all(), ph.stages, how, ph.sigma/l))
		if ph.distance > 0 {
			runs++
		}
	}
	if runs > 1 {
		notes = append(notes, fmt.Sprintf("%d runs on growing parts of the people, each nearer to the minimiser", runs))
	}
	return notes
}
