package consent

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// tolerance is the relative rounding that is forgiven where a bound is compared with a number that another program
// computed.
const tolerance = 1e-9

// An Agreement describes a task that a policy agreed to. It is immutable except for caches of the accountant's
// results.
type Agreement struct {
	Announcement
	Cost
	Spec      *task.Spec
	Features  *task.FeatureMap
	Loss      convex.Loss
	Set       convex.Set         // of points, in a proved plan
	Practical *practical.Problem // nil in a proved plan
	Phases    []Phase            // of the plan, in order

	// Final reports that a published report counts as released, whatever the broker and the stage claim about it:
	// trust local. No event takes part again.
	Final bool

	card   *convex.Scorecard // how scores are reported after the gradient; nil: none
	policy Policy
}

// A Phase holds the terms that a policy agreed to for one phase of the plan. A user takes part in one phase alone,
// unless uncounted there.
type Phase struct {
	Params    randomizer.Params
	Reports   report.Config        // what is reported; its Score is for one goroutine
	Rounds    uint32               // in which one user takes part
	Guarantee accounting.Guarantee // of all of them together, for the phase's cohort
}

// CheckTask decides whether the device takes part in a task. The caller has verified the Task under the learner
// key that the Task names; hash is the hash of its body. Every refusal is a *RefusedError.
//
// The plan is not believed: epsilon is computed again from the mechanism, with the device's own honest fraction
// and delta, and must be within the policy's limit, or the task's declared budget where the policy has none.
func (p Policy) CheckTask(t *wire.Task, hash stream.Hash) (*Agreement, error) {
	switch {
	case !p.allows(t.Name):
		return nil, Refuse("task", t.Name, "one of the policy's tasks: %s", strings.Join(p.Tasks, ", "))
	case !p.TaskHash.accepts(hash[:]):
		return nil, Refuse("task hash", fmt.Sprintf("%x", hash), "%v, which the policy pins", p.TaskHash)
	case !p.allowsHash(hash):
		return nil, Refuse("task hash", fmt.Sprintf("%x", hash), "one of the %d that the policy's task_hashes list",
			len(p.TaskHashes))
	case !p.LearnerKey.accepts(t.LearnerKey):
		return nil, Refuse("learner_key", fmt.Sprintf("%x", t.LearnerKey), "%v, which the policy pins", p.LearnerKey)
	case !p.StageKey.accepts(t.StageKey):
		return nil, Refuse("stage_key", fmt.Sprintf("%x", t.StageKey), "%v, which the policy pins", p.StageKey)
	case len(t.HelperKey) > 0 && !p.HelperKey.accepts(t.HelperKey):
		return nil, Refuse("helper_key", fmt.Sprintf("%x", t.HelperKey), "%v, which the policy pins", p.HelperKey)
	case t.Suite == wire.Suite_SUITE_NONE && !p.AllowPlaintext:
		return nil, Refuse("suite", "none: reports would not be encrypted",
			"a task with privacy.seal hpke, or allow_plaintext in the policy")
	}
	if err := stream.Check(t); err != nil {
		return nil, Refuse("task", "malformed: "+err.Error(), "a well-formed task")
	}
	if err := manifest.CheckTask(t); err != nil {
		return nil, Refuse("plan", "not one that can run: "+err.Error(), "a consistent plan")
	}
	agreed := &Agreement{Announcement: Announcement{t, hash}, policy: p, Cost: Cost{Delta: t.Plan.Delta, plan: t.Plan,
		limit: t.Plan.EpsilonBudget, source: "the task's budget",
		known: make(map[alike]accounting.Guarantee)}}
	if p.MaxEpsilon > 0 {
		agreed.limit, agreed.source = p.MaxEpsilon, "the policy's max_epsilon"
	}
	if p.MaxDelta > 0 {
		agreed.Delta = min(agreed.Delta, p.MaxDelta)
	}
	if err := agreed.declared(); err != nil {
		return nil, err
	}
	if (t.Plan.Practical != nil) != (agreed.Practical != nil) {
		return agreed, Refuse("plan", "practical: "+fmt.Sprint(t.Plan.Practical != nil), "schedule.plan as declared")
	}
	for i := range t.Plan.Phases {
		phase, err := agreed.agree(i)
		if err != nil {
			return agreed, err
		}
		agreed.Phases = append(agreed.Phases, phase)
		if err := agreed.cover(i, phase.Guarantee); err != nil {
			return agreed, err
		}
	}
	return agreed, agreed.checkWhole()
}

// reports returns the declared configuration of a phase's reports, and the norm of a report together with its
// scores.
func (a *Agreement) reports(f *wire.Phase) (c report.Config, norm float64, err error) {
	c = report.Config{Features: a.Features.Dim(), Loss: a.Loss, ClipNorm: a.Spec.ClipNorm(), Radius: a.Spec.UserRadius(),
		Practical: a.Practical}
	if a.card != nil {
		c.Scores, c.Score = a.card.Dim(), report.NewScorer(a.Features, *a.card, a.Loss).Score
	}
	if c, err = c.Phase(report.Statistic(f.Statistic), f.Smoothing); err != nil {
		return c, 0, err
	}
	if x := f.GetProx(); x != nil {
		c.Prox = &report.Prox{Weight: x.Weight, StepSize: x.StepSize, Steps: int(x.Steps), Set: a.Set}
	}
	if c.Scores > 0 {
		return c, a.card.Joined(c.Norm()), nil
	}
	return c, c.Norm(), nil
}

// Valid returns nil if an example is an event of the task, else an error as report.Config.Check does. An invalid
// example is reported as the zero vector.
func (a *Agreement) Valid(x convex.Example) error {
	return report.Config{Features: a.Features.Dim(), Loss: a.Loss}.Check(x)
}

// agree decides about one phase.
func (a *Agreement) agree(i int) (Phase, error) {
	field, f := fmt.Sprintf("plan.phases[%d]", i), a.Task.Plan.Phases[i]
	out := Phase{Rounds: manifest.Costliest(a.Task.Plan, i).Stint.Rounds}
	var err error
	var norm float64
	if out.Params, err = manifest.Params(f.Mechanism); err != nil {
		return out, Refuse(field+".mechanism", "not valid: "+err.Error(), "a valid mechanism")
	}
	if out.Reports, norm, err = a.reports(f); err != nil {
		return out, Refuse(field+".smoothing", fmt.Sprintf("%v: %v", f.Smoothing, err),
			"0, or one for which the loss has an envelope")
	}
	if err := a.checkProx(field, out.Reports, max(1, out.Params.Units)); err != nil {
		return out, err
	}
	switch dim, scores := out.Reports.Dim(), out.Reports.Scores; {
	case out.Params.Dim != dim:
		return out, Refuse(field+".mechanism.dim", out.Params.Dim, "%d, as declared", dim)
	case out.Params.ClipNorm != norm:
		return out, Refuse(field+".mechanism.clip_norm", out.Params.ClipNorm, "%v, as declared", norm)
	case f.Mechanism.Scores != uint32(scores):
		return out, Refuse(field+".mechanism.scores", f.Mechanism.Scores, "%d, as declared", scores)
	case f.Minimum < a.policy.MinCohort:
		return out, Refuse(field+".minimum", f.Minimum, "at least %d, the policy's min_cohort", a.policy.MinCohort)
	case f.Top > 0 && out.Params.Trials > 0 && float64(f.Minimum) < a.policy.OwnShare*float64(f.Cohort):
		return out, Refuse(field+".minimum", f.Minimum,
			"at least %v of the %d users that noise is planned for, the policy's own_share", a.policy.OwnShare, f.Cohort)
	case out.Rounds > a.policy.maxRoundsPerUser():
		return out, Refuse(field+".rounds_per_user", out.Rounds, "at most %d, the policy's max_rounds_per_user",
			a.policy.maxRoundsPerUser())
	}
	out.Guarantee, err = a.afford(field, manifest.Costliest(a.Task.Plan, i))
	return out, err
}

// declared checks the plan against the declaration, which is what people read.
func (a *Agreement) declared() error {
	spec, err := task.ParseCanonical(a.Task.Declaration)
	if err != nil {
		return Refuse("declaration", "not readable: "+err.Error(), "a canonical declaration of this version")
	}
	if spec, err = spec.WithPublic(a.Task.Public); err != nil {
		return Refuse("public", fmt.Sprintf("%d bytes", len(a.Task.Public)), "the public model as declared: %v", err)
	}
	a.Spec = spec
	if a.Features, err = spec.Compile(); err != nil {
		return Refuse("declaration", "not valid: "+err.Error(), "a valid declaration")
	}
	if a.Loss, err = spec.Loss(); err != nil {
		return Refuse("declaration: model.loss", spec.Model.Loss, "a loss that this program knows")
	}
	if a.Set, err = spec.Set(a.Loss.Parameters(a.Features.Dim())); err != nil {
		return Refuse("declaration: model.set", spec.Model.Set, "a set that this program knows")
	}
	a.Practical = spec.Practical(a.Features)
	if a.card, err = spec.Scorecard(a.Features); err != nil {
		return Refuse("declaration: validation", "not valid: "+err.Error(), "a valid one")
	}
	plan := a.Task.Plan
	a.Final = plan.Trust == wire.Trust_TRUST_LOCAL
	trust, err := manifest.Trust(plan.Trust)
	if err != nil {
		return Refuse("plan.trust", plan.Trust, "a trust that this program knows")
	}
	honest, err := manifest.HonestFraction(plan)
	if err != nil {
		return Refuse("plan.honest_fraction", fmt.Sprintf("%q", plan.HonestFraction), "an exact fraction in (0, 1]")
	}
	suite, err := seal.ParseSuite(spec.Privacy.Sealing())
	if err != nil {
		return Refuse("declaration: privacy.suite", spec.Privacy.Sealing(), "a suite that this program knows")
	}
	switch {
	case spec.Name != a.Task.Name:
		return Refuse("declaration: name", spec.Name, "%s, as in the task", a.Task.Name)
	case trust != spec.Privacy.Trust:
		return Refuse("plan.trust", trust, "%s, as declared", spec.Privacy.Trust)
	case a.Final && honest != accounting.One:
		return Refuse("plan.honest_fraction", honest,
			"1 under trust local: nobody's noise but the report's own is relied upon")
	case (plan.Unit == wire.Unit_UNIT_USER) != spec.Privacy.ByUser():
		return Refuse("plan.unit", plan.Unit, "that of privacy.unit, as declared")
	case plan.Radius != spec.UserRadius():
		return Refuse("plan.radius", plan.Radius, "%v, as declared", spec.UserRadius())
	case honest != spec.Privacy.HonestFraction.Fraction:
		return Refuse("plan.honest_fraction", honest, "%s, as declared", spec.Privacy.HonestFraction)
	case suite != a.Task.Suite:
		return Refuse("suite", a.Task.Suite, "%v, as privacy.seal and privacy.suite declare", suite)
	case plan.EpsilonBudget > spec.Privacy.Epsilon:
		return Refuse("plan.epsilon_budget", plan.EpsilonBudget, "at most %v, as declared", spec.Privacy.Epsilon)
	case !bytes.Equal(plan.StartHash, declaredStart(spec)):
		return Refuse("plan.start_hash", fmt.Sprintf("%x", plan.StartHash),
			"%x, the snapshot that is declared as model.start", declaredStart(spec))
	case plan.Silos != silos(spec):
		return Refuse("plan.silos", plan.Silos, "%d, as declared", silos(spec))
	case plan.Delta > spec.Privacy.Delta:
		return Refuse("plan.delta", plan.Delta, "at most %v, as declared", spec.Privacy.Delta)
	case trust.HasOperators() && !declaredOperators(spec, a.Task):
		return Refuse("operators", fmt.Sprintf("%x and %x", a.Task.StageKey, a.Task.HelperKey),
			"leader and helper of privacy.operators, as declared")
	case spec.Grants.Needed() != manifest.HasGrants(a.Task) || !bytes.Equal(spec.IssuerKey.Bytes(), a.Task.IssuerKey):
		return Refuse("issuer_key", fmt.Sprintf("%d bytes", len(a.Task.IssuerKey)), "that of grants: pass, as declared")
	case a.policy.ForbidOneOperator && spec.Privacy.OneOperator():
		return Refuse("privacy.operators.one", true, "two operators, by forbid_one_operator in the policy")
	}
	a.HonestFraction = honest // a plan has to keep its own promise, whatever the policy would be content with
	if own := a.policy.HonestFraction; !a.Final && !own.IsZero() && own.Float() < honest.Float() {
		a.HonestFraction = own
	}
	a.assuming = assuming(spec, a.HonestFraction)
	return nil
}

// declaredOperators reports whether a task has the keys of both operators that its declaration names.
func declaredOperators(spec *task.Spec, t *wire.Task) bool {
	if spec.Privacy.Operators == nil {
		return false
	}
	leader, helper, ok := spec.Privacy.Operators.Keys()
	return ok && bytes.Equal(leader, t.StageKey) && bytes.Equal(helper, t.HelperKey)
}

// silos returns the number of organisations that report; 0 where users report for themselves.
func silos(spec *task.Spec) uint64 {
	if spec.Silo == nil {
		return 0
	}
	return uint64(spec.Silo.Count)
}

// declaredStart returns the hash of the snapshot that the task begins with; nil where it begins with none.
func declaredStart(spec *task.Spec) []byte {
	if spec.Model.Start == nil {
		return nil
	}
	hash, _ := spec.Model.Start.Hash()
	return hash[:]
}

// CheckDeclaration refuses a task if its declared part differs from the operator's own declaration.
func (a *Agreement) CheckDeclaration(spec *task.Spec) error {
	own, err := spec.Canonical()
	if err != nil {
		return fmt.Errorf("task file: %w", err)
	}
	if !bytes.Equal(own, a.Task.Declaration) {
		return Refuse("declaration", fmt.Sprintf("%x (hash)", stream.HashOf(a.Task.Declaration)),
			"%x, the hash of the given task file: %s", stream.HashOf(own),
			task.DifferenceText(task.Differences(own, a.Task.Declaration)))
	}
	return nil
}

// Units returns the number of units that a report is about: rows, or people.
func (a *Agreement) Units() uint64 { return max(1, a.Phases[0].Params.Units) }

// Rows returns the largest number of rows that a report is about, over all its units.
func (a *Agreement) Rows() uint64 {
	if !a.Spec.Privacy.ByUser() || a.Spec.User == nil {
		return a.Units()
	}
	return a.Units() * uint64(max(1, a.Spec.User.Items))
}

// Attempts returns to how many attempts at one round the device sends an event, and what further ones cost. Where somebody
// may have looked at the running totals of an attempt that died, a further report of the round would be seen once more:
// that is one attempt. Two operators release at most one attempt of a round, and a dead one shows nothing: there a
// further attempt costs a user nothing, and as many are answered as the policy says.
func (a *Agreement) Attempts() participation.Attempts {
	switch trust, err := manifest.Trust(a.Task.Plan.Trust); {
	case err != nil || trust.HasIntruder():
		return participation.Attempts{Most: 1}
	case trust.HasOperators():
		return participation.Attempts{Most: a.policy.attempts(), Alike: true}
	}
	return participation.Attempts{Most: math.MaxUint32}
}
