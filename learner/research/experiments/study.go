package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A study is an experiment of the paper: a task file, the silos that its data make, and the choices that are
// tried.
type study struct {
	name, task, split string
	sets              []string  // of the task file, as --set has them
	data              string    // in the folder of data; empty: a file of its own
	measure           string    // what is scored
	of                [][2]int  // N and M: silos, and those that answer a round
	epsilons          []float64 // delta is 1/n^2, n the rows of the smallest silo
	rounds, last      int       // R, and the iterates that are averaged
	clips             []float64 // norms L to choose of
	// the paper's L is twice the largest norm of a row's features, whatever the loss; else one of clips
	twice        bool
	steps, local bounds // of the size of a step along a mean gradient, and of a silo's own
	// trials of a choice, and the share 1/thin of rows that they learn from where steps are along means; 0: 1
	tries, thin int
	released    func(a attempt) (reporter, error) // of the released script; nil: it has the paper's noise
	// silos of one label share its rows, and draw of them with replacement, as released
	doubleDraws bool
	// columns are features as the paper has them, and no task's: nothing is planned then; nil: the task file's
	columns *paperColumns
	points  int // sizes of a step that are tried; 0: 6
	// summed reports whether the script steps along the sum of silos' answers: along means its steps are M times as long
	summed bool
}

// bounds holds the bounds of the exponent of the step sizes that are tried.
type bounds struct{ low, high float64 }

// sizes returns so many step sizes, evenly spread in the exponent.
func (b bounds) sizes(points int) (out []float64) {
	for i := range points {
		out = append(out, math.Exp(b.low+(b.high-b.low)*float64(i)/float64(points-1)))
	}
	return out
}

// tried returns the number of sizes of a step that are tried.
func (s study) tried() int { return cmp.Or(s.points, 6) }

const relative = "root mean square test error, over that of the training mean"

var mnist = study{
	name: "mnist", task: "mnist-silos", measure: "test error", split: sim.SplitLabelPairs,
	of: [][2]int{{25, 25}, {25, 18}, {25, 12}}, epsilons: []float64{0.75, 1.5, 3, 6, 12, 18},
	rounds: 35, last: 8, clips: []float64{5}, twice: true, steps: bounds{-2, 1.5}, local: bounds{-8, -2}, tries: 1,
	thin: 4,
}

var insurance = study{
	name: "insurance", task: "insurance-silos", measure: relative, data: "insurance/insurance.csv",
	split: sim.SplitSortedLabel,
	of:    [][2]int{{3, 3}, {5, 5}, {10, 10}, {10, 5}}, epsilons: []float64{0.125, 0.25, 0.5, 1, 2, 3},
	rounds: 35, last: 8, clips: []float64{0.05, 0.15, 0.5}, steps: bounds{-4, 1}, local: bounds{-10, 0}, tries: 2,
	released: clippedMeans,
}

var obesity = study{
	name: "obesity", task: "obesity-silos", measure: "test error",
	data: "obesity/ObesityDataSet_raw_and_data_sinthetic.csv", split: sim.SplitLabel,
	of: [][2]int{{7, 7}, {7, 3}}, epsilons: []float64{0.5, 1, 3, 6, 9},
	rounds: 100, last: 50, clips: []float64{0.7, 1.5}, twice: true, steps: bounds{-0.5, 2.5}, local: bounds{-8, -1},
	tries: 1, released: sums,
}

var studies = map[string]study{
	"mnist":             mnist,
	"mnist-as-released": asReleased(mnist),
	"mnist-fourier":     withFourier(mnist),
	"insurance":         insurance,
	"insurance-paper":   insurancePaper(),
	"obesity":           obesity,
	"obesity-paper":     obesityPaper(),
}

// insurancePaper returns the study of insurance with the paper's features, and its grids: L of 100 to no clipping at
// all, and ten sizes of a step.
func insurancePaper() study {
	s := withColumns(insurance, insuranceColumns, []float64{100, 1e4, 1e6, 1e8, 1e32}, 10, bounds{-8, 1}, bounds{-10, 0})
	s.summed, s.tries = true, 3
	return s
}

// obesityPaper returns the study of obesity with the paper's features, its L = 20 and its eight sizes of a step; local
// steps down to e^-12, as its script has them for small epsilons. The last point is the model.
func obesityPaper() study {
	s := withColumns(obesity, obesityColumns, []float64{20}, 8, bounds{-7, -1}, bounds{-12, -1})
	s.last, s.tries = 1, 3
	return s
}

// asReleased returns the MNIST study with the silos of the released script.
func asReleased(s study) study {
	s.name, s.doubleDraws, s.of = "mnist-as-released", true, s.of[:1]
	return s
}

// withFourier returns the MNIST study with a model that is not the paper's: linear in random features of the
// components too.
func withFourier(s study) study {
	s.name, s.sets = "mnist-fourier", []string{"features.fourier={dimension: 300, gamma: 0.02}"}
	return s
}

// withColumns returns a study with features and grids as the paper's.
func withColumns(s study, c paperColumns, clips []float64, points int, steps, local bounds) study {
	s.name += "-paper"
	s.columns, s.clips, s.points, s.steps, s.local, s.twice = &c, clips, points, steps, local, false
	return s
}

// A setting is a study with its data, for one number of silos and of those that answer a round.
type setting struct {
	study
	reports    int // M
	silos      [][]convex.Example
	least      int     // n, rows of the smallest silo that are trained on
	longest    float64 // norm of a row's features
	job        run.Job
	mechanisms map[float64]accounting.Plan
	noises     map[float64]float64 // of batches, in units of L, by epsilon
	standard   []int               // coordinates that are standardised, where the study has columns of its own
}

// load makes the silos, and the task's plan for the first epsilon.
func (s study) load(path string, of [2]int) (*setting, error) {
	out := &setting{study: s, reports: of[1], mechanisms: map[float64]accounting.Plan{}, least: math.MaxInt}
	rows, labels, err := s.rows(path)
	if err != nil {
		return nil, err
	}
	if s.columns != nil {
		var err error
		if out.standard, err = s.columns.places(path); err != nil {
			return nil, err
		}
	}
	if out.silos, err = silosOf(s.split, of[0], rows, labels); err != nil {
		return nil, err
	}
	if s.doubleDraws {
		out.silos = drawnTwice(out.silos)
	}
	for _, rows := range out.silos {
		out.least = min(out.least, trained(len(rows)))
		for _, x := range rows {
			out.longest = max(out.longest, x.Norm())
		}
	}
	return out, out.plan(s.epsilons[0])
}

// rows loads the rows of a file, and the name that it has for the label of each.
func (s study) rows(path string) ([]convex.Example, []string, error) {
	if s.columns != nil {
		return s.columns.read(path)
	}
	spec, err := task.Load(s.file(), s.sets)
	if err != nil {
		return nil, nil, err
	}
	features, err := spec.Compile()
	if err != nil {
		return nil, nil, err
	}
	return read(features, path)
}

func (s study) file() string { return filepath.Join("deploy", "tasks", s.task+".yaml") }

// delta returns 1/n^2, rounded down.
func (s *setting) delta() float64 { return math.Floor(1e9/float64(s.least)/float64(s.least)) / 1e9 }

// plan plans the task file for an epsilon.
func (s *setting) plan(epsilon float64) error {
	sets := append(slices.Clone(s.sets), fmt.Sprintf("privacy.epsilon=%v", epsilon),
		fmt.Sprintf("privacy.delta=%v", s.delta()), fmt.Sprintf("silo.count=%d", len(s.silos)),
		fmt.Sprintf("silo.reports=%d", s.reports), fmt.Sprintf("silo.units=%d", s.least))
	spec, err := s.declared(sets)
	if err != nil {
		return err
	}
	s.job, err = run.NewJob(spec)
	return err
}

// declared returns the task of the study.
func (s *setting) declared(sets []string) (*task.Spec, error) {
	if s.columns != nil {
		return s.columns.spec(len(s.silos[0][0].Value), sets)
	}
	return task.Load(s.file(), sets)
}

// planned runs the task file as it is, by the plan that was made last.
func (s *setting) planned(t trial) ([]float64, error) {
	c := sim.Config{Plan: s.job.Plan, Loss: s.job.Loss, Score: s.job.Score(), Seed: t.seed, InOrder: true}
	for i, rows := range t.silos {
		c.Blocks, c.Silos = append(c.Blocks, block.Of(rows...)), append(c.Silos, i)
	}
	result, err := sim.Run(context.Background(), c)
	return result.Model, err
}

// score returns the share of wrong answers on the test rows, or for numbers the root mean square error over
// that of the training mean.
func (s *setting) score(theta []float64, t trial) (float64, error) {
	p := model.Predictor{Features: s.job.Features, Loss: s.job.Loss, Theta: theta}
	e, err := p.EvaluateExamples(t.test)
	if err != nil {
		return 0, err
	}
	if e.OfClasses != nil {
		return 1 - e.Accuracy, nil
	}
	var train []convex.Example
	for _, rows := range t.silos {
		train = append(train, rows...)
	}
	return e.RMSE / *p.Baseline(train, t.test).Error, nil
}
