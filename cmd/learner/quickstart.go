package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/devicepage"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/quickstart"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func newQuickstart() *cobra.Command {
	var (
		events   int
		sets     []string
		seed     uint64
		logLevel cli.Log
		output   string
		serve    string
		relay    bool
		asJSON   cli.JSON
	)
	c := &cobra.Command{
		Use:   "quickstart",
		Short: "everything in one process: broker, users, shuffle stage, learner",
		Long: `quickstart starts a NATS server, a shuffle stage and a learner with its Pebble store in
this process, and lets simulated users with a known optimum send one private report each.
It keeps nothing.

With --http it serves a live page, and goes on serving it after the task's end until it is
interrupted. With --relay the devices do not connect to the broker: they use HTTP through
a relay, as devices in browsers do (ingest relay).

With both, and without --seed, you can take part yourself in a browser on this machine, at
/device of --http. The simulated users leave one place of the last round free. It waits
for you until the round's deadline: 5 minutes, unless --set schedule.deadline says
otherwise.`,
		Example: "  learner quickstart\n  learner quickstart --http 127.0.0.1:8080\n  learner quickstart --events 50000 --json -o model.json\n" +
			"  learner quickstart --set privacy.trust=pan\n  learner quickstart --http 8080 --relay",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cli.Writable("-o", output); err != nil {
				return err
			}
			file, err := deploy.Tasks.ReadFile("tasks/quickstart.yaml")
			if err != nil {
				return err
			}
			seeded := c.Flags().Changed("seed")
			var page net.Listener
			if serve != "" {
				if page, err = cli.Listen("--http", serve); err != nil {
					return err
				}
				defer page.Close()
			}
			invites := page != nil && relay && !seeded && local(page)
			if invites { // people are slower than made-up users
				sets = append([]string{"schedule.deadline=5m"}, sets...)
			}
			spec, err := task.Parse(file, append(sets, fmt.Sprintf("schedule.users=%d", events)))
			if err != nil {
				return cli.Usagef("--events %d: %w", events, err)
			}
			if seeded && spec.Privacy.Trust.HasOperators() {
				return cli.Usagef("--seed under privacy.trust split: the floors of its operators follow from no seed")
			}
			job, err := run.NewJob(spec)
			if err != nil {
				return cli.Usagef("--events %d: %w", events, err)
			}
			dir, err := os.MkdirTemp("", "panlearn-quickstart-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			progress := cli.NewRounds(c.ErrOrStderr())
			defer progress.Close()
			logger, err := logLevel.Logger(progress)
			if err != nil {
				return err
			}
			noise := fmt.Sprintf("with noise for epsilon %s, delta %g%s", cli.Upper(job.Plan.Epsilon, 3), job.Problem.Delta,
				job.Assuming())
			if seeded {
				noise = "with noise that follows from the seed and protects nobody"
			}
			fmt.Fprintf(progress, "%d users, %s; each report is %d bytes, %s\n",
				job.Problem.Users, wording.Planned(job.Plan), job.First().Privacy.ReportBytes, noise)
			done := func(report quickstart.Report) error {
				progress.Close()
				if output != "" {
					if err := writeModel(output, report.Snapshot); err != nil {
						return err
					}
				}
				result := quickstarted{Report: report, ModelHash: modelHash(report.Snapshot)}
				return asJSON.Print(c.OutOrStdout(), result, func(w io.Writer) error { return printQuickstart(w, report) })
			}
			config := quickstart.Config{Job: job, Dir: dir, Seed: seed, Seeded: seeded, Relay: relay,
				Watch: progress.Observer(), Fill: progress.Fill, Model: improving(progress, seeded), Logger: logger}
			if page != nil {
				config.HTTP = page
				fmt.Fprintf(progress, "live page     http://%s/\n", page.Addr())
				if invites && quickstart.Invites(job) {
					config.Guests = 1
					fmt.Fprintf(progress, "take part     http://%s%s: the last round keeps a place for you\n", page.Addr(), devicepage.Path)
				}
				config.Done = func(report quickstart.Report) error {
					err := done(report)
					fmt.Fprintf(c.ErrOrStderr(), "\nlive page     http://%s/ until you press Ctrl-C\n", page.Addr())
					return err
				}
			}
			report, err := quickstart.Run(c.Context(), config)
			if errors.Is(err, context.Canceled) && c.Context().Err() != nil {
				return cli.Transient(errors.New("interrupted before the end; nothing is kept: the same command begins from nothing"))
			}
			if err != nil || page != nil {
				return err
			}
			return done(report)
		},
	}
	logLevel.Flags(c.Flags(), "warn")
	c.Flags().IntVar(&events, "events", 20000, "`N` users, one event each")
	c.Flags().StringArrayVar(&sets, "set", nil,
		"override a `PATH=VALUE` of the quickstart's task file, such as privacy.trust=pan; repeatable")
	c.Flags().Uint64Var(&seed, "seed", 1,
		"`SEED` of events and, if given, of all noise: the same seed gives the same model, and nothing is private")
	c.Flags().StringVarP(&output, "output", "o", "", "`FILE` for the model, as learner snapshot writes it")
	c.Flags().StringVar(&serve, "http", "",
		"`ADDR` for a live page, such as 127.0.0.1:8080, which stays up after the end until interrupted; a port alone listens on this machine only")
	c.Flags().BoolVar(&relay, "relay", false, "let the devices use HTTP through a relay, without a connection to the broker; with --http you can take part in a browser")
	asJSON.Flag(c.Flags())
	return c
}

// local reports whether this machine alone reaches a listener.
func local(l net.Listener) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// A quickstarted is the JSON of `learner quickstart`.
type quickstarted struct {
	quickstart.Report
	ModelHash string `json:"model_hash"` // SHA-256 of the weights and the intercept, big-endian float64 one after another
}

// modelHash returns a hash of the model's parameters, to the last bit; keys and names are not in it.
func modelHash(s model.Snapshot) string {
	h := sha256.New()
	var word [8]byte
	for _, row := range append(s.Weights[:len(s.Weights):len(s.Weights)], s.Intercept) {
		for _, w := range row {
			binary.BigEndian.PutUint64(word[:], math.Float64bits(w))
			h.Write(word[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeModel(path string, s model.Snapshot) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the model: %w", err)
	}
	return errors.Join(cli.PrintJSON(file, s), file.Close())
}

// improving prints about ten lines of how the model gets better.
func improving(w io.Writer, seeded bool) func(quickstart.Learned) {
	return func(m quickstart.Learned) {
		every := max(1, m.Rounds/10)
		if m.Steps%every == 0 || m.Steps == m.Rounds {
			epsilon := fmt.Sprintf("epsilon %-5s   ", cli.Upper(m.EpsilonSpent, 3))
			if seeded {
				epsilon = ""
			}
			fmt.Fprintf(w, "round %3d of %d   %6d users   %saccuracy %.1f %%   excess risk %.4f\n",
				m.Round, m.Rounds, m.Users, epsilon, 100*m.Accuracy, m.ExcessRisk)
		}
	}
}

func printQuickstart(w io.Writer, r quickstart.Report) error {
	seen := "once"
	if r.Snapshot.Privacy.Interactive {
		seen = "in every round of a phase"
	}
	spare, through := "", "NATS"
	if r.Relay {
		through = "a relay over HTTP, NATS"
	}
	if r.Spare > 0 && r.Guests == 0 {
		spare = fmt.Sprintf(", %d to spare", r.Spare)
	}
	if r.Guests > 0 {
		spare = fmt.Sprintf(", %d of them in a browser", r.Guests)
	}
	_, err := fmt.Fprintf(w, `
learned from  %d of %d users in %s, each seen %s%s; %.0f events/s through %s and Pebble
privacy       %s
accuracy      %.2f %% on fresh events, the same as after each round (without privacy %.2f %%, the optimum %.2f %%)
excess risk   %.4f over the known optimum (without privacy %.4f)
noise         %.4f of the clip norm in each coordinate of the first mean gradient (the paper's constants: %.2f)
`, r.Accepted, r.Events, cli.Count(r.Rounds, "round"), seen, spare, r.EventsPerSecond, through, promise(r), 100*r.TestAccuracy, 100*r.NonPrivateAccuracy,
		100*r.OptimumAccuracy, r.ExcessRisk, r.NonPrivateExcessRisk, r.NoiseStd, r.PaperNoiseStd)
	if v := r.Validation; err == nil && v != nil && v.Accuracy != nil {
		_, err = fmt.Fprintf(w,
			"validation    accuracy %.1f %% (%.1f to %.1f %%) recently, from private scores in the same reports\n",
			100*v.Accuracy.Recent.Value, 100*v.Accuracy.Recent.Low, 100*v.Accuracy.Recent.High)
	}
	return err
}

// promise describes the guarantee that every user has.
func promise(r quickstart.Report) string {
	if r.NoiseKnown {
		return "none: the noise follows from --seed, so it is known and nothing is protected"
	}
	assuming := r.Snapshot.Privacy.Assuming(r.Snapshot.Privacy.Trust, r.HonestFraction)
	whom := "everybody downstream of the shuffle stage"
	switch t := r.Snapshot.Privacy.Trust; t {
	case accounting.Local.String():
		whom = r.Snapshot.Privacy.Against(accounting.Local)
	case accounting.Split.String():
		whom = r.Snapshot.Privacy.Against(accounting.Split) + ",\n              who are one operator here, in one process"
	}
	if assuming != "" {
		assuming = assuming[:1] + "\n             " + assuming[1:]
	}
	return fmt.Sprintf("epsilon %s, delta %g for every user, against %s%s%s",
		cli.Upper(r.Epsilon, 3), r.Delta, whom, intruder(r.Snapshot.Privacy.Trust), assuming)
}

// intruder completes the privacy line of a trust that covers one look into the stage's memory.
func intruder(trust string) string {
	if t, err := accounting.ParseTrust(trust); err == nil && t.HasIntruder() {
		return ",\n              and one look into its memory (trust " + trust + ")"
	}
	return ""
}
