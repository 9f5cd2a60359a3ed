package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
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
	)
	c := &cobra.Command{
		Use:   "plan -f TASK",
		Short: "rounds, cohort, noise, guarantees and predicted risk of a task, for every algorithm",
		Long: `plan minimises each algorithm's risk bound over the number of rounds, with the accountant's real noise, and prints what
follows: before anybody has sent anything. Beside the algorithm of the task it shows all others that apply, and what the same
privacy budget would come to under local and under central differential privacy, and with the constants of the paper.`,
		Example: "  learner plan -f deploy/tasks/a9a.yaml --set privacy.epsilon=2 --plot risk.svg",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkPicture(picture); err != nil {
				return err
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			p, err := survey(job)
			if err != nil {
				return err
			}
			if picture != "" {
				if err := p.draw(picture); err != nil {
					return err
				}
			}
			return asJSON.Print(c.OutOrStdout(), p.report, p.report.print)
		},
	}
	f.Flags(c.Flags())
	asJSON.Flag(c.Flags())
	c.Flags().StringVar(&picture, "plot", "", "draw predicted risk over users, or the units of all silos, and over epsilon into `FILE` (.svg or .png)")
	return c
}

// A planReport is the JSON of `learner plan`.
type planReport struct {
	Task      string `json:"task"`
	Algorithm string `json:"algorithm"`
	Why       string `json:"why,omitempty"` // how `algorithm: auto` came to it
	wording.Kind
	Unit       string `json:"unit"`    // what is protected, in words
	Against    string `json:"against"` // from whom, in words
	Passes     string `json:"passes"`  // one: a unit is in one report; many: in every round that whoever has it answers
	Users      uint64 `json:"users"`   // with silos the units of all of them
	Rounds     uint64 `json:"rounds"`
	Cohort     uint64 `json:"cohort"`         // of the first phase of gradients, as all that follows up to Privacy
	LastCohort uint64 `json:"last_cohort"`    // of the last round: those of a practical plan grow
	Minimum    uint64 `json:"minimum_cohort"` // no round of the plan is released under it
	Dim        int    `json:"dim"`
	// RoundsPerUser is how many rounds a user answers at most.
	RoundsPerUser uint32          `json:"rounds_per_user"`
	Privacy       accounting.Plan `json:"privacy"` // its clip norm is that of what is encoded: with scores larger than the gradient's
	// ReportNoise is the standard deviation of one coordinate of one report's own noise, in units of the clip norm.
	ReportNoise float64 `json:"noise_per_report"`
	// Useless says why trust local without silos learns next to nothing; empty elsewhere.
	Useless string  `json:"useless,omitempty"`
	Phases  []phase `json:"phases"`

	// Validation is what is reported beside the gradient, and what it costs; null where nothing is.
	Validation *scores `json:"validation"`
	// Moments are the first cohorts of a practical plan, which report moments and no gradients.
	Moments []phase `json:"moments,omitempty"`

	PredictedExcessRisk *float64 `json:"predicted_excess_risk"` // a bound; null in a practical plan, which has none
	TrivialRisk         *float64 `json:"trivial_risk"`          // likewise
	Vacuous             bool     `json:"vacuous"`
	Clips               bool     `json:"clips"`
	// UsersNeeded is where the bound falls below the trivial risk, to a hundredth; null where it is there already, or nowhere in reach.
	UsersNeeded *uint64 `json:"users_needed"`

	Binding binding `json:"binding"`
	// Start is the snapshot that the task begins with; null where it begins with none.
	Start *planStart `json:"start"`

	Guarantees []guarantee `json:"guarantees"`
	// Comparison is the noise of other ways to spend the same (epsilon, delta) on one cohort, as noise_std is.
	Comparison   comparison        `json:"comparison"`
	Alternatives []alternative     `json:"alternatives"`
	Baselines    []plannedBaseline `json:"yardsticks"`

	rounds string  // in words
	scale  float64 // the mechanism's noise times this is in units of the clip norm of a row
}

// A scores is what progressive validation adds to a report.
type scores struct {
	convex.Scorecard
	Coordinates int     `json:"coordinates"`
	Inflation   float64 `json:"noise_inflation"` // what the noise of the gradient is multiplied by, against rows cut to the clip norm
	larger      float64 // the same by the scores alone, against people's means cut to their radius
}

// An alternative is what one algorithm would do, or why it does not apply.
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
	BytesPerUser  uint64          `json:"bytes_per_user"` // of the phase with most, all rounds together
	BitsPerUser   uint64          `json:"bits_per_user"`  // the same of d (g + b)
	Privacy       accounting.Plan `json:"privacy"`        // of the first phase of gradients

	PredictedExcessRisk float64     `json:"predicted_excess_risk"`
	Vacuous             bool        `json:"vacuous"`
	Guarantees          []guarantee `json:"guarantees"`
}

// A phase is what one series of rounds looks like.
type phase struct {
	Users         uint64  `json:"users"`
	Rounds        uint64  `json:"rounds"`
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
	Moments       bool    `json:"moments,omitempty"` // moments are reported, and no gradients; their norm is the unit of the noise
}

// phasesOf describes the phases of a proposal.
func phasesOf(p planning.Proposal) (out []phase) {
	for i, f := range p.Plan.Phases {
		of := p.Forecasts[i]
		out = append(out, phase{Users: f.Users, Rounds: f.Rounds, Cohort: f.Cohort, RoundsPerUser: uint64(f.RoundsPerUser), Units: max(1, of.Units), G: of.Privacy.Levels,
			B: of.Privacy.Trials, P: of.Privacy.P, NoiseStd: of.Privacy.NoiseStd, Smoothing: f.Smoothing, Risk: of.Risk, Dim: of.Privacy.Dim,
			Moments: f.Statistic != wire.Statistic_STATISTIC_GRADIENT})
	}
	return out
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
	CentralNoiseStd float64  `json:"central_noise_std"` // a trusted curator of the same units with the analytic Gaussian mechanism
	LocalNoiseStd   float64  `json:"local_noise_std"`   // every unit alone with the analytic Gaussian mechanism
	PaperNoiseStd   *float64 `json:"paper_noise_std"`   // the paper's closed-form constants; null where they do not apply
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
	out := planSurvey{job: job, report: planReport{Task: job.Spec.Name, Algorithm: p.Algorithm, Why: job.Why, Users: job.Problem.Users,
		Rounds: manifest.Planned(p), Cohort: first.Cohort, LastCohort: manifest.LastCohort(last), Minimum: first.Minimum, Dim: manifest.Dim(p), RoundsPerUser: manifest.RoundsPerUser(p),
		Privacy: job.First().Privacy, Vacuous: job.Vacuous, Clips: p.Clips}}
	for _, f := range p.Phases {
		out.report.Minimum = min(out.report.Minimum, f.Minimum)
	}
	out.report.Binding, out.report.Start, out.report.rounds = bindingOf(job), startOf(job), roundsOf(p, manifest.Planned(p))
	out.report.scale = job.Inflation()
	if card := job.Problem.Validation; card != nil {
		out.report.Validation = &scores{Scorecard: *card, Coordinates: card.Dim(), Inflation: job.Inflation(), larger: job.Inflation()}
		if radius := p.Radius; radius > 0 {
			out.report.Validation.larger /= radius
		}
	}
	out.report.of(job)
	for _, one := range out.report.Phases {
		if one.Moments {
			out.report.Moments = append(out.report.Moments, one)
		}
	}
	var err error
	if out.report.Comparison, err = compare(job); err != nil {
		return planSurvey{}, err
	}
	g := guarantor{accountant: job.Planner.Accountant(), delta: job.Problem.Delta, known: map[string][]guarantee{}}
	if job.Problem.Practical != nil {
		out.report.Guarantees, err = g.plan(job.Proposal)
		return out, err
	}
	out.report.PredictedExcessRisk, out.report.TrivialRisk = &job.ExcessRisk, &job.TrivialRisk
	if out.alternatives, err = job.Planner.Alternatives(job.Problem); err != nil {
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
	if out.baselines, err = job.Planner.Baselines(job.Problem, p.Algorithm); err != nil {
		return planSurvey{}, err
	}
	for _, b := range out.baselines {
		out.report.Baselines = append(out.report.Baselines, baselineOf(b))
	}
	if job.Vacuous {
		curve, err := job.Planner.Curve(job.Problem, job.Proposal)
		if err != nil {
			return planSurvey{}, err
		}
		if n, ok := curve.UsersNeeded(job.TrivialRisk); ok {
			out.report.UsersNeeded = &n
		}
	}
	return out, nil
}

// of fills in what is protected, from whom, and how a report hides it.
func (r *planReport) of(job run.Job) {
	kind := wording.Of(job.Plan)
	r.Kind, r.Unit, r.Against, r.Passes, r.Phases = kind, kind.Protected(), kind.Against(r.Privacy.Trust), "one", phasesOf(job.Proposal)
	if kind.Interactive {
		r.Passes = "many"
	}
	p := r.Privacy
	released := float64(p.Release().Noise().Released(p.Users))
	r.ReportNoise = job.Inflation() * p.NoiseStd * float64(p.Users) * math.Sqrt(float64(p.Trials)/released) // the floors' left out
	if p.Trust == accounting.Local && kind.Silos == 0 {
		r.Useless = fmt.Sprintf("trust local without silo is next to useless: a report about one %s has noise of norm %.3g, in units of the clip norm that no gradient "+
			"exceeds, and the mean of all %d reports still %.3g. Want a section silo, whose reports are about many records each, or trust shuffle",
			kind.Unit().One, math.Sqrt(float64(r.Dim))*r.ReportNoise, r.Users, r.Binding.AllNoise)
	}
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
	out.Applies, out.planned = true, &planned{Phases: phasesOf(a.Proposal), Rounds: manifest.Planned(a.Plan), RoundsPerUser: uint64(manifest.RoundsPerUser(a.Plan)),
		Privacy: a.First().Privacy, PredictedExcessRisk: a.ExcessRisk, Vacuous: a.Vacuous, Guarantees: lines}
	for i, f := range a.Plan.Phases {
		privacy, rounds := a.Forecasts[i].Privacy, uint64(f.RoundsPerUser)
		out.BytesPerUser = max(out.BytesPerUser, rounds*privacy.ReportBytes)
		out.BitsPerUser = max(out.BitsPerUser, rounds*privacy.BitsPerCoordinate*uint64(privacy.Dim))
	}
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

func compare(job run.Job) (comparison, error) {
	p := job.First().Privacy
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta})
	if err != nil {
		return comparison{}, err
	}
	n, times := float64(p.Users)*float64(max(1, p.Units)), math.Sqrt(float64(manifest.RoundsPerUser(job.Plan))) // every round of a user is paid for
	share := shareOf(job)
	out := comparison{CentralNoiseStd: 2 * times * share / (n * mu), LocalNoiseStd: 2 * times * share / (math.Sqrt(n) * mu)}
	if paper, err := run.PaperNoiseStd(job); err == nil {
		paper *= share
		out.PaperNoiseStd = &paper
	}
	return out, nil
}

// shareOf is the norm that a unit's gradient has at most, in units of the clip norm of a row: below 1 where it is the mean over a person's rows.
func shareOf(job run.Job) float64 {
	if job.Problem.Radius > 0 {
		return job.Problem.Radius
	}
	return 1
}
