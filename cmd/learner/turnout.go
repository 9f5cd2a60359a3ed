package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/research/isrl"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// turnouts holds the flags about rounds in which not everybody takes part.
type turnouts struct {
	present float64
	reports bool
	rows    []uint
}

func (o *turnouts) flags(c *cobra.Command) {
	c.Flags().Float64Var(&o.present, "present", 0,
		"bound the risk if each report of a round comes with this `PROBABILITY`, independently of the others")
	c.Flags().BoolVar(&o.reports, "by-reports", false,
		"bound the risk for other numbers of silos in a round, with and without the task's silo.spread")
	c.Flags().UintSliceVar(&o.rows, "silo-rows", nil,
		"bound the risk of many passes if silos have `ROWS,ROWS,...`, each with the noise for its own number")
	c.Flags().Lookup("silo-rows").DefValue = "" // else its help says (default [])
}

// bySize reports whether sizes of silos are given.
func (o *turnouts) bySize() bool { return len(o.rows) > 0 }

// validate refuses flags that go with others.
func (o *turnouts) validate(c *cobra.Command, compare bool) error {
	switch {
	case compare && (o.reports || o.bySize() || c.Flags().Changed("present")):
		return cli.Usagef("--present, --by-reports and --silo-rows are about one plan, and --compare prints a table")
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

// A planTurnouts bounds the risk of rounds in which not everybody takes part, or silos have other numbers of rows than
// planned, if a flag requests it.
type planTurnouts struct {
	// Present is the bound where each report of a round comes by chance.
	Present *present `json:"present,omitempty"`
	// Unequal is the bound for silos of sizes of their own.
	Unequal *unequal `json:"unequal,omitempty"`
	// ByReports has the bounds for other numbers of silos in a round.
	ByReports []siloBound `json:"by_reports,omitempty"`
}

// answer returns the bounds that the flags request.
func (o *turnouts) answer(job run.Job) (r planTurnouts, err error) {
	if o.present > 0 {
		risk, reports, ok := job.Problem.Present(job.Proposal, o.present)
		if !ok {
			return r, cli.Usagef("--present: the plan has no bound: schedule.plan=proved makes one that has")
		}
		r.Present = &present{o.present, reports, risk}
	}
	if o.bySize() {
		if r.Unequal, err = o.answerSizes(job); err != nil {
			return r, err
		}
	}
	if !o.reports {
		return r, nil
	}
	finite := func(x float64) *float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return &x
	}
	for _, b := range job.Problem.BySilos(job.Proposal) {
		r.ByReports = append(r.ByReports, siloBound{b.Reports, finite(b.Bound), finite(b.Unknown)})
	}
	if r.ByReports == nil {
		return r, cli.Usagef("--by-reports: it is for proved plans of silos under trust local")
	}
	return r, nil
}

// An unequal is the bound of a plan for silos of sizes of their own.
type unequal struct {
	Rows                []uint  `json:"rows"`
	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
	// Noise is of one coordinate, in units of the clip norm: the least and the largest of a report, of the mean over all
	// silos, and of the mean in which they weigh as their rows, which is not run.
	Least   float64 `json:"noise_of_largest"`
	Largest float64 `json:"noise_of_smallest"`
	Mean    float64 `json:"noise_of_mean"`
	ByRows  float64 `json:"noise_of_mean_by_rows"`
	// PaperQ is Q of Theorem H.1, and EqualQ what it is of silos that all have silo.units.
	PaperQ float64 `json:"paper_q"`
	EqualQ float64 `json:"paper_q_of_equal"`
}

// answerSizes returns the bound for silos of different sizes.
func (o *turnouts) answerSizes(job run.Job) (*unequal, error) {
	rows, own, equal := make([]uint64, len(o.rows)), make([]isrl.Silo, len(o.rows)), make([]isrl.Silo, len(o.rows))
	p := job.Problem
	for i, n := range o.rows {
		b := accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta}
		rows[i], own[i], equal[i] = uint64(n), isrl.Silo{Records: float64(n), Budget: b},
			isrl.Silo{Records: float64(p.Silos.Units), Budget: b}
	}
	u, err := p.Unequal(job.Proposal, rows)
	if err != nil {
		return nil, cli.Usagef("--%w", err)
	}
	rounds, available := float64(manifest.Planned(job.Plan)), []int{int(p.Silos.Reports)}
	return &unequal{Rows: o.rows, PredictedExcessRisk: u.Bound, Least: u.Least, Largest: u.Largest, Mean: u.Mean,
		ByRows: u.ByRows, PaperQ: isrl.Unbalanced(own, rounds, available),
		EqualQ: isrl.Unbalanced(equal, rounds, available)}, nil
}

// printTurnouts prints the requested bounds.
func (r planReport) printTurnouts(w io.Writer) {
	if p := r.Present; p != nil {
		fmt.Fprintf(w, "present       where each report comes with probability %v, at most %.4g%s: 1/%.4g is the mean of 1/M_r\n",
			p.Probability, p.PredictedExcessRisk, r.vacuous(p.PredictedExcessRisk), p.Reports)
	}
	if u := r.Unequal; u != nil {
		fmt.Fprintf(w, "silo rows     %d silos of %d to %d rows, each with noise of its own: at most %.4g%s\n",
			len(u.Rows), slices.Min(u.Rows), slices.Max(u.Rows), u.PredictedExcessRisk, r.vacuous(u.PredictedExcessRisk))
		fmt.Fprintf(w, "              noise %.4g to %.4g in a report, %.4g in the mean of all, and %.4g if silos weighed as their rows, which is not run\n",
			u.Least, u.Largest, u.Mean, u.ByRows)
		fmt.Fprintf(w, "              Theorem H.1 of Lowy and Razaviyayn has Q %.4g for them, and %.4g if all had silo.units\n", u.PaperQ, u.EqualQ)
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
