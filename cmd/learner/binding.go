package main

import (
	"fmt"
	"io"
	"math"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A binding describes what limits a plan, and what to change first. Norms are in the declared coordinates.
type binding struct {
	FeatureBound float64 `json:"feature_bound"` // X: norm of a feature vector, at most
	// norm of a gradient before the clip, at most; null where nothing bounds it
	GradientBound *float64 `json:"gradient_bound"`
	// null in a practical plan, whose rounds announce it, where the task sets none
	ClipNorm   *float64 `json:"clip_norm"`
	Smoothness *float64 `json:"smoothness"` // beta that the steps are made for; null where they need none
	// Step is the step parameter of the first phase of gradients: v of accelerated methods and lambda of prox, with
	// shorter steps the larger it is, or else the step size eta. A practical plan has none before the first cohort's
	// release.
	Step     *float64 `json:"step"`
	StepName string   `json:"step_name,omitempty"`
	// Term names the term that keeps the steps short: smoothness, clip_norm, sampling, noise or declared;
	// first_cohort in a practical plan.
	Term string `json:"term"`
	// MomentNoise is the standard deviation of the noise of one released moment of the first cohort; null in a proved
	// plan.
	MomentNoise *float64 `json:"moment_noise"`
	// RoundNoise is the norm of the noise of one round's mean gradient, and AllNoise the same for the mean over all users
	// or silos, in units of the clip norm.
	RoundNoise float64 `json:"round_noise"`
	AllNoise   float64 `json:"all_noise"`
	// Resolution is n/(s d), where s is the noise of one coordinate of a sum over all users in units of the clip norm;
	// with K classes it is n/(s d sqrt(K-1)), d being the coordinates of one. Below 1 a coordinate is mostly noise.
	Resolution float64 `json:"resolution"`
	Advice     string  `json:"advice"`
}

const (
	enough  = 8    // the resolution from which on noise does not limit the number of rounds
	blurred = 0.05 // the noise of a moment from which on the first cohort sees little of features of size 1
)

func bindingOf(job run.Job) binding {
	phase, first := manifest.Gradients(job.Plan), job.First()
	n, d := float64(job.Problem.Users), float64(manifest.Dim(job.Plan))
	std := job.Inflation() * first.Privacy.TotalStd() // of one coordinate of a round's mean
	out := binding{FeatureBound: job.Features.Bound(), RoundNoise: math.Sqrt(d) * std}
	all := std * gathered(job, phase) / n // of the mean of all, one coordinate
	out.AllNoise = all * math.Sqrt(d)
	classes := float64(job.Features.Outputs())
	out.Resolution = classes / (all * d * math.Sqrt(max(1, classes-1)))
	if l := job.Spec.Model.ClipNorm; l > 0 {
		out.ClipNorm = &l
	}
	if job.Problem.Practical != nil {
		noise := job.Plan.Phases[0].Mechanism.ClipNorm * job.Forecasts[0].Privacy.TotalStd()
		out.MomentNoise, out.Term = &noise, "first_cohort"
	} else {
		out.proved(job)
	}
	out.Advice = out.advice(job)
	return out
}

// gathered returns the factor from the noise of one coordinate of a round's mean to the noise of a sum over all units,
// as if all were in one round with all their answers. The noise of others hides a report, so that more reports add
// none, except under trust local.
func gathered(job run.Job, phase *wire.Phase) float64 {
	reports := float64(phase.Cohort)
	if job.Problem.Trust == accounting.Local {
		reporters := float64(job.Problem.Users)
		if silos := job.Plan.Silos; silos > 0 {
			reporters = float64(silos)
		}
		reports = math.Sqrt(reports * reporters)
	}
	return reports * float64(max(1, phase.Mechanism.Units)) / math.Sqrt(float64(manifest.RoundsPerUser(job.Plan)))
}

// proved fills in what the bounds of a proved plan make of the steps.
func (b *binding) proved(job run.Job) {
	phase, variance := manifest.Gradients(job.Plan), job.First().OracleVariance
	if g := job.Problem.Lipschitz; !math.IsInf(g, 0) {
		b.GradientBound = &g
	}
	l := min(job.Problem.ClipNorm, job.Problem.Lipschitz)
	b.Term = "noise"
	if l*l/float64(phase.Cohort) > variance/2 {
		b.Term = "sampling"
	}
	if a := phase.GetAcceleration(); a != nil {
		b.Step, b.StepName, b.Smoothness = &a.V, "v", &a.Smoothness
		if a.V <= 2*a.Smoothness*(1+1e-9) {
			b.Term = "smoothness"
		}
		return
	}
	if x := phase.GetProx(); x != nil {
		b.Step, b.StepName, b.Smoothness, b.Term = &x.Weight, "lambda", &job.Problem.Smoothness, "noise"
		if job.Problem.Prox.Weight > 0 {
			b.Term = "declared"
		}
		return
	}
	eta := phase.GetDescent().GetStepSize()
	if b.Step, b.StepName = &eta, "eta"; l*l > variance {
		b.Term = "clip_norm"
	}
}

// mostMeant is the largest epsilon without a warning: at 10, a guess with odds of one in 22,000 may become even.
const mostMeant = 10.

// advice returns, in words, what to change first, or that no setting needs a change.
func (b binding) advice(job run.Job) string {
	who := wording.Of(job.Plan).All()
	d, n, epsilon := manifest.Dim(job.Plan), who.Count(job.Problem.Users), job.Problem.Epsilon
	switch {
	case epsilon > mostMeant:
		return fmt.Sprintf(
			"epsilon %g promises next to nothing: a report may make a guess about its user e^%[1]g times as likely; "+
				"up to %g is a promise", epsilon, mostMeant)
	case b.Resolution < 1:
		return fmt.Sprintf(
			"%s are too few for %d coordinates at epsilon %g, each is mostly noise: fewer columns, a larger epsilon, or more %s",
			n, d, epsilon, who.Many)
	case b.Resolution < enough:
		return fmt.Sprintf("%s are few for %d coordinates at epsilon %g: fewer columns or a larger epsilon", n, d, epsilon)
	case b.MomentNoise != nil && *b.MomentNoise > blurred:
		return fmt.Sprintf(
			"the first round sees features through noise of %.2g: more %s, or, if your rows are shorter than %.3g, a norm_bound that says so",
			*b.MomentNoise, who.Many, job.Features.Longest())
	case b.Term == "smoothness":
		return fmt.Sprintf(
			"the longest row that may come, of norm %.3g, makes the steps short: if yours are shorter, half of it as norm_bound allows steps four times as long",
			job.Features.Longest())
	case b.Term == "clip_norm":
		return "the clip norm makes the steps short: learner tune compares others on public data"
	case b.GradientBound != nil && *b.GradientBound > 10*job.Problem.ClipNorm:
		return fmt.Sprintf(
			"a gradient of norm up to %.3g is clipped to %.3g: set norm_bound to what rows have, or a larger model.clip_norm; learner tune compares them",
			*b.GradientBound, job.Problem.ClipNorm)
	}
	return "no setting needs a change; learner tune compares settings on public data"
}

// termText describes each value of binding.Term: the larger term of the steps.
var termText = map[string]string{
	"smoothness": "the smoothness of the loss sets it", "clip_norm": "the clip norm sets it",
	"sampling": "sampling sets it", "noise": "privacy's noise sets it", "declared": "the task sets it",
}

func (b binding) print(w io.Writer, r planReport) {
	fmt.Fprintf(w, "binds         X = %.4g, the largest norm of a feature vector", b.FeatureBound)
	switch {
	case b.MomentNoise != nil:
		fmt.Fprintf(w, "; it makes noise of %.2g in each moment of the first round\n", *b.MomentNoise)
		fmt.Fprint(w,
			"              what that round releases sets coordinates, clip and steps; learner simulate tells them on public data")
	case b.GradientBound == nil:
		fmt.Fprintf(w, "; nothing bounds a gradient but the clip norm, %.4g", *b.ClipNorm)
	case r.Clips:
		fmt.Fprintf(w, "; gradients of norm up to %.4g are clipped to %.4g", *b.GradientBound, *b.ClipNorm)
	default:
		fmt.Fprintf(w, "; no gradient is clipped, all have norm at most %.4g", *b.GradientBound)
	}
	if b.Step != nil {
		fmt.Fprintf(w, "\n              %s = %.4g in %s: %s", b.StepName, *b.Step, cli.Count(*r.Rounds, "round"),
			termText[b.Term])
	}
	if b.Smoothness != nil {
		fmt.Fprintf(w, ", beta = %.4g", *b.Smoothness)
	}
	fmt.Fprintf(w, "\n              noise of norm %.3g of %s in the mean %s, %.3g in that of all\n", b.RoundNoise,
		r.clip(), r.meanOf(), b.AllNoise)
	fmt.Fprintf(w, "advice        %s\n", b.Advice)
}
