package client

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// tolerance is the relative rounding that is forgiven where a bound is compared with a number that another program
// computed.
const tolerance = 1e-9

// Terms are a task that a policy agreed to. They are immutable but for the accountant's cache.
type Terms struct {
	Task      *wire.Task
	Hash      stream.Hash
	Spec      *task.Spec
	Features  *task.FeatureMap
	Loss      convex.Loss
	Set       convex.Set             // of points
	Scaling   *convex.Preconditioner // nil: features as they are
	Card      *convex.Scorecard      // how scores are reported after the gradient; nil: none
	Phases    []PhaseTerms           // of the plan, in order
	Guarantee accounting.Guarantee   // of the costliest phase, at Delta, with the honest fraction relied upon
	Delta     float64

	honest     accounting.Fraction // relied upon: the smaller of the policy's and the plan's own
	policy     Policy
	accountant *accounting.Accountant

	mu    sync.Mutex
	known map[accounting.Release]accounting.Guarantee // guarded by mu: rounds of one cohort cost the same
}

// PhaseTerms are what a policy agreed to in one phase. A user takes part in one phase alone.
type PhaseTerms struct {
	Params    randomizer.Params
	Loss      convex.Loss          // whose gradient is reported: the task's, or its Moreau envelope
	Moments   bool                 // the squares of the features are reported in place of a gradient
	Scores    int                  // of the coordinates, the last ones: what the point scores on the event
	Rounds    uint32               // that one user answers
	Guarantee accounting.Guarantee // of all of them together, for the phase's cohort
}

// CheckTask decides whether the device takes part in a task. The caller has verified the Task under the learner key
// that it names; hash is that of its body. Every refusal is a *RefusedError.
//
// The plan is not believed: epsilon is computed again from the mechanism, with the device's own honest fraction and
// delta, and must be within the policy's limit, or the task's declared budget where the policy has none.
func (p Policy) CheckTask(t *wire.Task, hash stream.Hash) (*Terms, error) {
	switch {
	case !p.allows(t.Name):
		return nil, refuse("task", t.Name, "one of the policy's tasks: %s", strings.Join(p.Tasks, ", "))
	case !p.TaskHash.accepts(hash[:]):
		return nil, refuse("task hash", fmt.Sprintf("%x", hash), "%v, which the policy pins", p.TaskHash)
	case !p.allowsHash(hash):
		return nil, refuse("task hash", fmt.Sprintf("%x", hash), "one of the %d that the policy's task_hashes list", len(p.TaskHashes))
	case !p.LearnerKey.accepts(t.LearnerKey):
		return nil, refuse("learner_key", fmt.Sprintf("%x", t.LearnerKey), "%v, which the policy pins", p.LearnerKey)
	case !p.StageKey.accepts(t.StageKey):
		return nil, refuse("stage_key", fmt.Sprintf("%x", t.StageKey), "%v, which the policy pins", p.StageKey)
	case t.Suite == wire.Suite_SUITE_NONE && !p.AllowPlaintext:
		return nil, refuse("suite", "none: reports would not be encrypted", "a task with privacy.seal hpke, or allow_plaintext in the policy")
	}
	if err := stream.Check(t); err != nil {
		return nil, refuse("task", "malformed: "+err.Error(), "a well-formed task")
	}
	if err := manifest.CheckTask(t); err != nil {
		return nil, refuse("plan", "not one that can run: "+err.Error(), "a consistent plan")
	}
	terms := &Terms{Task: t, Hash: hash, policy: p, accountant: accounting.NewAccountant(), known: make(map[accounting.Release]accounting.Guarantee)}
	if err := terms.declared(); err != nil {
		return nil, err
	}
	terms.Delta = t.Plan.Delta
	if p.MaxDelta > 0 {
		terms.Delta = min(terms.Delta, p.MaxDelta)
	}
	if err := terms.scaled(t.Plan); err != nil {
		return terms, err
	}
	for i, f := range t.Plan.Phases {
		agreed, err := terms.agree(fmt.Sprintf("plan.phases[%d]", i), f)
		if err != nil {
			return terms, err
		}
		terms.Phases = append(terms.Phases, agreed)
		if i == 0 || agreed.Guarantee.Epsilon > terms.Guarantee.Epsilon {
			terms.Guarantee = agreed.Guarantee
		}
	}
	return terms, nil
}

// scaled refuses a plan that asks for second moments where the declaration does not, or not of those who are declared.
func (t *Terms) scaled(plan *wire.Plan) error {
	first := plan.Phases[0]
	moments := first.Statistic == wire.Statistic_STATISTIC_SECOND_MOMENTS // of no other phase, as CheckTask knows
	switch {
	case moments != (t.Scaling != nil):
		return refuse("plan.phases[0].statistic", first.Statistic, "what features.precondition declares")
	case moments && first.Users != uint64(t.Spec.Features.Precondition.Users):
		return refuse("plan.phases[0].users", first.Users, "%d, as declared in features.precondition.users", t.Spec.Features.Precondition.Users)
	}
	return nil
}

// encoded are the dimension and the norm of what is reported in a phase, and how many of the coordinates are scores, as declared.
func (t *Terms) encoded(moments bool) (dim int, norm float64, scores int) {
	if moments {
		return t.Scaling.Dim, t.Scaling.Norm, 0
	}
	dim, norm = t.Loss.Parameters(t.Features.Dim()), t.Spec.Model.ClipNorm
	if t.Card == nil {
		return dim, norm, 0
	}
	return dim + t.Card.Dim(), t.Card.Joined(norm), t.Card.Dim()
}

// Reports says what the reports of a phase are of.
func (t *Terms) Reports(phase int) report.Config {
	of := t.Phases[phase]
	c := report.Config{Features: t.Features.Dim(), Loss: of.Loss, ClipNorm: t.Spec.Model.ClipNorm, Scaling: t.Scaling, Scores: of.Scores}
	if of.Moments {
		c.Statistic, c.ClipNorm = report.SecondMoments, t.Scaling.Norm
	}
	if of.Scores > 0 {
		c.Score = report.NewScorer(t.Features, *t.Card, t.Loss).Score
	}
	return c
}

// Valid says whether an example is an event of the task, as report.Config.Check. One that is not is reported as the zero vector.
func (t *Terms) Valid(x convex.Example) error {
	return report.Config{Features: t.Features.Dim(), Loss: t.Loss}.Check(x)
}

// agree decides about one phase.
func (t *Terms) agree(field string, f *wire.Phase) (PhaseTerms, error) {
	out := PhaseTerms{Rounds: f.RoundsPerUser, Moments: f.Statistic == wire.Statistic_STATISTIC_SECOND_MOMENTS}
	var err error
	if out.Params, err = manifest.Params(f.Mechanism); err != nil {
		return out, refuse(field+".mechanism", "not valid: "+err.Error(), "a valid mechanism")
	}
	if out.Loss, err = reported(t.Loss, f.Smoothing); err != nil {
		return out, refuse(field+".smoothing", fmt.Sprintf("%v: %v", f.Smoothing, err), "0, or one for which the loss has an envelope")
	}
	dim, norm, scores := t.encoded(out.Moments)
	out.Scores = scores
	switch {
	case out.Params.Dim != dim:
		return out, refuse(field+".mechanism.dim", out.Params.Dim, "%d, as declared", dim)
	case out.Params.ClipNorm != norm:
		return out, refuse(field+".mechanism.clip_norm", out.Params.ClipNorm, "%v, as declared", norm)
	case f.Mechanism.Scores != uint32(scores):
		return out, refuse(field+".mechanism.scores", f.Mechanism.Scores, "%d, as declared", scores)
	case f.Minimum < t.policy.MinCohort:
		return out, refuse(field+".minimum", f.Minimum, "at least %d, the policy's min_cohort", t.policy.MinCohort)
	case f.RoundsPerUser > t.policy.maxRoundsPerUser():
		return out, refuse(field+".rounds_per_user", f.RoundsPerUser, "at most %d, the policy's max_rounds_per_user", t.policy.maxRoundsPerUser())
	}
	out.Guarantee, err = t.afford(field, manifest.PhaseRound(t.Task.Plan, f), f.RoundsPerUser)
	return out, err
}

// reported is the loss whose gradient a device reports in a phase.
func reported(l convex.Loss, smoothing float64) (convex.Loss, error) {
	if smoothing == 0 {
		return l, nil
	}
	return convex.NewEnvelope(l, smoothing)
}

// declared checks the plan against the declaration, which is what people read.
func (t *Terms) declared() error {
	spec, err := task.ParseCanonical(t.Task.Declaration)
	if err != nil {
		return refuse("declaration", "not readable: "+err.Error(), "a canonical declaration of this version")
	}
	t.Spec = spec
	if t.Features, err = spec.Compile(); err != nil {
		return refuse("declaration", "not valid: "+err.Error(), "a valid declaration")
	}
	if t.Loss, err = spec.Loss(); err != nil {
		return refuse("declaration: model.loss", spec.Model.Loss, "a loss that this program knows")
	}
	if t.Set, err = spec.Set(t.Loss.Parameters(t.Features.Dim())); err != nil {
		return refuse("declaration: model.set", spec.Model.Set, "a set that this program knows")
	}
	t.Scaling = spec.Preconditioner()
	if t.Card, err = spec.Scorecard(t.Features); err != nil {
		return refuse("declaration: validation", "not valid: "+err.Error(), "a valid one")
	}
	plan := t.Task.Plan
	trust, err := manifest.Trust(plan.Trust)
	if err != nil {
		return refuse("plan.trust", plan.Trust, "a trust that this program knows")
	}
	honest, err := manifest.HonestFraction(plan)
	if err != nil {
		return refuse("plan.honest_fraction", fmt.Sprintf("%q", plan.HonestFraction), "an exact fraction in (0, 1]")
	}
	sealed := "hpke"
	if t.Task.Suite == wire.Suite_SUITE_NONE {
		sealed = "none"
	}
	switch {
	case spec.Name != t.Task.Name:
		return refuse("declaration: name", spec.Name, "%s, as in the task", t.Task.Name)
	case plan.Loss != spec.Model.Loss:
		return refuse("plan.loss", fmt.Sprintf("%q", plan.Loss), "%s, as declared", spec.Model.Loss)
	case trust.String() != spec.Privacy.Trust:
		return refuse("plan.trust", trust, "%s, as declared", spec.Privacy.Trust)
	case honest.String() != spec.Privacy.HonestFraction:
		return refuse("plan.honest_fraction", honest, "%s, as declared", spec.Privacy.HonestFraction)
	case sealed != spec.Privacy.Seal:
		return refuse("suite", t.Task.Suite, "what privacy.seal declares: %s", spec.Privacy.Seal)
	case plan.EpsilonBudget > spec.Privacy.Epsilon:
		return refuse("plan.epsilon_budget", plan.EpsilonBudget, "at most %v, as declared", spec.Privacy.Epsilon)
	case plan.Delta > spec.Privacy.Delta:
		return refuse("plan.delta", plan.Delta, "at most %v, as declared", spec.Privacy.Delta)
	}
	t.honest = honest // a plan has to keep its own promise, whatever the policy would be content with
	if own := t.policy.HonestFraction; !own.IsZero() && own.Float() < honest.Float() {
		t.honest = own
	}
	return nil
}

// CheckRound decides whether the device takes part in a round of its task. The caller has verified the Round under the
// task's learner key; known is the manifest hash of a round of this number that the device joined, nil if none.
func (t *Terms) CheckRound(r *wire.Round, hash stream.Hash, known *stream.Hash) error {
	field := func(name string) string { return fmt.Sprintf("round %d: %s", r.Round, name) }
	if err := stream.Check(r); err != nil {
		return refuse(field("message"), "malformed: "+err.Error(), "a well-formed round")
	}
	// Follows has the mechanism, trust, loss, cohort, minimum and deadline be those of the plan, and so of the pinned hash.
	if err := manifest.Follows(t.Task, t.Hash, r); err != nil {
		return refuse(field("parameters"), "not the task's: "+err.Error(), "what the task fixes")
	}
	if known != nil && *known != hash {
		return refuse(field("manifest hash"), fmt.Sprintf("%x", hash), "%x, which this device answered before", *known)
	}
	at, _ := manifest.PhaseOf(t.Task.Plan, r.Step) // it follows, so there is one
	own := t.Phases[at.Index]
	if dim := own.Params.Dim - own.Scores; len(r.Point) != dim && !at.Moments() { // a round of moments has no point
		return refuse(field("point"), fmt.Sprintf("%d values", len(r.Point)), "%d", dim)
	}
	if t.Scaling != nil && !at.Moments() {
		if err := t.Scaling.CheckScales(r.Scales); err != nil {
			return refuse(field("scales"), err.Error(), "those that moments and the declared damping can give")
		}
	}
	norm := convex.Norm(r.Point)
	if math.IsNaN(norm) || norm > t.Set.Radius()*(1+tolerance) {
		return refuse(field("point"), fmt.Sprintf("of norm %v", norm), "finite, of norm at most %v, the radius of the set", t.Set.Radius())
	}
	if r.Minimum < t.policy.MinCohort {
		return refuse(field("minimum"), r.Minimum, "at least %d, the policy's min_cohort", t.policy.MinCohort)
	}
	_, err := t.afford(fmt.Sprintf("round %d", r.Round), r, at.Phase.RoundsPerUser)
	return err
}

// checkOrder refuses a round that no honest learner announces after another: steps come one after the other, a void round
// repeats its step, and in an interactive phase, where all rounds count, it does not. Scales stay as they are once they are known.
func (t *Terms) checkOrder(old, r *wire.Round) error {
	at, _ := manifest.PhaseOf(t.Task.Plan, old.Step)
	least := old.Step
	if at.Interactive() {
		least++
	}
	switch most := old.Step + (r.Round - old.Round); {
	case r.Round <= old.Round:
		return nil // the same, or one that nobody looks at any more
	case r.Step < least || r.Step > most:
		return refuse(fmt.Sprintf("round %d: step", r.Round), r.Step, "%d to %d, after step %d in round %d", least, most, old.Step, old.Round)
	case len(old.Scales) > 0 && !slices.Equal(old.Scales, r.Scales):
		return refuse(fmt.Sprintf("round %d: scales", r.Round), "others", "those of round %d", old.Round)
	}
	return nil
}

// afford computes what a round costs one user who answers as many like it, and compares it with the limit.
func (t *Terms) afford(what string, r *wire.Round, rounds uint32) (accounting.Guarantee, error) {
	plan := t.Task.Plan
	limit, source := plan.EpsilonBudget, "the task's budget"
	if t.policy.MaxEpsilon > 0 {
		limit, source = t.policy.MaxEpsilon, "the policy's max_epsilon"
	}
	var g accounting.Guarantee
	release, err := manifest.Release(r, t.honest, rounds)
	if err == nil {
		g, err = t.guarantee(release, limit)
	}
	if err != nil {
		return g, refuse(what, "not accountable: "+err.Error(), "parameters that the accountant covers")
	}
	if !(g.Epsilon <= limit*(1+tolerance)) {
		return g, refuse(what+": epsilon",
			fmt.Sprintf("%v at delta %v, if a share %v of users is honest", g.Epsilon, t.Delta, t.honest),
			"at most %v, %s", limit, source)
	}
	return g, nil
}

// maxKnown bounds what is remembered; a phase has two cohorts, the last one and the others'.
const maxKnown = 2 * stream.MaxPhases

// guarantee is what a release costs, by the accountant of this device. limit is always the same.
func (t *Terms) guarantee(release accounting.Release, limit float64) (accounting.Guarantee, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, known := t.known[release]
	if known {
		return g, nil
	}
	g, err := t.accountant.ReleaseEpsilon(release, t.Delta)
	// The search for epsilon may stop a digit above a limit that delta, evaluated at the limit, shows to hold.
	if f, failed := t.accountant.ReleaseDelta(release, limit); failed == nil && f.Delta <= t.Delta {
		g.Epsilon = min(g.Epsilon, limit)
	}
	if err == nil && len(t.known) < maxKnown {
		t.known[release] = g
	}
	return g, err
}

// CheckDeclaration refuses terms whose declared part is not the one that the operator has at hand.
func (t *Terms) CheckDeclaration(spec *task.Spec) error {
	own, err := spec.CanonicalFor(t.Task.Declaration)
	if err != nil {
		return fmt.Errorf("task file: %w", err)
	}
	if !bytes.Equal(own, t.Task.Declaration) {
		return refuse("declaration", fmt.Sprintf("%x (hash)", stream.HashOf(t.Task.Declaration)),
			"%x, the hash of the given task file: %s", stream.HashOf(own), task.DifferenceText(task.Differences(own, t.Task.Declaration)))
	}
	return nil
}
