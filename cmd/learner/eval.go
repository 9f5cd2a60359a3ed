package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// An evalConfig holds the flags of `learner eval`.
type evalConfig struct {
	models        []string
	data, format  string
	picture       string
	threshold     float64
	decides       bool // threshold was given
	cost          string
	costs         *released.Cost // cost, parsed; nil where it was not given
	absentClasses bool
	where         whereFlags // of a learner, whose models are evaluated one after the other
	inOrder       bool
}

func newEval() *cobra.Command {
	var (
		e      evalConfig
		asJSON cli.JSON
	)
	c := &cobra.Command{
		Use:   "eval (--model FILE [--model FILE] | --state DIR --in-order | --http URL --in-order) --data FILE",
		Short: "measure a model on labelled data, beside the best constant",
		Long: `eval measures a snapshot on labelled data, and beside it the best constant on the same
data: the majority class and the shares of the classes, or the mean of the labels (their
quantile for the absolute and the quantile loss). It says so if the model is worse than
the constant. For classes it prints accuracy, log loss, area under the curve (AUC), the
confusion matrix, precision, recall, and the calibration error over ten bins of equal
width. With more than two classes, AUC, precision and recall are means over the classes,
and the calibration error is computed for the predicted class. For numbers it prints R2,
root mean squared error and mean absolute error; for quantiles also coverage.

With a second --model it prints the figures of both models on the events that fit both,
and the differences, second minus first, with 95 % intervals: normal intervals of the
paired differences, the delta method for root mean squares, Agresti and Min for shares.

With --state or --http, and --in-order, it evaluates a stream by test-then-train. The rows
must be in the order in which their users took part. Each row is scored by the newest kept
model that was current before the row's round (learner history). It prints log loss or
mean square, accuracy, both also for recent rounds at the rate at which the model forgets,
and alarms: the same figures as learner simulate. state.snapshots decides how many models
are kept, and so how exact this is. Each user who took part and was not counted shifts the
rows after it by one.

Data in which a declared class never occurs, or whose labels are all equal, are refused,
because wrongly typed labels look like that. --absent-classes accepts them, and so does
--in-order, because part of a stream may have one class. An event that does not fit the
declaration is left out; standard error lists such events by line and column, never by
content. The output depends on single events and has no privacy guarantee: it is for
people who may see the events.`,
		Example: "  learner eval --model model.json --data a9a.t.gz --json\n" +
			"  learner eval --model old.json --model new.json --data a9a.t.gz --plot calibration.svg\n" +
			"  learner eval --state /var/lib/panlearn/prices --in-order --data prices.csv",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			e.decides = c.Flags().Changed("threshold")
			streams := e.where.StateDir != "" || e.where.URL != ""
			switch n := len(e.models); {
			case streams != e.inOrder:
				return cli.Usagef(
					"--in-order goes with --state or --http, and these with it: the rows are in the order in which their users took part")
			case streams && (n > 0 || e.decides || e.cost != "" || e.picture != "" || e.absentClasses):
				return cli.Usagef("--in-order: --model, --threshold, --cost, --plot and --absent-classes are of single models")
			case streams && e.data == "":
				return cli.Usagef("--data: name a data file (- is standard input)")
			case streams:
				return e.stream(c, asJSON)
			case n == 0 || e.data == "":
				return cli.Usagef("--model and --data: name a snapshot and a data file (- is standard input)")
			case n > 2:
				return cli.Usagef("--model is given %d times: want one snapshot, or two to compare", n)
			case n == 2 && e.data == "-":
				return cli.Usagef("--data -: standard input cannot be read twice; name a file to compare two models on")
			}
			if err := errors.Join(validatePicture(e.picture), e.parseCost()); err != nil {
				return err
			}
			if len(e.models) == 2 {
				return e.compare(c, asJSON)
			}
			return e.one(c, asJSON)
		},
	}
	c.Flags().StringArrayVar(&e.models, "model", nil, "snapshot `FILE`, json or npy; repeat to compare two")
	cli.Data(c.Flags(), &e.data, "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&e.format, "format", "", task.FormatHelp())
	c.Flags().Float64Var(&e.threshold, "threshold", 0, thresholdHelp)
	c.Flags().StringVar(&e.cost, "cost", "",
		"for two classes, the costs `FP:FN` of a false positive and a false negative; they decide the threshold if there are probabilities and no --threshold")
	c.Flags().BoolVar(&e.absentClasses, "absent-classes", false,
		"accept data in which a class never occurs, or all labels are equal")
	c.Flags().StringVar(&e.picture, "plot", "",
		"draw the observed over the predicted frequencies into a `FILE`: .png or .svg")
	e.where.flags(c.Flags())
	c.Flags().BoolVar(&e.inOrder, "in-order", false,
		"score each row by the model that was current before its round; with --state or --http")
	asJSON.Flag(c.Flags())
	return c
}

// open loads a model and opens its rows.
func (e *evalConfig) open(path string) (released.Predictor, *source.Reader, error) {
	p, err := loadPredictor(path, e.format)
	if err != nil {
		return p, nil, err
	}
	e.decide(p)
	if err := p.Validate(e.options(nil)); err != nil {
		return p, nil, cli.Usagef("--%w", err)
	}
	rows, err := source.OpenFitting(e.data, p.Features)
	if err != nil && e.data != "-" {
		if unlabelled, bad := source.OpenFitting(e.data, p.Features.Unlabelled()); bad == nil {
			err = errors.Join(fmt.Errorf("%w: eval wants labels; learner predict scores events without", err),
				unlabelled.Close())
		}
	}
	return p, rows, cli.Usage(err)
}

// parseCost reads the flag --cost.
func (e *evalConfig) parseCost() error {
	if e.cost == "" {
		return nil
	}
	positive, negative, ok := strings.Cut(e.cost, ":")
	fp, err := strconv.ParseFloat(positive, 64)
	fn, err2 := strconv.ParseFloat(negative, 64)
	if !ok || err != nil || err2 != nil || !(fp > 0 && fn > 0) || math.IsInf(fp+fn, 0) {
		return cli.Usagef("--cost %q: want FP:FN, two finite numbers above 0, such as 1:5", e.cost)
	}
	e.costs = &released.Cost{FalsePositive: fp, FalseNegative: fn}
	return nil
}

// decide takes the threshold at which decisions of the model cost least, where none was given.
func (e *evalConfig) decide(p released.Predictor) {
	if e.costs == nil || e.decides || !convex.TraitsOf(p.Loss.Name()).Scores.Probable() {
		return
	}
	e.threshold, e.decides = e.costs.Threshold(), true
}

func (e evalConfig) options(unfit func(*task.RowError)) released.Options {
	o := released.Options{Absent: e.absentClasses, Unfit: unfit, Cost: e.costs}
	if e.decides {
		o.Threshold = &e.threshold
	}
	return o
}

func (e evalConfig) one(c *cobra.Command, asJSON cli.JSON) error {
	p, rows, err := e.open(e.models[0])
	if err != nil {
		return err
	}
	defer rows.Close()
	result, err := p.Evaluate(rows.All(), e.options(run.NameRows(c.ErrOrStderr(), "left out")))
	if err != nil {
		return err
	}
	leftOut(c.ErrOrStderr(), result)
	if err := e.draw([]string{"model"}, result); err != nil {
		return err
	}
	return asJSON.Print(c.OutOrStdout(), result, func(w io.Writer) error { return printEvaluation(w, result) })
}

func leftOut(w io.Writer, e released.Evaluation) {
	if e.Invalid > 0 {
		fmt.Fprintf(w, "%d of %d rows do not fit the task's declaration and are left out\n", e.Invalid, e.Examples+e.Invalid)
	}
}

// compare evaluates two models on the same events.
func (e evalConfig) compare(c *cobra.Command, asJSON cli.JSON) error {
	p, first, err := e.open(e.models[0])
	if err != nil {
		return err
	}
	defer first.Close()
	q, second, err := e.open(e.models[1])
	if err != nil {
		return err
	}
	defer second.Close()
	result, err := p.Compare(q, first.All(), second.All(), e.options(run.NameRows(c.ErrOrStderr(), "left out")))
	if err != nil {
		return err
	}
	leftOut(c.ErrOrStderr(), result.First)
	if err := e.draw(e.models, result.First, result.Second); err != nil {
		return err
	}
	return asJSON.Print(c.OutOrStdout(), result, func(w io.Writer) error {
		return errors.Join(printed(w, "first: %s\n", e.models[0]), printEvaluation(w, result.First),
			printed(w, "second: %s\n", e.models[1]), printEvaluation(w, result.Second), printDifferences(w, result))
	})
}

func printed(w io.Writer, format string, values ...any) error {
	_, err := fmt.Fprintf(w, format, values...)
	return err
}

// constant describes the best constant, beside the public prediction where the label has an offset.
func constant(value float64, digits int, offset bool) string {
	if offset {
		return fmt.Sprintf("always %+.*g to the public prediction", digits, value)
	}
	return fmt.Sprintf("always %.*g", digits, value)
}

func printEvaluation(w io.Writer, e released.Evaluation) error {
	err := printFigures(w, e)
	if worse := e.Worse(); worse != "" {
		err = errors.Join(err, printed(w, "attention: on these data the model is %s: %s\n", wording.WorseThanConstant, worse))
	}
	return err
}

func printFigures(w io.Writer, e released.Evaluation) error {
	b := e.Baseline
	if n := e.OfNumbers; n != nil {
		err := printed(w, "%d examples: root mean squared error %.5g, mean absolute error %.5g, R2 %.4f, loss %.4g\n",
			e.Examples, n.RMSE, n.MAE, n.R2, e.Loss)
		if n.Coverage != nil {
			err = errors.Join(err, printed(w, "%.2f %% of the labels are at most their prediction; quantile loss %.5g\n",
				100**n.Coverage, *n.QuantileLoss))
		}
		err = errors.Join(err, printed(w, "baseline: root mean squared error %.5g, mean absolute error %.5g, loss %.4g",
			*b.Error, *b.MAE, b.Loss))
		if b.QuantileLoss != nil {
			err = errors.Join(err, printed(w, ", quantile loss %.5g", *b.QuantileLoss))
		}
		return errors.Join(err, printed(w, " (%s)\n", constant(*b.Value, 5, b.Offset)))
	}
	err := printed(w, "%d examples: accuracy %.4f, loss %.4f", e.Examples, e.Accuracy, e.Loss)
	if e.LogLoss != nil && differ(*e.LogLoss, e.Loss) {
		err = errors.Join(err, printed(w, ", log loss %.4f", *e.LogLoss))
	}
	if e.AUC != nil {
		err = errors.Join(err, printed(w, ", AUC %.4f", *e.AUC))
	}
	err = errors.Join(err, printed(w, "\nbaseline: accuracy %.4f (always %s), loss %.4f (the best constant score)",
		*b.Accuracy, b.Class, b.Loss))
	if b.LogLoss != nil && differ(*b.LogLoss, b.Loss) {
		err = errors.Join(err, printed(w, ", log loss %.4f (the shares of the classes)", *b.LogLoss))
	}
	means := ""
	if len(e.Classes) > 2 {
		means = ", means over the classes"
	}
	if e.Threshold != nil {
		means += fmt.Sprintf(", above %v", *e.Threshold)
	}
	err = errors.Join(err, printed(w, "\n"), printCost(w, e.OfClasses), printed(w, "precision %.4f, recall %.4f%s\n", e.Precision, e.Recall, means),
		printConfusion(w, e.OfClasses))
	if e.CalibrationError == nil {
		return err
	}
	err = errors.Join(err, printed(w, "calibration error %.4f\n%-14s%10s%12s%10s\n", *e.CalibrationError, "probability",
		"events", "mean of it", "occurred"))
	for _, bin := range e.Reliability {
		err = errors.Join(err, printed(w, "%-14s%10d%12.4f%10.4f\n", fmt.Sprintf("%.1f to %.1f", bin.Low, bin.High),
			bin.Events, bin.Probability, bin.Occurred))
	}
	return err
}

func printCost(w io.Writer, e *released.OfClasses) error {
	c := e.Cost
	if c == nil {
		return nil
	}
	decided := "by the model's own decision"
	if e.Threshold != nil {
		decided = fmt.Sprintf("positive above %.4g", *e.Threshold)
	}
	err := printed(w, "cost %.4g an event, %s; the cheaper of always and never positive costs %.4g", c.Mean, decided, c.Constant)
	if c.Best != nil {
		err = errors.Join(err, printed(w, "; least on these events, above %.4g: %.4g", *c.BestThreshold, *c.Best))
	}
	return errors.Join(err, printed(w, "\n"))
}

// differ reports whether two losses are more than roundings of one number.
func differ(a, b float64) bool { return math.Abs(a-b) > 1e-9*(1+math.Abs(a)) }

// shownClasses bounds the classes of a printed confusion matrix.
const shownClasses = 20

func printConfusion(w io.Writer, c *released.OfClasses) error {
	if len(c.Classes) > shownClasses {
		return printed(w, "the confusion matrix of %d classes is in --json\n", len(c.Classes))
	}
	width := 8
	for _, name := range c.Classes {
		width = max(width, len([]rune(name)))
	}
	err := printed(w, "%-*s", width+6, "predicted")
	for _, name := range c.Classes {
		err = errors.Join(err, printed(w, " %*s", width, name))
	}
	err = errors.Join(err, printed(w, "\n"))
	for k, row := range c.Confusion {
		err = errors.Join(err, printed(w, "label %-*s", width, c.Classes[k]))
		for _, n := range row {
			err = errors.Join(err, printed(w, " %*d", width, n))
		}
		err = errors.Join(err, printed(w, "\n"))
	}
	return err
}

func printDifferences(w io.Writer, c released.Comparison) error {
	err := printed(w, "second minus first, with %g %% intervals:\n", 100*c.Confidence)
	for _, measure := range released.Measures {
		d, ok := c.Differences[measure.Name]
		if !ok {
			continue
		}
		word := "undecided"
		switch {
		case !d.Decided():
		case (d.Value > 0) == measure.Falls:
			word = "the first is better"
		default:
			word = "the second is better"
		}
		err = errors.Join(err, printed(w, "%-14s %+.5g (%+.5g to %+.5g): %s\n", measure.Name, d.Value, d.Low, d.High, word))
	}
	return err
}
