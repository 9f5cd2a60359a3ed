package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
)

func newHistory() *cobra.Command {
	var (
		where  whereFlags
		asJSON cli.JSON
		newest int
	)
	c := &cobra.Command{
		Use:   "history (--state DIR | --http URL)",
		Short: "the rounds of a task: users, scores, alarms, and which models are kept",
		Long: `history prints one line for each of the newest rounds: how many users it had, their score
on the model that was current before it, the surprise, the clip, about how many users the
model remembers, and whether the model after the round is kept. A kept model can be
written (learner snapshot --round), kept for good (learner pin), and released again
(learner rollback).`,
		Example: "  learner history --state /var/lib/panlearn/a9a --newest 20",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if newest < 0 {
				return cli.Usagef("--newest %d: want a number of rounds, or 0 for all that are kept", newest)
			}
			doc, err := where.ask(c.Context(), statedir.HistoryOf(newest))
			if err != nil {
				return err
			}
			var h statedir.HistoryReport
			if err := json.Unmarshal(doc, &h); err != nil {
				return fmt.Errorf("the learner's answer: %w", err)
			}
			return asJSON.Print(c.OutOrStdout(), h, func(w io.Writer) error { return printHistory(w, h) })
		},
	}
	where.flags(c.Flags())
	c.Flags().IntVar(&newest, "newest", statedir.Newest, "how many `ROUNDS`; 0: all that are kept")
	asJSON.Flag(c.Flags())
	return c
}

func printHistory(w io.Writer, h statedir.HistoryReport) error {
	if len(h.Rounds) == 0 {
		_, err := fmt.Fprintf(w, "task %s: no round is committed yet\n", h.Task)
		return err
	}
	_, err := fmt.Fprintf(w, "%7s  %-20s%10s%10s%10s%10s%10s%10s  %s\n", "round", "time", "users", "loss", "accuracy",
		"surprise", "memory", "clip", "model")
	for _, r := range h.Rounds {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%7d  %-20s%10d%10s%10s%10s%10s%10s  %s\n",
			r.Round, r.Time.UTC().Format("2006-01-02T15:04:05Z"), r.Users, banded(r.Scores.Loss),
			banded(r.Scores.Accuracy), figure(r.Surprise, "%.2f"), figure(r.Memory, "%.0f"), figure(&r.Clip, "%.3g"), noted(r))
	}
	if h.Older && err == nil {
		_, err = fmt.Fprintf(w, "earlier rounds are kept too: --newest 0\n")
	}
	return err
}

func banded(b *method.Band) string {
	if b == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", b.Value)
}

func figure(x *float64, format string) string {
	if x == nil || *x == 0 {
		return "-"
	}
	return fmt.Sprintf(format, *x)
}

// noted describes the remarkable properties of a round, separated by commas.
func noted(r service.Record) string {
	var words []string
	say := func(when bool, text string) {
		if when {
			words = append(words, text)
		}
	}
	say(r.Pinned, "pinned")
	say(r.Snapshot && !r.Pinned, "kept")
	say(r.Void, "void")
	say(r.Unused, "unused")
	say(r.Alarm, "alarm")
	if r.RolledBack() {
		words = append(words, fmt.Sprintf("then rolled back to %d", r.Rollback.To))
	}
	return strings.Join(words, ", ")
}

// A changeFlags holds the flags of a command that changes, between two rounds, what is kept or released.
type changeFlags struct {
	dir   string
	round uint64
	log   cli.Log
	json  cli.JSON
}

func (f *changeFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "state", "", "state `DIR` of the learner, running or not")
	flags.Uint64Var(&f.round, "round", 0, "the `ROUND` whose model to use; learner history lists those that are kept")
	f.log.Flags(flags, "error")
	f.json.Flag(flags)
}

// command returns a command that makes a change and prints what say returns about it.
func (f *changeFlags) command(c *cobra.Command, change statedir.Change,
	say func(service.Record) string) *cobra.Command {
	c.Args = cobra.NoArgs
	f.flags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.dir == "" || !c.Flags().Changed("round") {
			return cli.Usagef("want --state DIR and --round ROUND")
		}
		logger, err := f.log.Logger(c.ErrOrStderr())
		if err != nil {
			return err
		}
		r, err := change.Make(c.Context(), f.dir, f.round, logger)
		if err != nil {
			return cli.Classify(err, cli.As[*state.VersionError](cli.ExitUsage), cli.Is(cli.ExitTransient, state.ErrLocked))
		}
		return f.json.Print(c.OutOrStdout(), r, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, say(r))
			return err
		})
	}
	return c
}

func newRollback() *cobra.Command {
	return new(changeFlags).command(&cobra.Command{
		Use:   "rollback --state DIR --round ROUND",
		Short: "release the model of an earlier round again",
		Long: `rollback makes the model of an earlier round the current one, at once and in one commit.
Snapshots are of that model, and the next round that is announced starts from it, as a
task with model.start does. It costs no epsilon, because no user is asked. A running
learner is asked over its control socket; without one the folder is changed, and no broker
is needed.

The users of a round that is already announced were asked at the withdrawn model: they are
counted and charged, but the model does not learn from them. The withdrawn model is kept,
so that the same command can undo a rollback. Only tasks without an end can be rolled
back: the steps of other tasks are planned from the model that they have reached. learner
snapshot --round writes their earlier models.`,
		Example: "  learner history --state /var/lib/panlearn/prices\n  learner rollback --state /var/lib/panlearn/prices --round 812",
	}, statedir.RollBack, func(r service.Record) string {
		return fmt.Sprintf(
			"the model of round %d stands again, and the next round that is announced starts from it; round %d, which is announced, is counted and teaches nothing\n"+
				"take it back with --round %d", r.Rollback.To, r.Round+1, r.Rollback.From)
	})
}

func newPin() *cobra.Command {
	return new(changeFlags).command(&cobra.Command{
		Use:   "pin --state DIR --round ROUND",
		Short: "keep the model of a round until it is unpinned",
		Long: `pin keeps a model for good, whatever state.snapshots says, until learner unpin: the newest
model, or an earlier one that is still kept. At most 100 models are pinned.`,
		Example: "  learner pin --state /var/lib/panlearn/prices --round 812",
	}, statedir.Pin, func(r service.Record) string { return fmt.Sprintf("round %d: its model is pinned", r.Round) })
}

func newUnpin() *cobra.Command {
	return new(changeFlags).command(&cobra.Command{
		Use:   "unpin --state DIR --round ROUND",
		Short: "undo pin: keep the model of a round no longer than others",
		Long: `unpin undoes learner pin. From the next round on the model is kept as long as
state.snapshots says.`,
		Example: "  learner unpin --state /var/lib/panlearn/prices --round 812",
	}, statedir.Unpin, func(r service.Record) string { return fmt.Sprintf("round %d: its model is not pinned", r.Round) })
}

// momentOf reads a time: RFC 3339, a date or a minute of the local clock, or how long ago, such as 24h ago.
func momentOf(text string, now time.Time) (time.Time, error) {
	if d, ago := strings.CutSuffix(strings.TrimSpace(text), " ago"); ago {
		if past, err := time.ParseDuration(strings.TrimSpace(d)); err == nil && past >= 0 {
			return now.Add(-past), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{},
		cli.Usagef("--at %q: want RFC 3339 such as 2026-11-24T12:00:00Z, a date, or how long ago such as \"24h ago\"", text)
}
