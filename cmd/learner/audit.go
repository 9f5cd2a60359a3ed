package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
)

func newAudit() *cobra.Command {
	var (
		f      taskFlags
		trials int
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "audit -f TASK",
		Short: "try to refute the task's privacy claim on the real randomizer and mixer",
		Long: `audit runs a planned round again and again on the worst pair of neighbours it knows and compares what can be told from the
released totals with the whole claimed curve delta(epsilon). Under the trusts pan and shuffle+pan it does the same for somebody
who also reads the mixer's memory once, before or after the target's report. A failed audit refutes the claim at the printed
confidence (exit code 1). A passed one proves nothing: the proof is in docs/theorem-a.md.`,
		Example: "  learner audit -f deploy/tasks/quickstart.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if trials < 0 || trials > 0 && trials < 1000 {
				return cli.Usagef("--trials %d: want at least 1000, or 0 for %d", trials, audit.DefaultTrials)
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			views, err := auditsOf(job, trials)
			if err != nil {
				return err
			}
			out := auditReport{Task: job.Spec.Name, Trust: job.Problem.Trust, Confidence: audit.DefaultConfidence, Pass: true}
			for _, view := range views {
				report, err := audit.Run(c.Context(), view)
				if err != nil {
					return err
				}
				out.add(view.View, report)
			}
			if err := cli.Result(c.OutOrStdout(), asJSON, out, out.print); err != nil {
				return err
			}
			if !out.Pass {
				return errors.New("the audit refutes the claim: do not run this build")
			}
			return nil
		},
	}
	f.Flags(c.Flags())
	c.Flags().IntVar(&trials, "trials", 0, "`N` rounds on each input of a pair; 0 is the default")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// auditsOf has one audit for each adversary of the task's trust, so that the claims about all of them are tested at
// DefaultConfidence together. The learner's runs the honest users of a planned round alone: what the claim relies on.
func auditsOf(job pipeline.Job, trials int) ([]audit.Config, error) {
	params, err := job.Plan.Params(0)
	if err != nil {
		return nil, err
	}
	release := job.Plan.Phases[0].Privacy.Release()
	base := audit.Config{Params: params, Users: release.HonestFraction.Floor(release.Users), FloorTrials: release.FloorTrials, Trials: trials}
	accountant := accounting.NewAccountant()
	claim := func(of func(accounting.Failure) float64) func(float64) (float64, error) {
		return func(epsilon float64) (float64, error) {
			f, err := accountant.ReleaseDelta(release, epsilon)
			return of(f), err
		}
	}
	base.Claim = claim(func(f accounting.Failure) float64 { return f.Learner })
	if !release.Trust.HasFloors() {
		return []audit.Config{base}, nil
	}
	base.Confidence = 1 - (1-audit.DefaultConfidence)/2
	intruder := base
	intruder.View, intruder.Claim = audit.Intruder, claim(func(f accounting.Failure) float64 { return f.Intruder })
	return []audit.Config{base, intruder}, nil
}

// An auditReport is the JSON of `learner audit`. Claimed and empirical epsilon are compared at AuditDelta, which is far
// above the task's delta: what happens once in a million rounds cannot be tested by running rounds. At the top stands the
// adversary with the largest claim; Adversaries has all that the trust knows, and Confidence holds for them together.
type auditReport struct {
	Task                  string           `json:"task"`
	Trust                 accounting.Trust `json:"trust"`
	ClaimedEpsilon        float64          `json:"claimed_epsilon"`
	EmpiricalEpsilonLower float64          `json:"empirical_epsilon_lower"`
	AuditDelta            float64          `json:"audit_delta"`
	Confidence            float64          `json:"confidence"`
	Trials                int              `json:"trials"`
	Pass                  bool             `json:"pass"`
	Points                []auditPoint     `json:"points"`
	Adversaries           []auditAdversary `json:"adversaries"`
}

type auditAdversary struct {
	Adversary             string       `json:"adversary"`
	ClaimedEpsilon        float64      `json:"claimed_epsilon"`
	EmpiricalEpsilonLower float64      `json:"empirical_epsilon_lower"`
	AuditDelta            float64      `json:"audit_delta"`
	Pass                  bool         `json:"pass"`
	Points                []auditPoint `json:"points"`
}

type auditPoint struct {
	Epsilon float64 `json:"epsilon"`
	Claimed float64 `json:"claimed_delta"`
	Lower   float64 `json:"empirical_delta_lower"`
	Pair    string  `json:"pair"`
}

// add takes the audit of one adversary.
func (r *auditReport) add(v audit.View, a audit.Report) {
	one := auditAdversary{Adversary: v.String(), ClaimedEpsilon: a.ClaimedEpsilon, EmpiricalEpsilonLower: a.EmpiricalEpsilonLower,
		AuditDelta: a.Delta, Pass: a.Pass}
	for _, p := range a.Points {
		one.Points = append(one.Points, auditPoint(p))
	}
	if len(r.Adversaries) == 0 || one.ClaimedEpsilon > r.ClaimedEpsilon {
		r.ClaimedEpsilon, r.EmpiricalEpsilonLower, r.AuditDelta = one.ClaimedEpsilon, one.EmpiricalEpsilonLower, one.AuditDelta
		r.Points = one.Points
	}
	r.Adversaries = append(r.Adversaries, one)
	r.Trials, r.Pass = a.Trials, r.Pass && a.Pass
}

// print rounds each bound outward, and not at all the point of the curve that two bounds are about.
func (r auditReport) print(w io.Writer) error {
	for _, a := range r.Adversaries {
		for _, p := range a.Points {
			fmt.Fprintf(w, "%-8s  epsilon %-20g claimed delta %-10s at least %-10s (%s)\n",
				a.Adversary, p.Epsilon, cli.Upper(p.Claimed, 4), cli.Lower(p.Lower, 4), p.Pair)
		}
		verdict := "not refuted"
		if !a.Pass {
			verdict = "REFUTED"
		}
		fmt.Fprintf(w, "%-8s  at delta %g: claimed epsilon %s, empirical at least %s: %s\n",
			a.Adversary, a.AuditDelta, cli.Upper(a.ClaimedEpsilon, 4), cli.Lower(a.EmpiricalEpsilonLower, 4), verdict)
	}
	_, err := fmt.Fprintf(w, "%d trials, confidence %s\n", r.Trials, cli.Lower(r.Confidence, 4))
	return err
}
