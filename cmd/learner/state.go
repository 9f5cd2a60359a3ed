package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/method"
)

// whereFlags holds the flags that select a learner: its state folder, or its URL.
type whereFlags struct{ statedir.Where }

func (f *whereFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.StateDir, "state", "", "state `DIR` of the learner, running or not")
	flags.StringVar(&f.URL, "http", "", "`URL` of a running learner's --http")
}

func (f *whereFlags) ask(ctx context.Context, q statedir.Question) (doc []byte, err error) {
	err = f.askTo(ctx, q, func(r io.Reader) error {
		doc, err = io.ReadAll(r)
		return err
	})
	return bytes.TrimSuffix(doc, []byte("\n")), err
}

// askTo works like ask, for long answers: it passes the answer to read as it arrives.
func (f *whereFlags) askTo(ctx context.Context, q statedir.Question, read func(io.Reader) error) error {
	if (f.StateDir == "") == (f.URL == "") {
		return cli.Usagef("name the learner with either --state DIR or --http URL")
	}
	return statedir.AskTo(ctx, f.Where, q, read)
}

func newStatus() *cobra.Command {
	var (
		where  whereFlags
		asJSON cli.JSON
		all    bool
		ready  bool
	)
	c := &cobra.Command{
		Use:   "status (--state DIR | --http URL) [--all | --ready]",
		Short: "print how far a task is and what it has spent",
		Example: "  learner status --state /var/lib/panlearn/a9a --json\n" +
			"  learner status --all --http http://127.0.0.1:9090\n" +
			"  learner status --ready --http http://127.0.0.1:9091",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if ready && (all || c.Flags().Changed("json")) {
				return cli.Usagef("--ready prints nothing: give it neither --all nor --json")
			}
			if ready {
				return isReady(c.Context(), where)
			}
			if all {
				list, err := statusOfAll(c.Context(), where)
				if err != nil && list.Tasks == nil {
					return err
				}
				return errors.Join(asJSON.Print(c.OutOrStdout(), list, list.print), err)
			}
			doc, err := where.ask(c.Context(), statedir.AskStatus)
			if err != nil {
				return err
			}
			var s statedir.Status
			if err := json.Unmarshal(doc, &s); err != nil {
				return fmt.Errorf("the learner's answer: %w", err)
			}
			return asJSON.Print(c.OutOrStdout(), s, func(w io.Writer) error { return printStatus(w, s) })
		},
	}
	where.flags(c.Flags())
	asJSON.Flag(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "the status of every task of learner run --tasks")
	c.Flags().BoolVar(&ready, "ready", false,
		"check only whether a process of any role works, at the URL of its --http or --metrics; exit code 75 if it does not")
	return c
}

// readyPatience bounds the wait for the answer of /readyz.
const readyPatience = 10 * time.Second

// isReady returns nil if a process reports at /readyz that it works. It is for the health check of a container whose
// image has no other HTTP client.
func isReady(ctx context.Context, where whereFlags) error {
	if where.StateDir != "" || where.URL == "" {
		return cli.Usagef("--ready: name the process with --http URL")
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(where.URL, "/")+"/readyz", nil)
	if err != nil || request.URL.Host == "" {
		return cli.Usagef("--http %s: want http://HOST:PORT of the process's --http or --metrics", where.URL)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return cli.Transient(fmt.Errorf("the process does not answer: %w", err))
	}
	defer response.Body.Close()
	why, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	switch {
	case response.StatusCode == http.StatusNotFound:
		return cli.Usagef("--http %s: nothing is at /readyz there: if that is where the process takes events, reports, or requests of "+
			"applications, name its --metrics", where.URL)
	case err == nil && response.StatusCode != http.StatusOK:
		err = fmt.Errorf("not ready: %s", strings.TrimSpace(string(why)))
	}
	return cli.Transient(err)
}

func printStatus(w io.Writer, s statedir.Status) error {
	steps := fmt.Sprintf("%d of %s", s.Steps, cli.Count(s.Rounds, "step"))
	if s.Rounds == 0 {
		steps = cli.Count(s.Steps, "step") + ", without end,"
	}
	_, err := fmt.Fprintf(w,
		"task %s: %s in %s, %s\nepsilon %s of %g, delta %g for %s%s\n", s.Task, steps, cli.Count(s.Round, "round"),
		s.Counted().Count(s.Users), cli.Upper(s.EpsilonSpent, 6), s.EpsilonBudget, s.DeltaSpent, s.Charged(), s.Assuming())
	if err == nil {
		err = printAdversaries(w, s.Adversaries)
	}
	if s.Start != nil && err == nil {
		_, err = fmt.Fprintf(w, "start         %s\n", s.Start)
	}
	if err == nil {
		err = printRelease(w, s)
	}
	if err == nil {
		err = printValidation(w, s.Kind, s.Validation, s.RMSE)
	}
	if err == nil {
		err = printKept(w, s)
	}
	if t := s.Tracking; t != nil && err == nil {
		_, err = fmt.Fprintf(w, "stream        %s\n", wording.Tracking(*t, s.Kind))
	}
	if err == nil {
		err = printBaseline(w, s.Baseline, s.Rounds == 0)
	}
	if err == nil {
		err = wording.PrintLearned(w, s.Learned)
	}
	if s.VoidsInARow > 0 && !s.Ended && err == nil {
		_, err = fmt.Fprintf(w, "the last %s void; after the third in a row the learner waits before it announces the next\n",
			voidRounds(s.VoidsInARow))
	}
	if s.Ended && err == nil {
		_, err = fmt.Fprintf(w, "ended: %s\n", s.EndReason)
	}
	return err
}

// printKept prints which model was kept last, and which was rolled back to.
func printKept(w io.Writer, s statedir.Status) error {
	if k := s.Kept; k != nil {
		if _, err := fmt.Fprintf(w, "kept          the model of round %d, %s; learner history has the others\n", k.Round,
			k.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	b := s.Rollback
	if b == nil {
		return nil
	}
	stands := ""
	if b.After == s.Round {
		stands = ", and stands"
	}
	_, err := fmt.Fprintf(w, "rolled back   after round %d to the model of round %d, %s%s\n", b.After, b.To,
		b.Time.Format(time.RFC3339), stands)
	return err
}

func newLedger() *cobra.Command {
	var (
		where  whereFlags
		asJSON cli.JSON
	)
	c := &cobra.Command{
		Use:   "ledger (--state DIR | --http URL)",
		Short: "print the privacy ledger and verify its hash chain",
		Long: `ledger prints every reservation of privacy budget and how it was settled, including those
in the archive of the state folder. A broken hash chain, or a lost or damaged archive, is
an error: exit code 1 and no figures. In the JSON output, entries has one line for each
round, the one that counts, and chain has all lines.`,
		Example: "  learner ledger --state /var/lib/panlearn/a9a --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := c.OutOrStdout()
			return where.askTo(c.Context(), statedir.AskLedger, func(r io.Reader) error {
				if asJSON {
					_, err := io.Copy(w, r)
					return err
				}
				return printLedger(w, r)
			})
		},
	}
	where.flags(c.Flags())
	asJSON.Flag(c.Flags())
	return c
}

func voidRounds(n uint64) string {
	if n == 1 {
		return "round was"
	}
	return fmt.Sprintf("%d rounds were", n)
}

// printLedger prints the lines of a report as they come.
func printLedger(out io.Writer, report io.Reader) error {
	w := bufio.NewWriter(out)
	l, err := statedir.ReadLedger(report, func(field string, e statedir.LedgerEntry) error {
		if field != "chain" {
			return nil
		}
		_, err := fmt.Fprintf(w, "%5d  %-8s  round %d  attempt %d  reports %d  epsilon %s  %s\n",
			e.Sequence, e.Kind, e.Round, e.Attempt, e.Users, cli.Upper(e.Epsilon, 6), e.Hash)
		return err
	})
	if err != nil {
		return err
	}
	together := ""
	if l.RoundsPerUser > 1 {
		together = fmt.Sprintf(", in all of at most %s", cli.Count(l.RoundsPerUser, "round"))
	}
	fmt.Fprintf(w, "epsilon %s, delta %g for %s%s%s; chain intact\n", cli.Upper(l.Epsilon, 6), l.Delta, l.Charged(),
		together, l.Assuming())
	if l.Ended {
		fmt.Fprintf(w, "ended: %s\n", l.EndReason)
	}
	if err := printAdversaries(w, l.Adversaries); err != nil {
		return err
	}
	return w.Flush()
}

// printAdversaries prints the adversary of each epsilon if the trust model has more than one.
func printAdversaries(w io.Writer, a statedir.Adversaries) error {
	if a.EpsilonOperator != nil {
		_, err := fmt.Fprintf(w, "trust %s: epsilon %s against one operator and the learner, %s against the learner alone\n",
			a.Trust, cli.Upper(*a.EpsilonOperator, 6), cli.Upper(a.EpsilonLearner, 6))
		return err
	}
	if a.EpsilonIntruder == nil {
		return nil
	}
	_, err := fmt.Fprintf(w,
		"trust %s: epsilon %s against one who looks once into the shuffle stage, %s against the learner alone\n",
		a.Trust, cli.Upper(*a.EpsilonIntruder, 6), cli.Upper(a.EpsilonLearner, 6))
	return err
}

func newSnapshot() *cobra.Command {
	var (
		where  whereFlags
		output string
		format string
		which  whichFlags
	)
	c := &cobra.Command{
		Use:   "snapshot (--state DIR | --http URL) [--round ROUND | --at TIME]",
		Short: "write the current model, or an earlier one, with its privacy statement",
		Long: `snapshot writes the model that may be released now, or with --round or --at an earlier one
that is kept (learner history). The privacy statement is part of every format:

  json  all that is known of the model: weights in the units of the data, features, privacy,
        declaration
  npy   a .npz container for numpy.load: the arrays weights and intercept, and the
        rest of the JSON as metadata.json
  onnx  a graph that scores raw events, feature map included, for ONNX runtimes; the
        statement is in its metadata`,
		Example: "  learner snapshot --state /var/lib/panlearn/a9a -o model.json\n" +
			"  learner snapshot --state /var/lib/panlearn/a9a --at '24h ago' -o yesterday.json\n" +
			"  learner snapshot --state /var/lib/panlearn/a9a --format onnx -o model.onnx",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("format") {
				format = formatOf(output)
			}
			if format != "json" && format != "npy" && format != "onnx" {
				return cli.Usagef("--format %q: want json, npy or onnx", format)
			}
			if format != "json" && (output == "" || output == "-") && cli.Terminal(os.Stdout) &&
				c.OutOrStdout() == io.Writer(os.Stdout) {
				return cli.Usagef("--format %s is not text: name a file with -o", format)
			}
			question, err := which.question(c.Flags())
			if err != nil {
				return err
			}
			doc, err := where.ask(c.Context(), question)
			if err != nil {
				return err
			}
			if doc, err = inFormat(doc, format); err != nil {
				return err
			}
			if output == "" || output == "-" {
				_, err = c.OutOrStdout().Write(doc)
				return err
			}
			if err := os.WriteFile(output, doc, 0o644); err != nil {
				return fmt.Errorf("write the snapshot: %w", err)
			}
			return nil
		},
	}
	where.flags(c.Flags())
	which.flags(c.Flags())
	c.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write instead of standard output")
	c.Flags().StringVar(&format, "format", "json",
		"format of the model: json, npy (a .npz container) or onnx; default: by the ending .npz, .npy or .onnx of the output, else json")
	return c
}

// whichFlags holds the flags that select one of the kept models.
type whichFlags struct {
	round uint64
	at    string
}

func (f *whichFlags) flags(flags *pflag.FlagSet) {
	flags.Uint64Var(&f.round, "round", 0, "the model after `ROUND`, if it is kept")
	flags.StringVar(&f.at, "at", "",
		"the newest kept model that was released by `TIME`: RFC 3339, a date, or \"24h ago\"")
}

func (f *whichFlags) question(flags *pflag.FlagSet) (statedir.Question, error) {
	switch of := flags.Changed("round"); {
	case of && flags.Changed("at"):
		return "", cli.Usagef("--round and --at: want one of them")
	case of:
		return statedir.SnapshotOf(f.round), nil
	case flags.Changed("at"):
		at, err := momentOf(f.at, time.Now())
		return statedir.SnapshotAt(at), err
	}
	return statedir.AskSnapshot, nil
}

// formatOf returns the model format for a file name's extension.
func formatOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".onnx":
		return "onnx"
	case ".npz", ".npy":
		return "npy"
	}
	return "json"
}

// inFormat converts the learner's answer, which is JSON.
func inFormat(doc []byte, format string) ([]byte, error) {
	if format == "json" {
		return append(doc, '\n'), nil
	}
	s, err := released.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("the learner's answer: %w", err)
	}
	if format == "npy" {
		return s.NumPy()
	}
	return s.ONNX()
}

// printValidation prints the results of progressive validation. It prints nothing if v is nil. rmse is nil for losses
// that have none.
func printValidation(w io.Writer, kind wording.Kind, v *method.Validation, rmse *method.Scores) error {
	if v == nil {
		return nil
	}
	rounds := "the only round"
	if v.Rounds != 1 {
		rounds = "all " + cli.Count(v.Rounds, "round")
	}
	line := func(name string, s method.Scores, unit string, times float64) error {
		text := func(b method.Band) string {
			return fmt.Sprintf("%.3g%s (%.3g to %.3g)", times*b.Value, unit, times*b.Low, times*b.High)
		}
		_, err := fmt.Fprintf(w, "progressive %-9s %s recently, %s over %s\n", name, text(s.Recent), text(s.Overall), rounds)
		return err
	}
	if v.Accuracy != nil {
		if err := line("accuracy", *v.Accuracy, " %", 100); err != nil {
			return err
		}
	}
	if rmse != nil {
		if err := line("rms error", *rmse, "", 1); err != nil {
			return err
		}
	}
	if err := line("loss", v.Loss, "", 1); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "              %s's loss counts as at most %.3g\n", kind.Row().A(),
		v.LossBound); err != nil {
		return err
	}
	if v.Diverges {
		text := wording.WorseThanConstant + " recently, in the last round and those before it. " + wording.FewerOrMore
		if _, err := fmt.Fprintf(w, "              %s\n", text); err != nil {
			return err
		}
	}
	if v.LossAtLeast != nil {
		if _, err := fmt.Fprintf(w, "              the recent loss is "+wording.Uncut+"\n",
			fmt.Sprintf("%.3g", *v.LossAtLeast)); err != nil {
			return err
		}
	}
	if v.AtBound {
		if _, err := fmt.Fprintf(w, "              the loss is %s\n", wording.AtBound); err != nil {
			return err
		}
	}
	if v.Worse {
		if _, err := fmt.Fprintf(w,
			"              worse recently than over all: the %s changed, or come in an order (ingest publish --shuffle)\n",
			kind.Row().Many); err != nil {
			return err
		}
	}
	if v.Repeated {
		_, err := fmt.Fprintf(w, "              on the %s of the same %s in every round: the model has learned from them\n",
			kind.Row().Many, kind.Reporter().Many)
		return err
	}
	return nil
}

// printBaseline prints the scores of the best constant, which the model is to be compared with, as far as they are
// known. streams means that the task has no end: labels are released in its first look alone.
func printBaseline(w io.Writer, b *statedir.Baseline, streams bool) error {
	text := "unknown: nothing of the labels is released, or not yet"
	switch {
	case b == nil:
	case b.Value != nil && b.Error == nil:
		text = fmt.Sprintf("always %.4g", *b.Value)
	case b.Value != nil:
		text = fmt.Sprintf("root mean squared error about %.3g (%s)", *b.Error, constant(*b.Value, 4, b.Offset))
	default:
		text = fmt.Sprintf("accuracy about %.3g %% (always %s)", 100**b.Accuracy, b.Class)
	}
	if b != nil && b.Loss != nil {
		text += fmt.Sprintf(", loss about %.3g", *b.Loss)
	}
	if b != nil && streams {
		text += ", of the events of the first look"
	}
	_, err := fmt.Fprintf(w, "baseline      %s\n", text)
	return err
}
