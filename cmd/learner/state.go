package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/statedir"
)

// whereFlags say which learner is asked.
type whereFlags struct{ statedir.Where }

func (f *whereFlags) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.StateDir, "state", "", "state `DIR` of the learner, running or not")
	flags.StringVar(&f.URL, "http", "", "`URL` of a running learner's --http")
}

func (f *whereFlags) ask(ctx context.Context, q statedir.Question) ([]byte, error) {
	if (f.StateDir == "") == (f.URL == "") {
		return nil, cli.Usagef("name the learner with either --state DIR or --http URL")
	}
	return statedir.Ask(ctx, f.Where, q)
}

func newStatus() *cobra.Command {
	var (
		where  whereFlags
		asJSON bool
	)
	c := &cobra.Command{
		Use:     "status (--state DIR | --http URL)",
		Short:   "how far a task is and what it has spent",
		Example: "  learner status --state /var/lib/panlearn/a9a --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			doc, err := where.ask(c.Context(), statedir.AskStatus)
			if err != nil {
				return err
			}
			var s statedir.Status
			if err := json.Unmarshal(doc, &s); err != nil {
				return fmt.Errorf("the learner's answer: %w", err)
			}
			return cli.Result(c.OutOrStdout(), asJSON, s, func(w io.Writer) error {
				steps := fmt.Sprintf("%d of %s", s.Steps, cli.Count(s.Rounds, "step"))
				if s.Rounds == 0 {
					steps = cli.Count(s.Steps, "step") + ", without end,"
				}
				_, err := fmt.Fprintf(w, "task %s: %s in %s, %s\nepsilon %s of %g, delta %g\n",
					s.Task, steps, cli.Count(s.Round, "round"), cli.Count(s.Users, "user"), cli.Upper(s.EpsilonSpent, 6), s.EpsilonBudget, s.DeltaSpent)
				if err == nil {
					err = printAdversaries(w, s.Adversaries)
				}
				if err == nil {
					err = printValidation(w, s.Validation)
				}
				if s.Ended && err == nil {
					_, err = fmt.Fprintf(w, "ended: %s\n", s.EndReason)
				}
				return err
			})
		},
	}
	where.Flags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newLedger() *cobra.Command {
	var (
		where  whereFlags
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "ledger (--state DIR | --http URL)",
		Short: "the privacy ledger, its hash chain verified",
		Long: `ledger prints every reservation and what settled it. A broken hash chain is an error: exit code 1 and no figures. In the
JSON, entries has one line a round, the one that counts, and chain has them all.`,
		Example: "  learner ledger --state /var/lib/panlearn/a9a --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			doc, err := where.ask(c.Context(), statedir.AskLedger)
			if err != nil {
				return err
			}
			var l statedir.LedgerReport
			if err := json.Unmarshal(doc, &l); err != nil {
				return fmt.Errorf("the learner's answer: %w", err)
			}
			return cli.Result(c.OutOrStdout(), asJSON, l, func(w io.Writer) error {
				for _, e := range l.Chain {
					if _, err := fmt.Fprintf(w, "%5d  %-8s  round %d  attempt %d  users %d  epsilon %s  %s\n",
						e.Sequence, e.Kind, e.Round, e.Attempt, e.Users, cli.Upper(e.Epsilon, 6), e.Hash); err != nil {
						return err
					}
				}
				together := ""
				if l.RoundsPerUser > 1 {
					together = fmt.Sprintf(", in all of at most %s", cli.Count(l.RoundsPerUser, "round"))
				}
				if _, err := fmt.Fprintf(w, "epsilon %s, delta %g for the user who is charged most%s; chain intact\n", cli.Upper(l.Epsilon, 6), l.Delta, together); err != nil {
					return err
				}
				if l.Ended {
					if _, err := fmt.Fprintf(w, "ended: %s\n", l.EndReason); err != nil {
						return err
					}
				}
				return printAdversaries(w, l.Adversaries)
			})
		},
	}
	where.Flags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printAdversaries says whose epsilon was printed, where the trust model knows more than one adversary.
func printAdversaries(w io.Writer, a statedir.Adversaries) error {
	if a.EpsilonIntruder == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "trust %s: epsilon %s against one who looks once into the shuffle stage, %s against the learner alone\n",
		a.Trust, cli.Upper(*a.EpsilonIntruder, 6), cli.Upper(a.EpsilonLearner, 6))
	return err
}
