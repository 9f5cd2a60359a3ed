package curator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Method releases a model of people whose rows are in one place.
type Method struct {
	Name   string                      // as --algorithm takes it
	Source string                      // paper and theorem
	Least  func(Public) int            // smallest n at which every group, batch and deletion exists
	plan   func(Public) (*Plan, error) // of numbers that Plan does not refuse
}

// Plan calibrates the method. It refuses numbers that have no meaning and problems outside the method's proof, and
// returns a *TooFewError below Least.
func (m Method) Plan(p Public) (*Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !slices.Contains(scorers, m.Name) {
		if err := p.smoothable(); err != nil {
			return nil, err
		}
	}
	return m.plan(p)
}

// methods are in the order of the documentation; each one's functions are in a file of its own.
var methods = [...]Method{
	{"output", "output perturbation of a whole person's mean loss (baseline B0, docs/proofs/curator.md)", anybody,
		planOutput},
	{"output-sgd",
		"phased SGD, one step a person (baseline B1, docs/proofs/curator.md; phases of Feldman, Koren, Talwar, STOC 2020)",
		anybody, planOutputSGD},
	{"output-phases",
		"phased output perturbation on disjoint people (baseline B0, docs/proofs/curator.md; phases of Feldman, Koren, Talwar, STOC 2020)", anybody, planOutputPhases},
	{"gradscore",
		"removal of people whose gradients stand out, a polynomial form of Ghazi et al. 2023, Algorithms 1 and 2 (docs/proofs/curator.md)", leastGradscore, planGradscore},
	{"deletion",
		"DelOutputPert by exhaustive search, for at most 14 people (Ghazi et al. 2023, Algorithms 1 and 2, Theorem 3.3)",
		leastDeletion, planDeletion},
	{"phased-erm", "phased ERM (Ghazi et al. 2023, Algorithm 3, Theorem 4.1) over gradscore", phasedERM.least,
		phasedERM.plan},
	{"phased-sco", "phased ERM on disjoint people (Ghazi et al. 2023, Algorithm 4, Theorem 5.1) over gradscore",
		phasedSCO.least, phasedSCO.plan},
	{"strongly-convex-erm", "phased ERM of strongly convex objectives (Ghazi et al. 2023, Theorem 4.3) over gradscore",
		strongERM.least, strongERM.plan},
	{"strongly-convex-sco", "the same on disjoint people (Ghazi et al. 2023, Theorem 5.3) over gradscore", strongSCO.least,
		strongSCO.plan},
	{"group-sgd", "filtered means of groups' SGD (Lowy, Liu, Asi 2024, Algorithm 1, calibrated: Theorem P1)", fewestGroups,
		planGroups},
	{"filtered",
		"phased accelerated descent on filtered means of people's gradients (Lowy, Liu, Asi 2024, Algorithms 2 and 3, calibrated: Mode F)", fewestFiltered, planFiltered},
}

// Of returns the method of a name, and false where there is none.
func Of(name string) (Method, bool) {
	for _, m := range methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// anybody returns Least of methods that run with any number of people.
func anybody(Public) int { return 1 }

// TooFewError refuses a number of people.
type TooFewError struct {
	Method        string
	People, Least int
}

// Error names the smallest number that is enough, if Public allows that number.
func (e *TooFewError) Error() string {
	if e.Least > mostPeople {
		return fmt.Sprintf("%s: %d people: no number of them up to %d is enough for this epsilon and delta", e.Method,
			e.People, mostPeople)
	}
	return fmt.Sprintf("%s: %d people: want at least %d", e.Method, e.People, e.Least)
}

// A Plan is a method calibrated for public numbers.
type Plan struct {
	Method    string
	Public    Public
	Spent     accounting.Budget // an upper bound, at most Public.Budget
	Phases    int
	NoiseStd  float64  // of one coordinate of the last release, in units of theta
	Bound     float64  // on the expected excess risk; +Inf: none
	OnRecords bool     // the bound is about the mean loss of the rows at hand
	Notes     []string // constants as they are printed

	unfiltered bool // what is released is decided by no filter, although the method has one

	// run is the method; people are as many as were planned for, entropy is not nil.
	run func(ctx context.Context, loss convex.Loss, people []Person, entropy rand.Source) (Result, error)
}

// Fit releases a model. It refuses another number of people than was planned for, and losses that the method is not
// proved for; it gives up between two passes when ctx ends. Errors reveal nothing about rows.
func (p *Plan) Fit(ctx context.Context, loss convex.Loss, people []Person, entropy rand.Source) (Result, error) {
	switch {
	case len(people) != p.Public.People:
		return Result{}, fmt.Errorf("%s: %d people: planned for %d", p.Method, len(people), p.Public.People)
	case entropy == nil:
		return Result{}, fmt.Errorf("%s: no entropy", p.Method)
	}
	r, err := p.run(ctx, loss, people, entropy)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", p.Method, err)
	}
	return r, nil
}
