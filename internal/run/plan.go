package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Job is a task file made ready: what it declares and what was planned for it.
type Job struct {
	Spec     *task.Spec
	Features *task.FeatureMap
	Loss     convex.Loss
	Problem  planning.Problem
	Plan     learner.Plan
	Planner  *planning.Planner // that made the plan; it knows what the accountant answered
}

// NewJob compiles a task file and plans it. Planning takes up to a few seconds.
func NewJob(spec *task.Spec) (Job, error) {
	features, err := spec.Compile()
	if err != nil {
		return Job{}, err
	}
	loss, err := spec.Loss()
	if err != nil {
		return Job{}, err
	}
	problem, err := problemOf(spec, features, loss)
	if err != nil {
		return Job{}, err
	}
	planner := planning.NewPlanner()
	plan, err := planner.Plan(problem)
	if err != nil {
		return Job{}, err
	}
	job := Job{Spec: spec, Features: features, Loss: loss, Problem: problem, Plan: plan, Planner: planner}
	return job, job.carried()
}

func problemOf(spec *task.Spec, features *task.FeatureMap, loss convex.Loss) (planning.Problem, error) {
	trust, err := accounting.ParseTrust(spec.Privacy.Trust)
	if err != nil {
		return planning.Problem{}, fmt.Errorf("privacy.trust: %w", err)
	}
	honest, err := accounting.ParseFraction(spec.Privacy.HonestFraction)
	if err != nil {
		return planning.Problem{}, fmt.Errorf("privacy.honest_fraction: %w", err)
	}
	coin, err := accounting.ParseCoin(spec.Privacy.Coin)
	if err != nil {
		return planning.Problem{}, fmt.Errorf("privacy.coin: %w", err)
	}
	profile, err := accounting.ParseConstants(spec.Privacy.Profile)
	if err != nil {
		return planning.Problem{}, fmt.Errorf("privacy.profile: %w", err)
	}
	p := planning.Problem{
		Users: uint64(spec.Schedule.Users), Dim: loss.Parameters(features.Dim()), Algorithm: spec.Schedule.Algorithm,
		ClipNorm: spec.Model.ClipNorm, Set: spec.SetDeclaration(), Ridge: spec.Model.Ridge,
		Epsilon: spec.Privacy.Epsilon, Delta: spec.Privacy.Delta, Trust: trust, HonestFraction: honest, Coin: coin,
		MaxBits: spec.Privacy.MaxBits, Profile: profile,
		Cohort: uint64(spec.Schedule.Cohort), Minimum: uint64(spec.Schedule.MinimumCohort),
		MaxRounds: uint64(spec.Schedule.Rounds.Max), NoiseDamping: spec.Schedule.NoiseDamping,
		Interactive: spec.Schedule.Interactive, Continuous: spec.Schedule.Continuous,
	}
	if p.Precondition = spec.Preconditioner(); p.Precondition != nil {
		p.MomentUsers = uint64(spec.Features.Precondition.Users)
	}
	if p.Validation, err = spec.Scorecard(features); err != nil {
		return planning.Problem{}, err
	}
	return p.ForLoss(loss, features.Bound(), features.Labels()...), nil
}

// Score is what devices compute of their events beside the gradient; nil where they compute nothing.
func (j Job) Score() func(dst, theta []float64, e convex.Example) {
	if j.Plan.Validation == nil {
		return nil
	}
	return report.NewScorer(j.Features, *j.Plan.Validation, j.Loss).Score
}

// Suite is how reports of a task are sealed.
func Suite(spec *task.Spec) (wire.Suite, error) {
	switch spec.Privacy.Seal {
	case "hpke":
		return wire.Suite_SUITE_X25519, nil
	case "none":
		return wire.Suite_SUITE_NONE, nil
	}
	return 0, fmt.Errorf("privacy.seal: %q, want hpke or none", spec.Privacy.Seal)
}

// Wire is the body of the job's Task message, without keys, name and version.
func (j Job) Wire() (*wire.Task, error) {
	declaration, err := j.Spec.Canonical()
	if err != nil {
		return nil, err
	}
	suite, err := Suite(j.Spec)
	if err != nil {
		return nil, err
	}
	optimizer, err := json.Marshal(j.Plan)
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	trust, err := manifest.WireTrust(j.Problem.Trust)
	if err != nil {
		return nil, err
	}
	plan := &wire.Plan{
		Algorithm: j.Plan.Algorithm, Users: j.Plan.TakenUsers(), Endless: j.Plan.Continuous != "", Trust: trust, HonestFraction: j.Problem.HonestFraction.String(),
		Delta: j.Spec.Privacy.Delta, EpsilonBudget: j.Spec.Privacy.Epsilon,
		DeadlineMs: uint64(time.Duration(j.Spec.Schedule.Deadline).Milliseconds()),
		Optimizer:  optimizer, Loss: j.Spec.Model.Loss,
	}
	for i, phase := range j.Plan.Phases {
		params, err := j.Plan.Params(i)
		if err != nil {
			return nil, err
		}
		if phase.Privacy.ProvedEpsilon == nil {
			return nil, errors.New("plan: no epsilon is proved for these parameters")
		}
		plan.Epsilon = max(plan.Epsilon, *phase.Privacy.ProvedEpsilon) // a user takes part in one phase
		var statistic wire.Statistic
		if phase.Moments {
			statistic = wire.Statistic_STATISTIC_SECOND_MOMENTS
		}
		mechanism := manifest.Mechanism(params, bundleOf(suite, params, phase.Cohort))
		mechanism.Scores = uint32(j.Plan.Scores(i))
		plan.Phases = append(plan.Phases, &wire.Phase{
			Statistic: statistic, Users: phase.Users, Rounds: phase.Rounds, Cohort: phase.Cohort, Minimum: phase.Minimum, Mechanism: mechanism,
			RoundsPerUser: uint32(min(phase.RoundsPerUser, math.MaxUint32)), Smoothing: phase.Smoothing,
		})
	}
	return &wire.Task{Declaration: declaration, Suite: suite, Plan: plan}, nil
}

// BuildAlgorithm makes the algorithm of a stored task from its stored plan: a task is planned once.
func BuildAlgorithm(t *wire.Task) (learner.Algorithm, error) {
	var plan learner.Plan
	if err := json.Unmarshal(t.GetPlan().GetOptimizer(), &plan); err != nil {
		return nil, fmt.Errorf("stored plan: %w", err)
	}
	p := t.Plan
	type pair struct {
		field       string
		stored, own any
	}
	fields := []pair{{"algorithm", p.GetAlgorithm(), plan.Algorithm}, {"users", p.GetUsers(), plan.TakenUsers()}, {"phases", len(p.GetPhases()), len(plan.Phases)},
		{"endless", p.GetEndless(), plan.Continuous != ""}}
	for i := range min(len(p.GetPhases()), len(plan.Phases)) {
		stored, own := p.Phases[i], plan.Phases[i]
		dim, norm := plan.Reported(i)
		fields = append(fields, pair{"rounds", stored.GetRounds(), own.Rounds}, pair{"cohort", stored.GetCohort(), own.Cohort},
			pair{"users of a phase", stored.GetUsers(), own.Users}, pair{"smoothing", stored.GetSmoothing(), own.Smoothing},
			pair{"rounds_per_user", uint64(stored.GetRoundsPerUser()), own.RoundsPerUser},
			pair{"dim", int(stored.GetMechanism().GetDim()), dim}, pair{"clip_norm", stored.GetMechanism().GetClipNorm(), norm},
			pair{"scores", int(stored.GetMechanism().GetScores()), plan.Scores(i)},
			pair{"second moments", stored.GetStatistic() == wire.Statistic_STATISTIC_SECOND_MOMENTS, own.Moments})
	}
	for _, one := range fields {
		if one.stored != one.own {
			return nil, fmt.Errorf("stored plan: %s %v, its optimizer was planned with %v", one.field, one.stored, one.own)
		}
	}
	return learner.New(plan)
}

// PaperNoiseStd is what a round's noise would be with the paper's closed-form constants, in units of the clip norm. It
// is an error where they do not apply.
func PaperNoiseStd(j Job) (float64, error) {
	paper, err := accounting.Calibrate(accounting.Request{Users: j.Plan.First().Cohort, Dim: j.Plan.Dim, Epsilon: j.Problem.Epsilon,
		Delta: j.Problem.Delta, Trust: accounting.Shuffle, HonestFraction: accounting.One, Rounds: int(j.Plan.First().RoundsPerUser), Profile: accounting.Paper})
	return paper.NoiseStd, err
}
