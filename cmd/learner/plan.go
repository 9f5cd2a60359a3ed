package main

import (
	"cmp"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

func newPlan() *cobra.Command {
	var (
		f       taskFlags
		asJSON  cli.JSON
		picture string
		others  choosing
		asked   turnouts
	)
	c := &cobra.Command{
		Use:   "plan -f TASK [--compare [--data FILE]]",
		Short: "rounds, cohort, noise, guarantees and predicted risk of a task, for every algorithm",
		Long: `plan computes, before anybody has sent anything, what a task costs and what it can learn.
It minimises each algorithm's risk bound over the number of rounds, with the accountant's
real noise. Beside the algorithm of the task it prints all others that apply, and what the
same privacy budget achieves under local and under central differential privacy, and with
the constants of Cheu, Joseph, Mao and Peng.

With --compare it prints one table to choose from: which party adds the noise (each user
alone, all users together, the stage, one central place), what a report is about, one pass
or many, and which method. Each is planned as a run would be, and simulated with the same
seeds on rows made up from the declaration, or on the public rows of --data. Among the
lines that protect what the task promises, it considers those predicted at most 0.3 points
behind the best, and recommends the one that needs the least trust, then the fewest
rounds. It prints the reason.`,
		Example: `  learner plan -f deploy/tasks/a9a.yaml --set privacy.epsilon=2 --plot risk.svg
  learner plan -f deploy/tasks/silos.yaml --compare`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := validatePicture(picture); err != nil {
				return err
			}
			if err := cmp.Or(others.validate(c, picture), asked.validate(c, others.on)); err != nil {
				return err
			}
			if others.on {
				table, err := others.table(c, f)
				if err != nil {
					return err
				}
				return asJSON.Print(c.OutOrStdout(), table, table.Print)
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			told, err := asked.answer(job)
			if err != nil {
				return err
			}
			p, err := survey(job)
			if err != nil {
				return err
			}
			p.report.planTurnouts = told
			if picture != "" {
				if err := p.draw(picture); err != nil {
					return err
				}
			}
			return asJSON.Print(c.OutOrStdout(), p.report, p.report.print)
		},
	}
	f.flags(c.Flags())
	asJSON.Flag(c.Flags())
	others.flags(c)
	asked.flags(c)
	c.Flags().StringVar(&picture, "plot", "",
		"draw the predicted risk over users (or the units of all silos) and over epsilon into `FILE` (.svg or .png)")
	return c
}

// A planReport is the JSON of `learner plan`.
type planReport struct {
	planTask
	planRounds
	planCosts
	ManyPasses *rehearse.ManyPasses `json:"many_passes,omitempty"` // absent where the task may not have it
	Phases     []phase              `json:"phases"`

	// Validation describes the scores reported beside the gradient, and their cost; null if none are.
	Validation *scores `json:"validation"`
	// Moments are the first cohorts of a practical plan, which report moments and no gradients.
	Moments []phase `json:"moments,omitempty"`

	// Prox describes the minimisers that silos report instead of gradients; null if they report gradients.
	Prox *proxAnswer `json:"prox,omitempty"`

	planRisk
	planTurnouts
	Binding binding `json:"binding"`
	// Start is the snapshot that the task begins with; null where it begins with none.
	Start *rehearse.Start `json:"start"`

	Guarantees []guarantee `json:"guarantees"`
	// Prescribed is null unless the task is of profile paper, and of silos or interactive.
	Prescribed *prescribed `json:"prescribed"`
	// Comparison is the noise of other ways to spend the same (epsilon, delta) on one cohort, as noise_std is.
	Comparison   comparison        `json:"comparison"`
	Alternatives []alternative     `json:"alternatives"`
	Baselines    []plannedBaseline `json:"yardsticks"`
	// Orders holds what theorems say, constants and logarithms left out: no bounds.
	Orders []planning.Order `json:"orders,omitempty"`

	rounds string  // in words
	scale  float64 // the mechanism's noise times this is in units of the clip norm of a row
}

// A planTask describes what is planned and protected.
type planTask struct {
	Task      string `json:"task"`
	Algorithm string `json:"algorithm"`
	Why       string `json:"why,omitempty"` // how `algorithm: auto` came to it
	wording.Kind
	Unit    string `json:"unit"`    // what is protected, in words
	Against string `json:"against"` // from whom, in words
	Passes  string `json:"passes"`  // one: a unit is in one report; many: in each round that its user or silo takes part in
	Users   uint64 `json:"users"`   // with silos the units of all of them; of a task without end the horizon
	Spare   uint64 `json:"spare"`   // of Users, those whom no round's cohort needs
}

// A planRounds describes the rounds and the cohorts of a plan.
type planRounds struct {
	// Continuous is the continuous schedule of a task without an end; absent for others.
	Continuous string `json:"continuous,omitempty"`
	// Rounds is the number of planned rounds, or of the horizon's rounds in a task without end; null if cohorts
	// follow the stream and the number is unknown.
	Rounds     *uint64 `json:"rounds"`
	Cohort     uint64  `json:"cohort"`         // of the first phase of gradients, as all that follows up to Privacy
	LastCohort uint64  `json:"last_cohort"`    // of the last round: cohorts of a practical plan grow
	Minimum    uint64  `json:"minimum_cohort"` // no round of the plan is released under it
	// Base and Top are the smallest and the largest cohort of a task without end, whose noise is planned for Cohort;
	// absent for others.
	Base uint64 `json:"base,omitempty"`
	Top  uint64 `json:"top,omitempty"`
	Dim  int    `json:"dim"`
	// RoundsPerUser bounds the rounds that one user takes part in.
	RoundsPerUser uint32 `json:"rounds_per_user"`
}

// A planCosts describes the noise of a plan, and warns where it hides what is to be learned.
type planCosts struct {
	Privacy accounting.Plan `json:"privacy"` // see paid; its clip norm is of the encoded vector, scores included
	// ReportNoise is the standard deviation of one coordinate of one report's own noise, in units of the clip norm.
	ReportNoise float64 `json:"noise_per_report"`
	// Useless explains why trust local without silos learns next to nothing; empty elsewhere.
	Useless string `json:"useless,omitempty"`
	// FewUsers holds the warning that the start, or a constant, may be the better model; empty where users are enough.
	FewUsers string `json:"few_users,omitempty"`
}

// A planRisk bounds what a plan comes to.
type planRisk struct {
	PredictedExcessRisk *float64 `json:"predicted_excess_risk"` // a bound; null in a practical plan, which has none
	TrivialRisk         *float64 `json:"trivial_risk"`          // likewise
	// AtMinimum is the bound if no round has more than its minimum cohort, a random part of those who would answer; null
	// where it has none, as without a bound or where every report is waited for.
	AtMinimum *float64 `json:"predicted_excess_risk_at_minimum"`
	// OnRecords reports whether the bound is about the mean loss of those who report, and not about the population's.
	OnRecords bool `json:"on_records,omitempty"`
	Vacuous   bool `json:"vacuous"`
	Clips     bool `json:"clips"`
	// FewerReports is a silo.reports with a smaller bound; absent where none has.
	FewerReports *fewerReports `json:"fewer_reports,omitempty"`
	// UsersNeeded is the number of users from which on the bound is below the trivial risk, to a hundredth; null if
	// it is below already, or for no number in reach.
	UsersNeeded *uint64 `json:"users_needed"`
}

// A fewerReports is a number of silos in a round, below the task's, and the bound of a plan with it.
type fewerReports struct {
	Reports             uint64  `json:"reports"`
	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
}

// A scores describes what progressive validation adds to a report.
type scores struct {
	convex.Scorecard
	Coordinates int `json:"coordinates"`
	// what the noise of the gradient is multiplied by, against rows cut to the clip norm
	Inflation float64 `json:"noise_inflation"`
	larger    float64 // the same by the scores alone, against people's means cut to their radius
}

// A proxAnswer describes the answer of a silo in a round of prox.
type proxAnswer struct {
	Weight   float64 `json:"weight"`    // lambda
	StepSize float64 `json:"step_size"` // of the gradient descent
	Steps    uint64  `json:"steps"`     // of it, each a pass over the rows of the block
	Passes   uint64  `json:"passes"`    // over a row, in all rounds that it is in
	// L/lambda: how far an answer is from the announced point, at most; noise is in units of it
	Norm float64 `json:"norm"`
	// AnyDifference reports whether the bound is for silos that differ in any way; silo.spread would declare by how
	// much they do.
	AnyDifference bool `json:"any_difference"`
}

func proxOf(job run.Job) *proxAnswer {
	f := manifest.Gradients(job.Plan)
	x := f.GetProx()
	if x == nil {
		return nil
	}
	return &proxAnswer{Weight: x.Weight, StepSize: x.StepSize, Steps: uint64(x.Steps),
		Passes: uint64(x.Steps) * uint64(f.RoundsPerUser), Norm: f.Mechanism.ClipNorm,
		AnyDifference: job.Problem.Silos.Spread == 0 && job.Plan.Silos > 1}
}

// An alternative describes the plan of one algorithm, or why the algorithm does not apply.
type alternative struct {
	Algorithm string `json:"algorithm"`
	Applies   bool   `json:"applies"`
	Reason    string `json:"reason,omitempty"` // why it does not
	*planned
}

type planned struct {
	Phases        []phase         `json:"phases"`
	Rounds        uint64          `json:"rounds"`
	RoundsPerUser uint64          `json:"rounds_per_user"`
	BytesPerUser  uint64          `json:"bytes_per_user"` // of who sends most, all rounds together
	BitsPerUser   uint64          `json:"bits_per_user"`  // the same of d (g + b)
	Privacy       accounting.Plan `json:"privacy"`        // see paid

	PredictedExcessRisk float64     `json:"predicted_excess_risk"`
	OnRecords           bool        `json:"on_records,omitempty"`
	Vacuous             bool        `json:"vacuous"`
	Guarantees          []guarantee `json:"guarantees"`
}

// A phase describes one series of rounds.
type phase struct {
	Users         uint64  `json:"users"`
	Rounds        *uint64 `json:"rounds"` // as of planReport
	Cohort        uint64  `json:"cohort"`
	RoundsPerUser uint64  `json:"rounds_per_user"`
	Units         uint64  `json:"units_per_report"`
	G             int     `json:"g"`
	B             uint64  `json:"b"`
	P             float64 `json:"p"`
	NoiseStd      float64 `json:"noise_std"` // of one coordinate, rounding left out, in units of the encoded norm
	Smoothing     float64 `json:"smoothing"` // 0: the loss itself
	Risk          float64 `json:"risk"`      // bound at its end
	Dim           int     `json:"d"`
	// moments are reported, and no gradients; their norm is the unit of the noise
	Moments bool `json:"moments,omitempty"`
}

// phasesOf describes the phases of a proposal.
func phasesOf(p planning.Proposal) (out []phase) {
	for i, f := range p.Plan.Phases {
		of := p.Forecasts[i]
		out = append(out, phase{Users: f.Users, Rounds: known(f.Rounds, f), Cohort: f.Cohort,
			RoundsPerUser: uint64(f.RoundsPerUser), Units: max(1, of.Units), G: of.Privacy.Levels,
			B: of.Privacy.Trials, P: of.Privacy.P, NoiseStd: of.Privacy.NoiseStd, Smoothing: f.Smoothing, Risk: of.Risk,
			Dim:     of.Privacy.Dim,
			Moments: f.Statistic != wire.Statistic_STATISTIC_GRADIENT})
	}
	return out
}

// known returns the number of rounds of a phase, or of the plan that ends with it; nil if cohorts follow the stream.
func known(rounds uint64, last *wire.Phase) *uint64 {
	if last.Top > 0 {
		return nil
	}
	return &rounds
}

// A plannedBaseline is another way to spend the same budget, by the same bounds; numbers are null where it has no plan.
type plannedBaseline struct {
	Name      string   `json:"name"`
	Mechanism string   `json:"mechanism"`
	Algorithm string   `json:"algorithm,omitempty"`
	Rounds    *uint64  `json:"rounds"`
	Cohort    *uint64  `json:"cohort"`
	NoiseStd  *float64 `json:"noise_std"` // of one coordinate of a round's mean, in units of the clip norm
	Risk      *float64 `json:"predicted_excess_risk"`
	Reason    string   `json:"reason,omitempty"` // why there is no plan
}

type comparison struct {
	// a trusted curator of the same units with the analytic Gaussian mechanism
	CentralNoiseStd float64  `json:"central_noise_std"`
	LocalNoiseStd   float64  `json:"local_noise_std"` // every unit alone with the analytic Gaussian mechanism
	PaperNoiseStd   *float64 `json:"paper_noise_std"` // the paper's closed-form constants; null where they do not apply
}

// A planSurvey is the report with the plans behind it.
type planSurvey struct {
	job          run.Job
	report       planReport
	alternatives []planning.Alternative
	baselines    []planning.Baseline
}

// survey plans everything there is to compare.
func survey(job run.Job) (planSurvey, error) {
	p, first := job.Plan, manifest.Gradients(job.Plan)
	last := first
	if p.Practical != nil { // whose cohorts grow from phase to phase
		last = p.Phases[len(p.Phases)-1]
	}
	out := planSurvey{job: job, report: planReport{
		planTask: planTask{Task: job.Spec.Name, Algorithm: p.Algorithm, Why: job.Why, Users: job.Problem.Users,
			Spare: manifest.Spare(p)},
		planRounds: planRounds{Continuous: job.Problem.Continuous, Rounds: known(manifest.Planned(p), last),
			Cohort: first.Cohort, LastCohort: manifest.LastCohort(last), Minimum: first.Minimum, Dim: manifest.Dim(p),
			RoundsPerUser: manifest.RoundsPerUser(p)},
		planCosts: planCosts{Privacy: paid(job.Proposal)},
		planRisk:  planRisk{OnRecords: job.OnRecords, Vacuous: job.Vacuous, Clips: p.Clips}}}
	for _, f := range p.Phases {
		out.report.Minimum = min(out.report.Minimum, f.Minimum)
	}
	if first.Top > 0 {
		out.report.Base, out.report.Top = first.Minimum, first.Top
	}
	out.report.Binding, out.report.Start, out.report.rounds = bindingOf(job), rehearse.StartOf(job), wording.Planned(p)
	out.report.scale, out.report.Prox = job.Inflation(), proxOf(job)
	if card := job.Problem.Validation; card != nil {
		out.report.Validation = &scores{Scorecard: *card, Coordinates: card.Dim(), Inflation: job.Inflation(),
			larger: job.Inflation()}
		if radius := p.Radius; radius > 0 {
			out.report.Validation.larger /= radius
		}
	}
	out.report.of(job)
	out.report.FewUsers, out.report.ManyPasses = rehearse.FewUsers(job), rehearse.ManyPassesOf(job)
	for _, one := range out.report.Phases {
		if one.Moments {
			out.report.Moments = append(out.report.Moments, one)
		}
	}
	var err error
	if out.report.Comparison, err = comparisonOf(job); err != nil {
		return planSurvey{}, err
	}
	g := guarantor{delta: job.Problem.Delta, known: map[string][]guarantee{}}
	if job.Problem.Practical != nil {
		out.report.Prescribed = prescribe(job, out.report)
		out.report.Guarantees, err = g.plan(job.Proposal)
		return out, err
	}
	out.report.PredictedExcessRisk, out.report.TrivialRisk = &job.ExcessRisk, &job.TrivialRisk
	if least, ok := job.Problem.AtMinimum(job.Proposal); ok && first.Minimum < first.Cohort && !math.IsInf(least, 1) {
		out.report.AtMinimum = &least
	}
	if m, risk, ok := job.Problem.FewerReports(job.Proposal); ok {
		out.report.FewerReports = &fewerReports{m, risk}
	}
	out.report.Prescribed = prescribe(job, out.report)
	if out.alternatives, err = job.Problem.Alternatives(); err != nil {
		return planSurvey{}, err
	}
	for _, a := range out.alternatives {
		one, err := alternativeOf(a, g)
		if err != nil {
			return planSurvey{}, err
		}
		out.report.Alternatives = append(out.report.Alternatives, one)
	}
	if out.report.Guarantees, err = g.plan(job.Proposal); err != nil {
		return planSurvey{}, err
	}
	if out.baselines, err = job.Problem.Baselines(p.Algorithm); err != nil {
		return planSurvey{}, err
	}
	for _, b := range out.baselines {
		out.report.Baselines = append(out.report.Baselines, baselineOf(b))
	}
	out.report.Orders = job.Problem.Orders()
	if job.Vacuous {
		curve, err := job.Problem.Curve(job.Proposal)
		if err != nil {
			return planSurvey{}, err
		}
		if n, ok := curve.UsersNeeded(job.TrivialRisk); ok && n > job.Problem.Users {
			// a bound for silos that differ can grow with their rows
			out.report.UsersNeeded = &n
		}
	}
	return out, nil
}

// of fills in what is protected, from whom, and how a report hides it.
func (r *planReport) of(job run.Job) {
	kind := wording.Of(job.Plan)
	r.Kind, r.Unit, r.Against, r.Passes, r.Phases = kind, kind.Protected(), kind.Against(r.Privacy.Trust), "one",
		phasesOf(job.Proposal)
	if kind.Interactive {
		r.Passes = "many"
	}
	p := r.Privacy
	released := float64(p.Release().Noise().Released(p.Users))
	// the floors' left out
	r.ReportNoise = job.Inflation() * p.NoiseStd * float64(p.Users) * math.Sqrt(float64(p.Trials)/released)
	if p.Trust == accounting.Local && kind.Silos == 0 {
		r.Useless = fmt.Sprintf(
			"trust local without silo is next to useless: a report about one %s has noise of norm %.3g, in units of the clip norm that no gradient "+
				"exceeds, and the mean of all %d reports still %.3g. Want a section silo, whose reports are about many records each, or trust shuffle",
			kind.Unit().One, math.Sqrt(float64(r.Dim))*r.ReportNoise, r.Users, r.Binding.AllNoise)
	}
}

// paid returns the accounting of the first phase of gradients, with the rounds and the epsilon of all phases that the
// same users answer.
func paid(p planning.Proposal) accounting.Plan {
	out := p.First().Privacy
	for i := range p.Plan.Phases {
		at := manifest.Costliest(p.Plan, i)
		if at.Phase == manifest.Gradients(p.Plan) && at.Stint.Phases > 1 && out.ProvedEpsilon != nil {
			out.RoundsPerUser, out.Epsilon, out.ProvedEpsilon = int(at.Stint.Rounds), p.Plan.Epsilon, &p.Plan.Epsilon
		}
	}
	return out
}

func alternativeOf(a planning.Alternative, g guarantor) (alternative, error) {
	out := alternative{Algorithm: a.Method}
	if a.Err != nil {
		out.Reason = a.Err.Error()
		return out, nil
	}
	lines, err := g.plan(a.Proposal)
	if err != nil {
		return alternative{}, err
	}
	out.Applies, out.planned = true, &planned{Phases: phasesOf(a.Proposal),
		Rounds: manifest.Planned(a.Plan), RoundsPerUser: uint64(manifest.RoundsPerUser(a.Plan)), Privacy: paid(a.Proposal),
		PredictedExcessRisk: a.ExcessRisk, OnRecords: a.OnRecords, Vacuous: a.Vacuous, Guarantees: lines}
	out.BytesPerUser = a.Sent(func(of accounting.Plan) uint64 { return of.ReportBytes })
	out.BitsPerUser = a.Sent(func(of accounting.Plan) uint64 { return of.BitsPerCoordinate * uint64(of.Dim) })
	return out, nil
}

func baselineOf(b planning.Baseline) plannedBaseline {
	out := plannedBaseline{Name: b.Name, Mechanism: b.Mechanism, Algorithm: b.Method}
	if b.Err != nil {
		out.Reason = b.Err.Error()
		return out
	}
	out.Rounds, out.Cohort, out.NoiseStd, out.Risk = &b.Rounds, &b.Cohort, &b.NoiseStd, &b.Risk
	return out
}

func comparisonOf(job run.Job) (comparison, error) {
	p := job.First().Privacy
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta})
	if err != nil {
		return comparison{}, err
	}
	// every round of a user is paid for
	n, times := float64(p.Users)*float64(max(1, p.Units)), math.Sqrt(float64(manifest.RoundsPerUser(job.Plan)))
	share := shareOf(job)
	out := comparison{CentralNoiseStd: 2 * times * share / (n * mu),
		LocalNoiseStd: 2 * times * share / (math.Sqrt(n) * mu)}
	if paper, err := run.PaperNoiseStd(job); err == nil {
		paper *= share
		out.PaperNoiseStd = &paper
	}
	return out, nil
}

// shareOf returns the largest norm of a unit's gradient, in units of the clip norm of a row: below 1 if it is the
// mean over a person's rows.
func shareOf(job run.Job) float64 {
	if job.Problem.Radius > 0 {
		return job.Problem.Radius
	}
	return 1
}
