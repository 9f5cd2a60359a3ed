package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
)

// turnouts holds what is asked of a plan for rounds that not everybody answers.
type turnouts struct {
	present float64
	reports bool
}

func (o *turnouts) flags(c *cobra.Command) {
	c.Flags().Float64Var(&o.present, "present", 0,
		"bound the risk where each report of a round comes with this `PROBABILITY`, independently of the others")
	c.Flags().BoolVar(&o.reports, "by-reports", false,
		"bound the risk for other numbers of silos in a round, with the task's silo.spread and without one")
}

// validate refuses flags that go with others.
func (o *turnouts) validate(c *cobra.Command, compare bool) error {
	switch {
	case compare && (o.reports || c.Flags().Changed("present")):
		return cli.Usagef("--present and --by-reports are about one plan, and --compare prints a table")
	case c.Flags().Changed("present") && !(o.present > 0 && o.present <= 1):
		return cli.Usagef("--present %v: want a probability above 0", o.present)
	}
	return nil
}

// A present is the bound of a plan where each report of a round comes with a probability.
type present struct {
	Probability float64 `json:"probability"`
	// Reports is M, 1/M the mean of one over the reports of a round.
	Reports             float64 `json:"reports"`
	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
}

// A siloBound is the bound of the best plan with so many silos in a round; null where there is none.
type siloBound struct {
	Reports             uint64   `json:"reports"`
	PredictedExcessRisk *float64 `json:"predicted_excess_risk"`
	WithoutSpread       *float64 `json:"without_spread"` // where silos may differ as far as gradients can
}

// answer fills in what is asked.
func (o *turnouts) answer(job run.Job, r *planRisk) error {
	if o.present > 0 {
		risk, reports, ok := job.Problem.Present(job.Proposal, o.present)
		if !ok {
			return cli.Usagef("--present: the plan has no bound: schedule.plan=proved makes one that has")
		}
		r.Present = &present{o.present, reports, risk}
	}
	if !o.reports {
		return nil
	}
	finite := func(x float64) *float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return &x
	}
	for _, b := range job.Planner.BySilos(job.Problem, job.Proposal) {
		r.ByReports = append(r.ByReports, siloBound{b.Reports, finite(b.Bound), finite(b.Unknown)})
	}
	if r.ByReports == nil {
		return cli.Usagef("--by-reports: it is for proved plans of silos under trust local")
	}
	return nil
}

// printTurnouts prints what was asked.
func (r planReport) printTurnouts(w io.Writer) {
	if p := r.Present; p != nil {
		fmt.Fprintf(w, "present       where each report comes with probability %v, at most %.4g%s: 1/%.4g is the mean of 1/M_r\n",
			p.Probability, p.PredictedExcessRisk, r.vacuous(p.PredictedExcessRisk), p.Reports)
	}
	if r.ByReports == nil {
		return
	}
	fmt.Fprintln(w, "by reports    silos in a round, and the bound of their best plan; without silo.spread")
	for _, b := range r.ByReports {
		text := func(x *float64) string {
			if x == nil {
				return "no plan"
			}
			return fmt.Sprintf("%.4g%s", *x, r.vacuous(*x))
		}
		fmt.Fprintf(w, "              %-5d %-24s %s\n", b.Reports, text(b.PredictedExcessRisk), text(b.WithoutSpread))
	}
}
