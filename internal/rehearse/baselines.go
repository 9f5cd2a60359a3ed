package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Baselines beside those of package planning.
const (
	baselineExact     = "exact"
	baselineConverged = "converged"
	baselineShuffle   = "shuffle" // the stage is trusted to mix
	baselineAlone     = "alone"   // every silo by itself
)

// allBaselines are the other ways to spend the same budget.
var allBaselines = []string{planning.BaselineCentral,
	planning.BaselineLocal, baselineShuffle, baselineAlone, planning.BaselineMultiPass, baselineExact, baselineConverged}

// Baselines returns the named baselines; all means every one.
func Baselines(given []string) ([]string, error) {
	if len(given) == 1 && given[0] == "all" {
		return allBaselines, nil
	}
	for _, name := range given {
		if !slices.Contains(allBaselines, name) {
			return nil, fmt.Errorf("%q: want all, or some of %s", name, strings.Join(allBaselines, ","))
		}
	}
	return given, nil
}

// A baseline is the outcome of another way to spend the same budget on the same users. What cannot be simulated has a
// reason.
type baseline struct {
	Name      string `json:"name"`
	Mechanism string `json:"mechanism"`
	Algorithm string `json:"algorithm,omitempty"`
	Rounds    uint64 `json:"rounds,omitempty"`
	Cohort    uint64 `json:"cohort,omitempty"`
	// of one coordinate of a round's mean in the first phase, in units of the gradient
	NoiseStd float64   `json:"noise_std"`
	Runs     []Outcome `json:"runs,omitempty"`
	Mean     *Outcome  `json:"mean,omitempty"`
	SD       *Outcome  `json:"sd,omitempty"`
	Curve    []spot    `json:"curve,omitempty"`
	Reason   string    `json:"reason,omitempty"`

	passes bool // everybody takes part in every round
}

func (s *Rehearsal) baseline(ctx context.Context, t trials) baseline {
	out := baseline{Name: t.name}
	var err error
	switch t.name {
	case baselineConverged:
		err = s.converged(ctx, t, &out)
	case baselineExact:
		out.Mechanism = "no noise"
		err = s.fill(ctx, t, &out, sim.Config{Plan: s.job.Plan, Exact: true})
	case baselineShuffle:
		err = s.under(ctx, t, &out, accounting.Shuffle)
	case baselineAlone:
		err = s.alone(ctx, t, &out)
	case planning.BaselineLocal:
		if s.silos != nil {
			err = s.under(ctx, t, &out, accounting.Local)
			break
		}
		err = s.sameBudget(ctx, t, &out, s.units)
	default:
		err = s.sameBudget(ctx, t, &out, s.units)
	}
	if err != nil {
		out.Reason = err.Error()
	}
	return out
}

// sameBudget simulates the task's own method, or for several passes gradient descent, with the noise of another trust
// model. The units report for themselves; nil: the rows.
func (s *Rehearsal) sameBudget(ctx context.Context, t trials, out *baseline, units []block.Block) error {
	problem := s.job.Problem
	if s.silos != nil { // in one place, all that they have
		problem.Users, problem.Silos, problem.Units, problem.Minimum = uint64(len(units)), planning.Silos{}, 0, 0
	}
	methods, name := []string{s.job.Plan.Algorithm}, out.Name
	if name == baselineAlone {
		// it has too few for looks of their own: all of its units are in all rounds, looks too, as people's are
		name, problem.ByUser = planning.BaselineMultiPass, true
	}
	if name == planning.BaselineMultiPass {
		methods = []string{schedule.PGD, schedule.PGDEnvelope}
	}
	var err error
	for _, m := range methods {
		var b planning.BaselinePlan
		if b, err = problem.BaselinePlan(name, m); err == nil {
			first := manifest.Gradients(b.Plan)
			out.Mechanism, out.NoiseStd = b.Mechanism, b.NoiseStd(slices.Index(b.Plan.Phases, first), first.Cohort)
			return s.fill(ctx, t, out, sim.Config{Plan: b.Plan, NoiseStd: b.NoiseStd, Blocks: units})
		}
	}
	return err
}

// under simulates the task under another trust, by the randomizer.
func (s *Rehearsal) under(ctx context.Context, t trials, out *baseline, trust accounting.Trust) error {
	p := s.job.Problem
	if p.Trust == trust {
		return errors.New("the trust is the task's own")
	}
	p.Trust, p.Minimum, p.Coin, p.Profile = trust, 0, accounting.CoinFair, accounting.Numeric
	out.Mechanism = "the stage mixes, trust shuffle"
	if o := &p.Silos; o.Count > 0 {
		p.HonestFraction, o.Least, p.Minimum = accounting.One, o.Units, min(o.Reports-o.Reports/10, uint64(len(s.silos)))
		switch {
		case trust == accounting.Local:
			out.Mechanism, p.Minimum = "every silo's own noise, trust local", max(1, (o.Reports+1)/2)
			for _, units := range s.silos {
				o.Least = min(o.Least, uint64(len(units)))
			}
		case o.Reports < 2:
			return errors.New("one silo in a round has no other whose noise it could rely on")
		default:
			honest, err := accounting.ParseFraction(fmt.Sprintf("%d/%d", o.Reports-1, o.Reports))
			if err != nil {
				return err
			}
			p.HonestFraction = honest
			out.Mechanism += fmt.Sprintf(", honest fraction %v", honest)
		}
	}
	plan, err := planning.MakePlan(p)
	if err != nil {
		return err
	}
	out.NoiseStd = plan.First().Privacy.NoiseStd * manifest.Gradients(plan.Plan).Mechanism.ClipNorm
	return s.fill(ctx, t, out, sim.Config{Plan: plan.Plan})
}

// alone trains every silo by itself. Each run is the mean over silos.
func (s *Rehearsal) alone(ctx context.Context, t trials, out *baseline) error {
	if s.silos == nil {
		return errors.New("the task has no silos")
	}
	runs := make([][]Outcome, t.seeds) // of the silos, by seed
	var noise float64
	for i, units := range s.silos {
		one := baseline{Name: out.Name}
		quiet := t
		quiet.progress = io.Discard
		if err := s.sameBudget(ctx, quiet, &one, units); err != nil {
			return fmt.Errorf("silo %d of %d units: %w", i+1, len(units), err)
		}
		for k, r := range one.Runs {
			runs[k] = append(runs[k], r)
		}
		out.Algorithm, noise = one.Algorithm, noise+one.NoiseStd/float64(len(s.silos))
		if i == 0 {
			out.Rounds, out.Cohort = one.Rounds, one.Cohort
		}
	}
	for k, of := range runs {
		seed, mean := t.first+uint64(k), meanOf(of)
		mean.Seed = &seed
		out.Runs = append(out.Runs, mean)
		fmt.Fprintf(t.progress, "%s, seed %d, mean over silos: %s\n", out.Name, seed, mean)
	}
	mean := meanOf(out.Runs)
	out.Mechanism, out.NoiseStd, out.Mean, out.SD = "every silo the curator of its own rows, mean over silos", noise,
		&mean, deviation(out.Runs)
	out.passes = true
	return nil
}

func (s *Rehearsal) fill(ctx context.Context, t trials, out *baseline, c sim.Config) error {
	r, err := s.series(ctx, t, c)
	if err != nil {
		return err
	}
	mean := meanOf(r.runs)
	first := manifest.Gradients(c.Plan)
	out.Algorithm, out.Rounds, out.Cohort, out.passes = c.Plan.Algorithm, r.rounds, first.Cohort, first.RoundsPerUser > 1
	out.Runs, out.Mean, out.SD, out.Curve = r.runs, &mean, deviation(r.runs), r.curve
	return nil
}

// converged trains without noise or clipping on all training data until it converges, and sets the algorithm, the
// only run and the mean of out to the result.
func (s *Rehearsal) converged(ctx context.Context, t trials, out *baseline) error {
	set, err := s.job.Spec.Set(s.job.Problem.Dim)
	if err != nil {
		return err
	}
	out.Mechanism = "no noise, no clipping"
	theta, err := sim.Converge(ctx, sim.ConvergeConfig{Loss: s.job.Loss, Set: set, Ridge: s.job.Problem.Ridge,
		Dim:      s.job.Problem.Dim,
		Examples: s.labelled})
	if err != nil {
		return err
	}
	one, err := s.Score(theta)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.progress, "%s: %s\n", out.Name, one)
	out.Algorithm, out.Runs, out.Mean = "fista", []Outcome{one}, &one
	return nil
}

func (b baseline) print(w io.Writer) error {
	var err error
	if b.Reason != "" {
		_, err = fmt.Fprintf(w, "%-13s none: %s\n", b.Name, b.Reason)
	} else {
		_, err = fmt.Fprintf(w, "%-13s %s%s (%s)\n", b.Name, *b.Mean, b.SD.spread(len(b.Runs)), b.Mechanism)
	}
	return err
}
