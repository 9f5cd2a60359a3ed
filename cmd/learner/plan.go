package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func newPlan() *cobra.Command {
	var (
		f      taskFlags
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "plan -f TASK",
		Short: "rounds, cohort, noise, guarantees and predicted risk of a task",
		Long: `plan minimises the method's risk bound over the number of rounds, with the accountant's real noise, and prints what
follows: before anybody has sent anything.`,
		Example: "  learner plan -f deploy/tasks/a9a.yaml --set privacy.epsilon=2",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			job, err := f.job()
			if err != nil {
				return err
			}
			report, err := planOf(job)
			if err != nil {
				return err
			}
			return cli.Result(c.OutOrStdout(), asJSON, report, report.print)
		},
	}
	f.Flags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// A planReport is the JSON of `learner plan`.
type planReport struct {
	Task       string          `json:"task"`
	Algorithm  string          `json:"algorithm"`
	Users      uint64          `json:"users"`
	Rounds     uint64          `json:"rounds"`
	Cohort     uint64          `json:"cohort"`
	LastCohort uint64          `json:"last_cohort"`
	Minimum    uint64          `json:"minimum_cohort"`
	Dim        int             `json:"dim"`
	Privacy    accounting.Plan `json:"privacy"`

	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
	TrivialRisk         float64 `json:"trivial_risk"`
	Vacuous             bool    `json:"vacuous"`
	Clips               bool    `json:"clips"`

	Guarantees []guarantee `json:"guarantees"`
	// Comparison is the noise of other ways to spend the same (epsilon, delta) on one cohort, as noise_std is.
	Comparison comparison `json:"comparison"`
}

// A guarantee is what one adversary learns at most about one user's event.
type guarantee struct {
	Adversary      string              `json:"adversary"`
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	Epsilon        *float64            `json:"epsilon"` // null: no finite one
	Delta          float64             `json:"delta"`
}

type comparison struct {
	CentralNoiseStd float64  `json:"central_noise_std"` // a trusted curator with the analytic Gaussian mechanism
	LocalNoiseStd   float64  `json:"local_noise_std"`   // every user alone with the analytic Gaussian mechanism
	PaperNoiseStd   *float64 `json:"paper_noise_std"`   // the paper's closed-form constants; null where they do not apply
}

func planOf(job pipeline.Job) (planReport, error) {
	p, first := job.Plan, job.Plan.Phases[0]
	out := planReport{Task: job.Spec.Name, Algorithm: p.Algorithm, Users: p.Users, Rounds: p.Rounds(), Cohort: first.Cohort,
		LastCohort: first.LastCohort, Minimum: first.Minimum, Dim: p.Dim, Privacy: first.Privacy,
		PredictedExcessRisk: p.PredictedExcessRisk, TrivialRisk: p.TrivialRisk, Vacuous: p.Vacuous, Clips: p.Clips}
	var err error
	if out.Guarantees, err = guarantees(first.Privacy); err != nil {
		return planReport{}, err
	}
	out.Comparison, err = compare(job)
	return out, err
}

// guarantees lists the adversaries, and what is left of the guarantee when fewer users add noise than was planned for.
func guarantees(p accounting.Plan) ([]guarantee, error) {
	var out []guarantee
	for _, honest := range []string{p.HonestFraction.String(), "0.9", "0.75", "0.5", "0.25"} {
		fraction, err := accounting.ParseFraction(honest)
		if err != nil {
			return nil, err
		}
		if fraction.Float() > p.HonestFraction.Float() || len(out) > 0 && out[0].HonestFraction.String() == fraction.String() || fraction.Floor(p.Users) == 0 {
			continue
		}
		r := p.Release()
		r.HonestFraction = fraction
		g, err := r.Epsilon(p.Delta)
		if err != nil {
			return nil, err
		}
		add := func(adversary string, epsilon float64) {
			line := guarantee{Adversary: adversary, HonestFraction: fraction, Delta: p.Delta}
			if !math.IsInf(epsilon, 0) {
				line.Epsilon = &epsilon
			}
			out = append(out, line)
		}
		add("learner", g.Learner)
		if g.HasIntruder {
			add("intruder", g.Intruder)
		}
	}
	return out, nil
}

func compare(job pipeline.Job) (comparison, error) {
	p := job.Plan.Phases[0].Privacy
	mu, err := accounting.GaussianMu(job.Problem.Epsilon, job.Problem.Delta)
	if err != nil {
		return comparison{}, err
	}
	n := float64(p.Users)
	out := comparison{CentralNoiseStd: 2 / (n * mu), LocalNoiseStd: 2 / (math.Sqrt(n) * mu)}
	if paper, err := pipeline.PaperNoiseStd(job); err == nil {
		out.PaperNoiseStd = &paper
	}
	return out, nil
}

func (r planReport) print(w io.Writer) error {
	p := r.Privacy
	fmt.Fprintf(w, `task          %s: %s, %d users in %d rounds of %d (the last of %d, none released under %d)
mechanism     d = %d, g = %d, b = %d, p = %.6g: %d bits a coordinate, %d bytes a user
noise         %.4g of the clip norm, standard deviation of one coordinate of a round's mean gradient
              central DP %.4g, local DP %.4g`, r.Task, r.Algorithm, r.Users, r.Rounds, r.Cohort, r.LastCohort, r.Minimum,
		r.Dim, p.Levels, p.Trials, p.P, p.BitsPerCoordinate, p.ReportBytes, p.TotalStd(), r.Comparison.CentralNoiseStd, r.Comparison.LocalNoiseStd)
	if r.Comparison.PaperNoiseStd != nil {
		fmt.Fprintf(w, ", the paper's constants %.4g", *r.Comparison.PaperNoiseStd)
	}
	fmt.Fprintf(w, "\nexcess risk   at most %.4g in expectation", r.PredictedExcessRisk)
	if r.Vacuous {
		fmt.Fprintf(w, " (says nothing: theta = 0 has at most %.4g; the method may still learn, simulate tells)", r.TrivialRisk)
	}
	fmt.Fprintln(w)
	if r.Clips {
		fmt.Fprintln(w, "clips         yes: gradients can exceed the clip norm; the risk is of the convex surrogate with the cut gradient")
	}
	for _, g := range r.Guarantees {
		epsilon := "no finite epsilon"
		if g.Epsilon != nil {
			epsilon = fmt.Sprintf("epsilon %s, delta %g", cli.Upper(*g.Epsilon, 4), g.Delta)
		}
		fmt.Fprintf(w, "guarantee     %s against the %s if a share of %s of the users adds its noise\n", epsilon, g.Adversary, g.HonestFraction)
	}
	_, err := fmt.Fprintln(w, "              for one event of one user in one round, replaced by any other")
	return err
}
