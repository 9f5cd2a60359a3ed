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
released totals with the whole claimed curve delta(epsilon). A failed audit refutes the claim at the printed confidence
(exit code 1). A passed one proves nothing: the proof is in docs/theorem-a.md.`,
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
			config, err := auditOf(job, trials)
			if err != nil {
				return err
			}
			report, err := audit.Run(c.Context(), config)
			if err != nil {
				return err
			}
			out := auditReport{Task: job.Spec.Name, ClaimedEpsilon: report.ClaimedEpsilon, EmpiricalEpsilonLower: report.EmpiricalEpsilonLower,
				AuditDelta: report.Delta, Confidence: report.Confidence, Trials: report.Trials, Pass: report.Pass}
			for _, p := range report.Points {
				out.Points = append(out.Points, auditPoint(p))
			}
			if err := cli.Result(c.OutOrStdout(), asJSON, out, out.print); err != nil {
				return err
			}
			if !report.Pass {
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

// auditOf runs the honest users of a planned round alone: what the claim relies on.
func auditOf(job pipeline.Job, trials int) (audit.Config, error) {
	if job.Problem.Trust != accounting.Shuffle {
		return audit.Config{}, cli.Usage(pipeline.ErrTrust)
	}
	params, err := job.Plan.Params()
	if err != nil {
		return audit.Config{}, err
	}
	release := job.Plan.Privacy.Release()
	return audit.Config{
		Params: params, Users: release.HonestFraction.Floor(release.Users), Trials: trials,
		Claim: func(epsilon float64) (float64, error) {
			f, err := release.Delta(epsilon)
			return f.Delta, err
		},
	}, nil
}

// An auditReport is the JSON of `learner audit`. Claimed and empirical epsilon are compared at AuditDelta, which is far
// above the task's delta: what happens once in a million rounds cannot be tested by running rounds.
type auditReport struct {
	Task                  string       `json:"task"`
	ClaimedEpsilon        float64      `json:"claimed_epsilon"`
	EmpiricalEpsilonLower float64      `json:"empirical_epsilon_lower"`
	AuditDelta            float64      `json:"audit_delta"`
	Confidence            float64      `json:"confidence"`
	Trials                int          `json:"trials"`
	Pass                  bool         `json:"pass"`
	Points                []auditPoint `json:"points"`
}

type auditPoint struct {
	Epsilon float64 `json:"epsilon"`
	Claimed float64 `json:"claimed_delta"`
	Lower   float64 `json:"empirical_delta_lower"`
	Pair    string  `json:"pair"`
}

func (r auditReport) print(w io.Writer) error {
	for _, p := range r.Points {
		if _, err := fmt.Fprintf(w, "epsilon %-8.4g claimed delta %-10.4g at least %-10.4g (%s)\n", p.Epsilon, p.Claimed, p.Lower, p.Pair); err != nil {
			return err
		}
	}
	verdict := "not refuted"
	if !r.Pass {
		verdict = "REFUTED"
	}
	_, err := fmt.Fprintf(w, "at delta %.3g: claimed epsilon %.4g, empirical at least %.4g; %d trials, confidence %.4g: %s\n",
		r.AuditDelta, r.ClaimedEpsilon, r.EmpiricalEpsilonLower, r.Trials, r.Confidence, verdict)
	return err
}
