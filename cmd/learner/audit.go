package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/audits"
	"github.com/panlearn/panlearn/internal/run/linkage"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
)

func newAudit() *cobra.Command {
	var (
		f      taskFlags
		trials int
		asJSON cli.JSON
	)
	c := &cobra.Command{
		Use:   "audit -f TASK",
		Short: "try to refute the task's privacy claim on the real encoder, randomizer and mixer",
		Long: `audit tests the claim that privacy rests on. It runs one round of each mechanism of the
plan many times, on rows far beyond the clip, and compares what an observer can tell from
the released totals with the claimed curve delta(epsilon) of one round. It uses the
client's own encoder, and of the vectors that this makes the two that are farthest apart.
Where no rows of a phase come near the poles of the ball, it also encodes vectors that do.

Each mechanism is tested with the smallest cohort whose release the plan allows, topped up
by the stage, and again with almost nobody, so that nearly all of the noise is the
stage's. Under the trusts pan and shuffle+pan the observer also reads the mixer's memory
once, before or after the target's report. Under trust local it sees one report by itself,
without a mixer. Where a report is about several units (rows or people), one unit changes;
the others are zero, and in a second test far from it. Where silos may be smaller than
planned and add noise of their own, the report of the smallest silo is tested, too. Phases
with the same cohort and the same randomizer are one mechanism.

Where a user answers T rounds, one round of one user reveals almost nothing. Then the
square root of T users, rounded down, change together in the round (under trust local: as
many units of one report). The claim for m such users equals the claim for one user in m^2
rounds.

For a task with grants: pass, audit also plays a round of a few people with all roles. It
looks for values that two of issuer, relay, broker and stage have in common about one
person: a token, among those who carry it; a person, message or blinding, among those who
see the token. It does not compare addresses or times. A link fails the audit.

A failed audit refutes the claim at the printed confidence (exit code 1): do not run that
build. A passed audit proves nothing; the proof is in docs/proofs/theorem-a.md. Each audit
prints how small a fault it could have seen: with the printed share of the noise it fails
about half the time, with less noise more often. More trials detect smaller faults.`,
		Example: `  learner audit -f deploy/tasks/quickstart.yaml --json
  learner audit -f deploy/tasks/a9a-interactive.yaml --set schedule.users=1000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if trials < 0 || trials > 0 && trials < 1000 {
				return cli.Usagef("--trials %d: want at least 1000, or 0 for %d", trials, audit.DefaultTrials)
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			all, err := audits.Of(job, trials)
			if err != nil {
				return err
			}
			out := auditReport{Task: job.Spec.Name, Trust: job.Problem.Trust, Rounds: 1, Confidence: audit.DefaultConfidence,
				Pass: true}
			for _, one := range all {
				report, err := audit.Run(c.Context(), one.Config)
				if err != nil {
					return err
				}
				out.add(one, report)
			}
			if job.Spec.Grants.Needed() {
				tokens, err := linkage.Run(c.Context(), linkage.Config{Suite: job.Spec.Privacy.Suite})
				if err != nil {
					return err
				}
				out.Tokens, out.Pass = &tokens, out.Pass && tokens.Pass
			}
			if err := asJSON.Print(c.OutOrStdout(), out, out.print); err != nil {
				return err
			}
			if !out.Pass {
				return errors.New("the audit refutes the claim: do not run this build")
			}
			return nil
		},
	}
	f.flags(c.Flags())
	c.Flags().IntVar(&trials, "trials", 0, "`N` rounds on each input of a pair; 0 is the default")
	asJSON.Flag(c.Flags())
	return c
}

// An auditReport is the JSON of `learner audit`. Everything claimed in it is claimed for one round and for
// UsersTogether users who change in it, each in UnitsTogether units of its report. Claimed and empirical epsilon are
// compared at AuditDelta, which is far above the task's delta: what happens once in a million rounds cannot be tested
// by running rounds. The audit with the largest claim comes first; Adversaries has the audits of all mechanisms of the
// plan and all adversaries of the trust, and Confidence holds for them together.
type auditReport struct {
	Task   string           `json:"task"`
	Trust  accounting.Trust `json:"trust"`
	Rounds int              `json:"rounds"`
	auditResult
	UsersTogether uint64           `json:"users_together"`
	UnitsTogether uint64           `json:"units_together"`
	Confidence    float64          `json:"confidence"`
	Trials        int              `json:"trials"`
	Pass          bool             `json:"pass"`
	Adversaries   []auditAdversary `json:"adversaries"`
	// Tokens has what the parties of a task with tokens have in common; nil of another task.
	Tokens *linkage.Report `json:"tokens,omitempty"`
}

type auditAdversary struct {
	Adversary string           `json:"adversary"`
	Mechanism audits.Mechanism `json:"mechanism"`
	auditResult
	// RefutableNoiseShare is the share of the planned noise that would be detected about half the time.
	RefutableNoiseShare float64 `json:"refutable_noise_share"`
	Pass                bool    `json:"pass"`
}

type auditResult struct {
	ClaimedEpsilon        float64      `json:"claimed_epsilon"`
	EmpiricalEpsilonLower float64      `json:"empirical_epsilon_lower"`
	AuditDelta            float64      `json:"audit_delta"`
	Points                []auditPoint `json:"points"`
}

type auditPoint struct {
	Epsilon float64 `json:"epsilon"`
	Claimed float64 `json:"claimed_delta"`
	Lower   float64 `json:"empirical_delta_lower"`
	Pair    string  `json:"pair"`
}

// add adds the result of the audit of one mechanism against one adversary.
func (r *auditReport) add(of audits.Audit, a audit.Report) {
	one := auditAdversary{Adversary: of.Config.View.String(), Mechanism: of.Mechanism,
		RefutableNoiseShare: a.RefutableShare, Pass: a.Pass,
		auditResult: auditResult{ClaimedEpsilon: a.ClaimedEpsilon, EmpiricalEpsilonLower: a.EmpiricalEpsilonLower,
			AuditDelta: a.Delta}}
	for _, p := range a.Points {
		one.Points = append(one.Points, auditPoint(p))
	}
	if len(r.Adversaries) == 0 || one.ClaimedEpsilon > r.ClaimedEpsilon {
		r.auditResult, r.UsersTogether, r.UnitsTogether = one.auditResult, of.UsersTogether, of.UnitsTogether
	}
	r.Adversaries = append(r.Adversaries, one)
	r.Trials, r.Pass = a.Trials, r.Pass && a.Pass
}

// print rounds each bound outward, and not at all the point of the curve that two bounds are about.
func (r auditReport) print(w io.Writer) error {
	for _, a := range r.Adversaries {
		fmt.Fprintln(w, a.heading())
		for _, p := range a.Points {
			fmt.Fprintf(w, "  %-10s  epsilon %-20g claimed delta %-10s at least %-10s (%s)\n",
				a.Adversary, p.Epsilon, cli.Upper(p.Claimed, 4), cli.Lower(p.Lower, 4), p.Pair)
		}
		verdict := "not refuted"
		if !a.Pass {
			verdict = "REFUTED"
		}
		fmt.Fprintf(w, "  %-10s  at delta %g: claimed epsilon %s, empirical at least %s: %s\n",
			a.Adversary, a.AuditDelta, cli.Upper(a.ClaimedEpsilon, 4), cli.Lower(a.EmpiricalEpsilonLower, 4), verdict)
		fmt.Fprintf(w, "  %-10s  with %s of the planned noise this audit fails as often as not, with less more often\n",
			a.Adversary, cli.Lower(a.RefutableNoiseShare, 2))
	}
	if r.Tokens != nil {
		printTokens(w, *r.Tokens)
	}
	_, err := fmt.Fprintf(w, "%d trials, confidence %s\n", r.Trials, cli.Lower(r.Confidence, 4))
	return err
}

// printTokens writes what parties have in common of the people of a round.
func printTokens(w io.Writer, r linkage.Report) {
	fmt.Fprintf(w, "tokens: %d people in a round with all roles; what two parties have in common of one person\n",
		r.People)
	for _, p := range r.Pairs {
		verdict := "nothing found"
		if p.Links > 0 {
			verdict = fmt.Sprintf("%s: REFUTED: %s", cli.Count(p.Links, "link"), strings.Join(p.Because, "; "))
		}
		fmt.Fprintf(w, "  %s and %s: %s\n", p.One, p.Other, verdict)
	}
}

// heading describes the audited mechanism and the claim about it.
func (a auditAdversary) heading() string {
	m := a.Mechanism
	phases := "phase"
	if len(m.Phases) > 1 {
		phases = "phases"
	}
	for i, p := range m.Phases {
		if i > 0 {
			phases += ","
		}
		phases += fmt.Sprintf(" %d", p)
	}
	floors := ""
	if m.FloorTrials > 0 {
		floors = fmt.Sprintf(", floors of %d trials", m.FloorTrials)
	}
	cohort, round := fmt.Sprintf("cohort %d of which %d report", m.Cohort, m.Minimum), "one round"
	if m.Units > 1 {
		cohort += fmt.Sprintf(" about %d units each", m.Units)
	}
	who := "1 user changes"
	switch {
	case a.Adversary == audit.OneReport.String():
		round, who = "one report", "1 unit of it changes"
		if m.UnitsTogether > 1 {
			who = fmt.Sprintf("%d units of it change together, since they are in %d rounds", m.UnitsTogether, m.RoundsPerUser)
		}
	case m.UsersTogether > 1:
		who = fmt.Sprintf("%d users change together, since one user answers %d rounds", m.UsersTogether, m.RoundsPerUser)
	case m.Units > 1:
		who = "1 unit of one report changes"
	}
	return fmt.Sprintf("%s, %s: %s, d = %d, g = %d, b = %d, p = %g%s; %s, %s",
		phases, m.Statistic, cohort, m.Dim, m.Levels, m.Trials, m.P, floors, round, who)
}
