package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/ledger"
)

func newLedger() *cobra.Command {
	var (
		state, policyFile string
		asJSON            cli.JSON
	)
	c := &cobra.Command{
		Use:   "ledger --state DIR",
		Short: "what the tasks of a state folder cost those whose events it reports",
		Long: `ledger prints what each task cost the people whose events a state folder reports, as the
devices themselves account for it. It also prints the largest cost of one event over all
tasks (of one user, if users have accounts of their own): for ever, or in the period of a
policy. The unit of a task's epsilon is one event (for a silo: one record), or all events
of one user. The figures hold if, in every cohort, the honest share of the planned reports
is at least the share that the task, or the policy, relies on; under the trusts local and
pan all others may be dishonest. A task costs nothing before its first report is sent, and
nothing is given back. ledger works while publishers run.`,
		Example: "  ingest ledger --state ./devices --policy deploy/policy.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if state == "" {
				return cli.Usagef("--state: name the folder of the publisher's state")
			}
			var policy consent.Policy
			if policyFile != "" {
				var err error
				if policy, err = readPolicy(policyFile); err != nil {
					return err
				}
			}
			book, err := filestore.ReadLedger(state)
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Usagef("--state %s: %w: no publisher has charged anything there", state, err)
			}
			if err != nil {
				return err
			}
			s, err := ledger.ReadStatement(book, time.Now(), policy.Period)
			if err != nil {
				return err
			}
			out := statementOf(s, policy)
			return asJSON.Print(c.OutOrStdout(), out, out.print)
		},
	}
	c.Flags().StringVar(&state, "state", "", "`DIR` of the publisher's state")
	c.Flags().StringVar(&policyFile, "policy", "", "`FILE` with the period and the limits to compare with (YAML)")
	asJSON.Flag(c.Flags())
	return c
}

// readPolicy reads a policy file for a flag.
func readPolicy(file string) (consent.Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return consent.Policy{}, cli.Usagef("--policy: %w", err)
	}
	policy, err := consent.ParsePolicy(data)
	if err != nil {
		return consent.Policy{}, cli.Usagef("--policy %s: %s", file, oneLine(err))
	}
	return policy, nil
}

// A statement is the output of the command.
type statement struct {
	Time            time.Time  `json:"time"`              // of the ledger, which a clock that is set back does not move
	Period          string     `json:"period"`            // such as 720h0m0s; empty is for ever
	Epsilon         float64    `json:"epsilon"`           // of the unit that paid most in the period
	Delta           float64    `json:"delta"`             //
	MaxTotalEpsilon *float64   `json:"max_total_epsilon"` // of the policy; null is no limit
	MaxTotalDelta   *float64   `json:"max_total_delta"`
	Users           int        `json:"users"` // with separate accounts
	Unit            string     `json:"unit"`  // of an account: event, or user where users have accounts of their own
	Tasks           []spending `json:"tasks"`
}

type spending struct {
	Task     string  `json:"task"`
	TaskHash string  `json:"task_hash"`
	Unit     string  `json:"unit"`    // that the epsilon is for: event, or user, all events of one person
	Epsilon  float64 `json:"epsilon"` // of all participations of the event that had most, composed
	Delta    float64 `json:"delta"`
	Rounds   uint32  `json:"rounds"`          // answered, by the user who answered most
	Most     uint32  `json:"rounds_per_user"` // that the epsilon is for
	// participations: an event, or a silo's block of records, that joined another round after one counts again
	Events uint64 `json:"events"`
	// false: the ledger began later than the task, and there may be more events
	Complete bool      `json:"complete"`
	Last     time.Time `json:"last"`      // when the newest of them was charged
	InPeriod bool      `json:"in_period"` // counts in the totals
}

func statementOf(s ledger.Statement, p consent.Policy) statement {
	out := statement{Time: s.Time, Epsilon: s.Epsilon, Delta: s.Delta, Users: s.Users, Tasks: []spending{}}
	out.Unit = unitOf(s.Users > 0)
	if p.Period > 0 {
		out.Period = p.Period.String()
	}
	if p.MaxTotalEpsilon > 0 {
		out.MaxTotalEpsilon = &p.MaxTotalEpsilon
	}
	if p.MaxTotalDelta > 0 {
		out.MaxTotalDelta = &p.MaxTotalDelta
	}
	for _, c := range s.Tasks {
		out.Tasks = append(out.Tasks, spending{Task: string(c.Name), TaskHash: fmt.Sprintf("%x", c.Task),
			Unit: unitOf(c.ByUser), Epsilon: c.Epsilon,
			Delta: c.Delta, Rounds: c.Rounds, Most: c.Most, Events: c.Standing, Complete: !c.Lost, Last: c.At,
			InPeriod: s.Counts(c, p.Period)})
	}
	return out
}

func unitOf(byUser bool) string {
	if byUser {
		return task.UnitUser
	}
	return task.UnitEvent
}

func (s statement) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "task\tunit\tepsilon\tdelta\trounds\treports\tlast charge\tcounts")
	for _, c := range s.Tasks {
		counts := "yes"
		if !c.InPeriod {
			counts = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d of %d\t%d\t%s\t%s\n", c.Task, c.Unit, cli.Upper(c.Epsilon, 6),
			cli.Upper(c.Delta, 6), c.Rounds, c.Most, c.Events, c.Last.Format(time.RFC3339), counts)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	window := "for ever"
	if s.Period != "" {
		window = "in " + s.Period
	}
	limits := ""
	if s.MaxTotalEpsilon != nil {
		limits += fmt.Sprintf(", of %g", *s.MaxTotalEpsilon)
	}
	if s.MaxTotalDelta != nil {
		limits += fmt.Sprintf(", delta of %g", *s.MaxTotalDelta)
	}
	unit := s.Unit
	if len(s.Tasks) > 0 && !slices.ContainsFunc(s.Tasks, func(c spending) bool { return c.Unit != task.UnitUser }) {
		unit = task.UnitUser // a silo has one account for all of its people
	}
	_, err := fmt.Fprintf(w, "\n%s, the %s that paid most: epsilon %s, delta %s%s\n"+
		"each if in every cohort the share of the reports planned for is honest that its task, or your policy, relies upon (under trust local: none)\n", window, unit, cli.Upper(s.Epsilon, 6), cli.Upper(s.Delta, 6), limits)
	return err
}
