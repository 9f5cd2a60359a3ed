package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Job is a task file made ready: what it declares and what was planned for it.
type Job struct {
	Spec              *task.Spec
	Features          *task.FeatureMap
	Loss              convex.Loss
	Problem           planning.Problem
	planning.Proposal        // its plan has the deadline and the size of bundles too
	Start             *start // that the task begins with; nil: the set's own
}

// NewJob compiles a task file and plans it. Planning takes up to a few seconds. It returns an error if the noise would
// hide the rows of a weighted class.
func NewJob(spec *task.Spec) (Job, error) {
	job, err := NewPublicJob(spec)
	if err != nil || job.Plan.Practical == nil {
		return job, err
	}
	if err := manifest.Practical(job.Plan).CheckWeights(learner.LayoutOf(job.Plan)); err != nil {
		return Job{}, fmt.Errorf("plan: %w", err)
	}
	return job, nil
}

// NewPublicJob is NewJob for a run without noise.
func NewPublicJob(spec *task.Spec) (Job, error) {
	if err := schedule.OnePlace(spec.Schedule.Algorithm); err != nil {
		return Job{}, fmt.Errorf("schedule.algorithm %s: %w", spec.Schedule.Algorithm, err)
	}
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
	start, err := startOf(spec)
	if err != nil {
		return Job{}, err
	}
	if start != nil {
		problem = start.in(problem)
	}
	proposal, err := planning.MakePlan(problem)
	if err != nil {
		return Job{}, err
	}
	suite, err := suiteOf(spec)
	if err != nil {
		return Job{}, err
	}
	plan := proposal.Plan
	plan.DeadlineMs = uint64(time.Duration(spec.Schedule.Deadline).Milliseconds())
	plan.Places = true
	if problem.Trust.HasOperators() {
		plan.Prio3 = manifest.Prio3
	}
	plan.StartPrivacy = start.statement()
	plan.StaleMs = uint64(time.Duration(spec.Schedule.Longest()).Milliseconds())
	plan.RetentionMs = uint64(time.Duration(spec.Schedule.Retention).Milliseconds())
	for i, f := range plan.Phases {
		cohort := f.Cohort
		if f.Top > 0 { // a round may exceed its cohort by a bundle less one
			cohort = max(1, f.Minimum/8)
		}
		privacy := &proposal.Forecasts[i].Privacy
		*privacy = WithParts(*privacy, spec.Grants.Needed())
		one := manifest.Part{Leader: int(privacy.ReportBytes), Helper: int(privacy.HelperBytes),
			Public: int(privacy.PublicBytes)}
		f.Mechanism.MaxBundle = bundleOf(suite, one, cohort)
	}
	if err := validateMinimisers(plan, features, loss); err != nil {
		return Job{}, err
	}
	job := Job{Spec: spec, Features: features, Loss: loss, Problem: problem, Proposal: proposal,
		Start: start}
	return job, job.carried()
}

// validateMinimisers refuses a plan with minimisers that devices would refuse because of floating-point rounding.
func validateMinimisers(plan *wire.Plan, features *task.FeatureMap, loss convex.Loss) error {
	f := manifest.Gradients(plan)
	x := f.GetProx()
	if x == nil {
		return nil
	}
	set, err := manifest.Set(plan)
	if err != nil {
		return err
	}
	of := report.Config{Features: features.Dim(), Loss: loss, ClipNorm: plan.ClipNorm,
		Prox: &report.Prox{Weight: x.Weight, StepSize: x.StepSize, Steps: int(x.Steps), Set: set}}
	if err := of.CheckProx(max(1, f.Mechanism.Units), set.Radius()); err != nil {
		return fmt.Errorf("plan: schedule.prox.weight %v: %w", x.Weight, err)
	}
	return nil
}

func problemOf(spec *task.Spec, features *task.FeatureMap, loss convex.Loss) (planning.Problem, error) {
	profile := spec.Privacy.Profile
	// Of silos and trust local the paper's constants are printed, and never run.
	if spec.Silo != nil || spec.Privacy.Trust == accounting.Local {
		profile = accounting.Numeric
	}
	p := planning.Problem{
		Users: uint64(spec.Schedule.Users), Dim: loss.Parameters(features.Dim()), Algorithm: spec.Schedule.Algorithm,
		ClipNorm: spec.ClipNorm(), Set: spec.SetDeclaration(), Ridge: spec.Model.Ridge,
		LossFacts: planning.LossFacts{MeanSmoothness: spec.Model.Smoothness},
		Epsilon:   spec.Privacy.Epsilon, Delta: spec.Privacy.Delta, Trust: spec.Privacy.Trust,
		HonestFraction: spec.Privacy.HonestFraction.Fraction,
		ByUser:         spec.Privacy.ByUser(), Radius: spec.UserRadius(),
		Coin: spec.Privacy.Coin, MaxBits: spec.Privacy.MaxBits, Profile: profile,
		Rounds: planning.Rounds{Cohort: uint64(spec.Schedule.Cohort), Minimum: uint64(spec.Schedule.MinimumCohort),
			MaxRounds: uint64(spec.Schedule.Rounds.Max), FirstCohort: uint64(spec.Schedule.FirstCohort),
			Interactive: spec.Schedule.Interactive, Continuous: spec.Schedule.Continuous},
	}
	if o := spec.Silo; o != nil {
		p.Silos = planning.Silos{Count: uint64(o.Count), Units: uint64(o.Units), Reports: uint64(o.Reports),
			Least: uint64(o.Least), Spread: o.Spread}
	}
	if x := spec.Schedule.Prox; x != nil {
		p.Prox = planning.Prox{Weight: x.Weight, Steps: uint64(x.Steps)}
	}
	p.Practical = spec.Practical(features)
	var err error
	if p.Validation, err = spec.Scorecard(features); err != nil {
		return planning.Problem{}, err
	}
	return p.ForLoss(loss, features.Bound(), features.Labels()...), nil
}

// Score returns the function by which devices score their events beside the gradient; nil if they score nothing.
func (j Job) Score() func(dst, theta []float64, e convex.Example) {
	if j.Problem.Validation == nil {
		return nil
	}
	return report.NewScorer(j.Features, *j.Problem.Validation, j.Loss).Score
}

// Assuming describes the assumptions behind the plan's epsilon, see accounting.Trust.Assuming.
func (j Job) Assuming() string {
	assuming := j.Problem.Trust.Assuming(j.Problem.HonestFraction, wording.Of(j.Plan).Reporter().Many)
	if j.Spec.Privacy.OneOperator() {
		assuming += wording.OneOperator
	}
	return assuming
}

// suiteOf returns the cipher suite that seals a task's reports.
func suiteOf(spec *task.Spec) (wire.Suite, error) { return seal.ParseSuite(spec.Privacy.Sealing()) }

// Wire returns the body of the job's Task message, without name, version and the keys of learner and stage. Under trust
// split the declaration names both operators: nobody trusts them at first use.
func (j Job) Wire() (*wire.Task, error) {
	body, err := j.body()
	if err == nil && j.Spec.Grants.Needed() && j.Spec.IssuerKey == "" {
		return nil, errors.New("issuer_key: name the public key of the issuer, whose tokens devices send " +
			"(ingest keygen issuer prints it)")
	}
	if err != nil || !j.Problem.Trust.HasOperators() {
		return body, err
	}
	if j.Spec.Privacy.Operators == nil {
		return nil, errors.New("privacy.operators: name the public keys of leader and helper, who are two operators: " +
			"under trust split nobody is trusted at first use (ingest keygen prints them)")
	}
	_, body.HelperKey, _ = j.Spec.Privacy.Operators.Keys() // the declaration is valid
	return body, nil
}

// body returns the body of the Task message, whether or not there are roles that run it.
func (j Job) body() (*wire.Task, error) {
	if err := j.Runnable(); err != nil {
		return nil, err
	}
	declaration, err := j.Spec.Canonical()
	if err != nil {
		return nil, err
	}
	suite, err := suiteOf(j.Spec)
	if err != nil {
		return nil, err
	}
	body := &wire.Task{Declaration: declaration, Public: j.Spec.Features.Public.Data(), Suite: suite, Plan: j.Plan}
	if j.Spec.Grants.Needed() { // of the length of a key, where none is declared yet
		body.IssuerKey = append(j.Spec.IssuerKey.Bytes(), make([]byte, task.IssuerKeySize-len(j.Spec.IssuerKey.Bytes()))...)
	}
	return body, nil
}

// PaperNoiseStd returns the noise of a round under the paper's closed-form constants, in units of the clip norm. It
// returns an error where they do not apply.
func PaperNoiseStd(j Job) (float64, error) {
	first := manifest.Gradients(j.Plan)
	units := first.Cohort * max(1, first.Mechanism.Units) // that report for themselves
	paper, err := accounting.Calibrate(accounting.Request{Users: units, Dim: j.Problem.Dim, Epsilon: j.Problem.Epsilon,
		Delta: j.Problem.Delta, Trust: accounting.Shuffle, HonestFraction: accounting.One,
		Rounds: int(manifest.RoundsPerUser(j.Plan)), Profile: accounting.Paper})
	return paper.NoiseStd, err
}
