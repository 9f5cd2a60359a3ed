package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/fit"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/wire"
)

// A fitConfig holds the flags of `learner fit`.
type fitConfig struct {
	task         taskFlags
	data, test   string
	format       string
	holdout      uint
	dir, output  string
	algorithm    string
	public       bool
	serve        string
	workers      uint
	gap, slack   float64
	solver       string
	maxBlockRows uint64
	log          cli.Log
	json         cli.JSON

	people int           // that the rows are of; 0 where rows are protected
	units  []block.Block // of people, each with their rows
	sized  bool          // --workers, --gap, --solver or --slack were given
	gapped bool          // --gap was
}

func newFit() *cobra.Command {
	var f fitConfig
	c := &cobra.Command{
		Use:   "fit -f TASK --data FILE [--test FILE | --holdout K] --state DIR [-o MODEL]",
		Short: "learn from rows that are all in one place, with a budget",
		Long: `fit learns a model from the rows of a file. It is for people who have the rows and trust
this machine with them. All roles run in this process, and what it keeps and prints hides
each row (central differential privacy). The task file may be one for many devices: fit
ignores what it declares about their number and about trust, and lists what it ignored.
The data are treated as one silo. Its units are the rows, or people if privacy.unit says
so. The number of units is public, because the guarantee is about replacing one unit by
another.

fit may be killed at any moment: the same command continues where it stopped. A state
folder belongs to one fit. After that has ended, another fit in the same folder is
refused, because it would be charged in addition; several folders of the same rows add up.
snapshot, status and ledger work on the folder, also while fit runs. Epsilon also holds
against readers of the folder: rows stay in memory, and nothing of a row is in the folder
without noise.

--holdout and --test measure the model. These figures and the training loss are computed
from the rows without noise: they are for people who may see the rows. -o writes the model
with its privacy statement.

--public is for data that need no protection. It runs the same method without noise, in
memory. Nothing is charged, and the model says that it is not private. The model goes to
-o, or to model.json in --state; a folder of a private fit is refused.`,
		Example: `  learner fit -f deploy/tasks/a9a.yaml --data a9a.gz --test a9a.t.gz --state ./a9a-fit -o model.json
  learner fit -f task.yaml --data 'day-*.csv' --holdout 5 --state ./fit --http 127.0.0.1:8080
  learner fit -f task.yaml --data open.csv --holdout 5 --public -o model.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.gapped = c.Flags().Changed("gap")
			f.sized = f.gapped || c.Flags().Changed("workers") || c.Flags().Changed("solver") || c.Flags().Changed("slack")
			return f.run(c)
		},
	}
	f.task.flags(c.Flags())
	f.log.Flags(c.Flags(), "warn")
	cli.Data(c.Flags(), &f.data, "data `FILE` to learn from, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&f.test, "test", "", "test data `FILE`, as --data")
	c.Flags().StringVar(&f.format, "format", "", task.FormatHelp())
	c.Flags().UintVar(&f.holdout, "holdout", 0,
		"test on one of `K` rows, or people where privacy.unit is user, and do not learn from it")
	c.Flags().StringVar(&f.dir, "state", "", "`DIR` of the fit's state and ledger, created if missing")
	c.Flags().StringVar(&f.algorithm, "algorithm", "",
		"method `NAME` (overrides schedule.algorithm), see docs/reference/fit.md (default: the practical plan)")
	c.Flags().BoolVar(&f.public, "public", false, "learn without noise, because the data need no protection")
	c.Flags().StringVarP(&f.output, "output", "o", "",
		"`FILE` for the model, as learner snapshot writes it: .json, .npz or .onnx")
	c.Flags().StringVar(&f.serve, "http", "",
		"`ADDR` for a live page, such as 127.0.0.1:8080, which stays up after the end until interrupted; a port alone listens on this machine only")
	c.Flags().Uint64Var(&f.maxBlockRows, "max-block-rows", device.DefaultMaxBlockRows,
		"most `VALUES` of all rows as declared, because all are in memory")
	c.Flags().UintVar(&f.workers, "workers", 0,
		"number `W` of goroutines that answer queries of ball-accel and fixed-lambda; the model does not depend on it (default: the number of processors)")
	c.Flags().Float64Var(&f.gap, "gap", 0,
		"for ball-accel and fixed-lambda: how far the model's loss may be from the minimum, `G` > 0 (default: clip norm times radius, over 20)")
	c.Flags().StringVar(&f.solver, "solver", "",
		"for ball-accel and fixed-lambda: `NAME` of the solver of their subproblems, epoch-sgd or ac-sa (Carmon et al. 2023, Algorithm 2) (default: epoch-sgd)")
	c.Flags().Float64Var(&f.slack, "slack", 0,
		"for ball-accel and fixed-lambda: `FACTOR` > 0 on the errors allowed to their subproblems; above 1 there are fewer queries and the bound is weaker, or there is none (default: 1)")
	f.json.Flag(c.Flags())
	return c
}

// gcPercent is the allowed garbage, in percent of the live memory: the rows are held all the time, and little garbage
// comes of a round.
const gcPercent = 40

func (f *fitConfig) check() error {
	switch {
	case f.data == "" || f.data == "-":
		return cli.Usagef("--data: name a file: rows are read once for each life of the process")
	case f.test != "" && f.holdout > 0:
		return cli.Usagef("--test and --holdout: want one of them, test data or a part of --data to test on")
	case f.gapped && !(f.gap > 0 && f.gap <= math.MaxFloat64):
		return cli.Usagef("--gap %v: want a finite number > 0", f.gap)
	case f.slack != 0 && !(f.slack > 0 && f.slack <= math.MaxFloat64):
		return cli.Usagef("--slack %v: want a finite number > 0", f.slack)
	case f.solver != "" && f.solver != oneplace.EpochSGD && f.solver != oneplace.ACSA:
		return cli.Usagef("--solver %q: want %s or %s", f.solver, oneplace.EpochSGD, oneplace.ACSA)
	case f.holdout == 1:
		return cli.Usagef("--holdout 1: want at least 2, or no row is left to learn from")
	case f.public && f.serve != "":
		return cli.Usagef("--http: not with --public, which is over at once")
	case !f.public && f.dir == "":
		return cli.Usagef("--state: name a folder for the fit's state and its privacy ledger")
	}
	if f.public && f.dir != "" {
		if err := fit.Vacant(f.dir); err != nil {
			return cli.Usage(err)
		}
		f.output = cmp.Or(f.output, filepath.Join(f.dir, "model.json"))
	}
	if f.output == "-" {
		return cli.Usagef("-o -: name a file: standard output has what is said of the model")
	}
	if f.dir == "" || filepath.Dir(f.output) != filepath.Clean(f.dir) { // that folder is made before anything is charged
		if err := cli.Writable("-o", f.output); err != nil {
			return err
		}
	}
	if f.algorithm != "" {
		f.task.sets = append(f.task.sets, "schedule.algorithm="+f.algorithm)
	}
	return nil
}

func (f *fitConfig) run(c *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	progress := cli.NewRounds(c.ErrOrStderr())
	defer progress.Close()
	spec, s, err := f.read(progress)
	if err != nil {
		return err
	}
	if f.public {
		if err := oracleOnly(spec.Schedule.Algorithm); err != nil {
			return err
		}
		leaves(progress, spec)
		if spec.Schedule.Curated() {
			return f.runOracle(c, progress, spec.Spec, s)
		}
		return f.runPublic(c, progress, spec.Spec, s)
	}
	logger, err := f.log.Logger(progress)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(f.data)
	if err != nil {
		return err
	}
	once, err := f.once(c.Context(), spec.Spec, s)
	if err != nil {
		return err
	}
	config := fit.Config{Spec: spec.Spec, Once: once, StateDir: f.dir, MaxBlockRows: f.maxBlockRows,
		Watch: progress.Observer(), Fill: progress.Fill, Logger: logger,
		Data: fit.Data{Path: path, Format: f.format, Holdout: f.holdout, Rows: len(s.Train), People: f.people}}
	config.Begun = func(resumed bool) {
		if leaves(progress, spec); resumed {
			fmt.Fprintf(progress, "goes on in %s\n", f.dir)
		}
		if config.HTTP != nil {
			fmt.Fprintf(progress, "live page     http://%s/\n", config.HTTP.Addr())
		}
	}
	if once == nil {
		s, f.units = nil, nil // the device holds its own
	}
	if f.serve != "" {
		if config.HTTP, err = cli.Listen("--http", f.serve); err != nil {
			return err
		}
	}
	config.Done = func(v statedir.View, serving bool) error {
		progress.Close()
		snapshot, err := v.Snapshot()
		if err != nil {
			return err
		}
		if once == nil {
			if s, err = f.again(config.Data.Rows); err != nil {
				return err
			}
		}
		if err := f.print(c, s, snapshot, v.Model(), v.Task.Plan, publishedOf(v)); err != nil {
			return err
		}
		if serving {
			fmt.Fprintf(c.ErrOrStderr(), "\nlive page     http://%s/ until you press Ctrl-C\n", config.HTTP.Addr())
		}
		return nil
	}
	return fitErrors(fit.Run(c.Context(), config))
}

// leaves prints, before anything is learned, which parts of the task file are about many devices and have no effect
// here.
func leaves(progress io.Writer, spec task.Together) {
	if len(spec.LeftOut) > 0 {
		fmt.Fprintf(progress, "left out of the task, since all rows are in one place: %s\n", strings.Join(spec.LeftOut, ", "))
	}
}

// runPublic runs the task's method on the rows without noise.
func (f *fitConfig) runPublic(c *cobra.Command, progress io.Writer, spec *task.Spec, s *rehearse.Rows) error {
	fmt.Fprintln(progress,
		"NO PRIVACY: --public learns without any noise; model and figures are for data that need no protection alone")
	job, err := run.NewPublicJob(spec)
	if err != nil {
		return cli.Usage(err)
	}
	groups, err := rehearse.Group(job, s, sim.SplitBlocks, progress)
	if err != nil {
		return cli.Usage(err)
	}
	blocks, silos := groups.Blocks(job.Plan, 0)
	result, err := sim.Run(c.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Blocks: blocks,
		Silos: silos, InOrder: true, Exact: true})
	if err != nil {
		return err
	}
	snapshot, err := model.Of(job.Spec, result.Model)
	if err != nil {
		return err
	}
	snapshot.Round, snapshot.ModelVersion, snapshot.Ended, snapshot.Probabilities = result.Rounds, result.Rounds, true,
		model.ProbabilitiesOf(job.Spec, job.Plan.Clips)
	snapshot.Privacy = model.Unprotected(wording.Of(job.Plan)).From(job.Plan)
	snapshot.Privacy.Users = uint64(cmp.Or(f.people, len(s.Train)))
	return f.print(c, s, snapshot, result.Model, job.Plan, nil)
}

// fitErrors gives the errors of a fit their exit codes.
func fitErrors(err error) error {
	return cli.Classify(err, cli.As[*fit.SpentError](cli.ExitRefused), cli.As[*fit.LostError](cli.ExitRefused),
		cli.As[*state.BudgetError](cli.ExitRefused), cli.As[*consent.RefusedError](cli.ExitRefused),
		cli.As[*fit.FolderError](cli.ExitUsage), cli.As[*fit.TaskError](cli.ExitUsage),
		cli.As[*state.VersionError](cli.ExitUsage), cli.As[*source.SchemaError](cli.ExitUsage),
		cli.Is(cli.ExitTransient, state.ErrLocked), cli.Is(cli.ExitTransient, embedded.ErrLatched),
		cli.Is(cli.ExitUsage, fs.ErrNotExist), cli.Is(cli.ExitTransient, natsjs.ErrFullDisk),
		cli.Class{Code: cli.ExitTransient, Is: disk.Full}, cli.Class{Code: cli.ExitTransient, Is: natsjs.Failed})
}

// read maps the rows, counts them, and declares the task of so many.
func (f *fitConfig) read(progress io.Writer) (task.Together, *rehearse.Rows, error) {
	if f.task.path == "" {
		return task.Together{}, nil, cli.Usagef("-f: name a task file, such as deploy/tasks/a9a.yaml")
	}
	spec, err := task.LoadTogether(f.task.path, f.task.sets, 0)
	if err != nil {
		return spec, nil, cli.Usage(err)
	}
	if files, err := source.Files(f.data, spec.Spec); err != nil || !files {
		return spec, nil, cli.Usage(errors.Join(err,
			fmt.Errorf("--data %s: want files: they are read once for each life of the process", f.data)))
	}
	s, err := rehearse.Read(spec.Spec, rehearse.Data{Path: f.data, Test: f.test, Format: task.Format(f.format),
		Holdout: f.holdout}, progress)
	if err != nil {
		return spec, nil, cli.Usage(err)
	}
	units := len(s.Train)
	if spec.Privacy.ByUser() {
		all, counts, err := s.People()
		if err != nil {
			return spec, nil, err
		}
		units, f.people, f.units = len(all), len(all), all
		fmt.Fprintf(progress, "%d people have the %d rows to learn from; %s\n", units, len(s.Train), counts.Left())
		if units == 0 {
			return spec, nil, cli.Usagef("--data %s: no row says whom it is of, in the column %s", f.data, spec.User.Column)
		}
	}
	if spec, err = task.LoadTogether(f.task.path, f.task.sets, units); err != nil {
		return spec, nil, cli.Usage(err)
	}
	return spec, s, nil
}

// again reads the rows once more, when there is a model to score.
func (f *fitConfig) again(rows int) (*rehearse.Rows, error) {
	people := f.people
	_, s, err := f.read(io.Discard)
	if err == nil && (len(s.Train) != rows || f.people != people) {
		now, was, of := len(s.Train), rows, "rows"
		if now == was {
			now, was, of = f.people, people, "people"
		}
		err = fmt.Errorf(
			"the data have changed: %d %s to learn from, there were %d; learner snapshot --state %s has the model",
			now, of, was, f.dir)
	}
	return s, err
}

// A fitted is the JSON of `learner fit`.
type fitted struct {
	Task      string   `json:"task"`
	Algorithm string   `json:"algorithm"`
	Rounds    uint64   `json:"rounds"`
	Epsilon   *float64 `json:"epsilon"` // of the model; null with --public
	Delta     *float64 `json:"delta"`
	Unit      string   `json:"unit"` // that epsilon protects, in words
	Public    bool     `json:"public,omitempty"`
	Rows      int      `json:"rows"`             // of the data, without those held out
	People    int      `json:"people,omitempty"` // whose rows they are, where people are protected
	// rows, or people, that were too few for a further block of one pass: nothing was learned from them
	LeftOver int `json:"left_over,omitempty"`
	// Start is the model that learning began with, which Epsilon and Delta include: see model.Statement.
	Start *model.Origin `json:"start,omitempty"`
	*published
	rehearse.Outcome
	// Baseline scores the best constant for the training labels.
	Baseline rehearse.Outcome `json:"baseline"`

	privacy string
}

// print prints how good the model is, and writes the model to f.output if that is set.
func (f *fitConfig) print(c *cobra.Command, s *rehearse.Rows, snapshot model.Snapshot, theta []float64, plan *wire.Plan,
	more *published) error {
	if f.output != "" {
		var doc bytes.Buffer
		err := cli.PrintJSON(&doc, snapshot)
		if err != nil {
			return err
		}
		out, err := inFormat(bytes.TrimSuffix(doc.Bytes(), []byte("\n")), formatOf(f.output))
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.output, out, 0o644); err != nil {
			return fmt.Errorf("write the model: %w", err)
		}
	}
	out := fitted{Task: snapshot.Task, Algorithm: plan.Algorithm, Rounds: snapshot.Round,
		Unit: snapshot.Privacy.Unit, Public: snapshot.Privacy.Public, Rows: len(s.Train), People: f.people,
		Start: snapshot.Privacy.Start, published: more, Baseline: s.Constant(), privacy: snapshot.Privacy.String()}
	if more == nil {
		out.LeftOver = max(0, cmp.Or(f.people, len(s.Train))-int(asked(plan)))
	}
	if !out.Public {
		out.Epsilon, out.Delta = &snapshot.Privacy.Epsilon, &snapshot.Privacy.Delta
	}
	var err error
	if out.Outcome, err = s.Score(theta); err != nil {
		return err
	}
	return f.json.Print(c.OutOrStdout(), out, out.print)
}

// asked returns the number of units that the reports of a plan for one silo are about.
func asked(plan *wire.Plan) (units uint64) {
	for _, p := range plan.Phases {
		if !p.Again {
			units += p.Rounds / max(1, uint64(p.RoundsPerUser)) * p.Mechanism.Units
		}
	}
	return units
}

func (r fitted) print(w io.Writer) error {
	of := cli.Count(r.Rows, "row")
	if r.People > 0 {
		of += fmt.Sprintf(" of %d people", r.People)
	}
	if r.LeftOver > 0 {
		of += fmt.Sprintf(" except %d, too few for a further block", r.LeftOver)
	}
	cost := "privacy       " + r.privacy + "\n"
	if !r.Public {
		cost = fmt.Sprintf("privacy       epsilon %s, delta %g for %s\n", cli.Upper(*r.Epsilon, 6), *r.Delta, r.Unit)
		if r.Start != nil {
			cost += fmt.Sprintf("              %s\n", r.Start)
		}
	}
	how := cli.Count(r.Rounds, "round")
	if r.published != nil {
		how, cost = r.how(), cost+r.published.String()
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, learned from %s\n%sfit           %s\nbaseline      %s\n", r.Task, r.Algorithm,
		how, of, cost, r.Outcome, r.Baseline)
	if err == nil && !r.Public {
		what := "these figures are"
		if r.People > 0 {
			what = "these figures, and the number of rows, are"
		}
		_, err = fmt.Fprintf(w,
			"              %s of the rows themselves, without noise: the model may be published, they not\n", what)
	}
	return err
}
