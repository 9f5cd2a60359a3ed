package main

import (
	"fmt"
	"io"
	"math"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/research/isrl"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// prescribed holds the parameters that the ISRL-DP paper prescribes for a task, beside those that are run (profile
// paper). Noise is per coordinate, in units of the clip norm.
type prescribed struct {
	*isrl.Prescription        // nil: no theorem covers the task
	Reason             string `json:"reason,omitempty"` // why none does
	Runs               ran    `json:"runs"`
	// Here is the noise of one report that the theorem prescribes for the rounds and the batch that are run, and Ratio its
	// ratio to the noise that is run; nil if the theorem prescribes none.
	Here  *float64 `json:"noise_per_report_here"`
	Ratio *float64 `json:"ratio"`
}

// ran holds the parameters that are run, in the terms of the theorems.
type ran struct {
	Rounds uint64 `json:"rounds"`
	Batch  uint64 `json:"batch"`
	// ReportNoise is MeanNoise times the root of the number of reports, so it includes the noise of others where that
	// counts.
	ReportNoise float64 `json:"noise_per_report"`
	MeanNoise   float64 `json:"noise_of_mean"`
}

// prescribe returns what the theorem prescribes for a task of profile paper of silos, or of users who answer many
// rounds; nil for other tasks.
func prescribe(job run.Job, r planReport) *prescribed {
	if job.Spec.Privacy.Profile != accounting.Paper || r.Silos == 0 && !job.Problem.Interactive {
		return nil
	}
	out := &prescribed{Runs: ran{Rounds: manifest.Planned(job.Plan), Batch: max(1, r.Privacy.Units),
		MeanNoise: r.scale * r.Privacy.NoiseStd}}
	out.Runs.ReportNoise = out.Runs.MeanNoise * math.Sqrt(float64(r.Cohort))
	method, _ := schedule.Of(r.Algorithm)
	trust := r.Privacy.Trust
	switch {
	case r.PredictedExcessRisk == nil:
		out.Reason = "the theorems are of plans that are proved, and this one is practical: schedule.plan=proved"
	case r.Protects == "user":
		out.Reason = "the theorems protect records, and this task protects people"
	case trust != accounting.Local && trust != accounting.Shuffle:
		out.Reason = fmt.Sprintf("the theorems are of trust local and shuffle, not %v", trust)
	case method.Name == "" || manifest.Gradients(job.Plan).Mechanism.Minimizer:
		out.Reason = fmt.Sprintf("no theorem of the paper is of %s", r.Algorithm)
	}
	if out.Reason != "" {
		return out
	}
	f, err := federationOf(job, r)
	if err == nil {
		var p isrl.Prescription
		if p, err = f.Prescribe(method.Accelerated, method.Interactive, trust == accounting.Shuffle); err == nil {
			out.Prescription = &p
			var here float64
			if here, err = f.At(p.Theorem, out.Runs.Rounds, out.Runs.Batch); err == nil && !math.IsNaN(here) {
				ratio := here / out.Runs.ReportNoise
				out.Here, out.Ratio = &here, &ratio
			}
		}
	}
	if err != nil {
		out.Reason = err.Error()
	}
	return out
}

// federationOf describes a task in the terms of the paper. A user is a silo of one record. The deviation of gradients
// is bounded by the clip norm, which always holds, unless silo.spread declares less. A loss that is smooth is so for the
// theorems, although the plan may ask for gradients of its envelope.
func federationOf(job run.Job, r planReport) (isrl.Federation, error) {
	p := job.Problem
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return isrl.Federation{}, err
	}
	f := isrl.Federation{Silos: float64(r.Users), Available: float64(r.Users), Records: 1, Dim: float64(p.Dim),
		Lipschitz: p.ClipNorm, Smoothness: p.Smoothness + p.Ridge, Convexity: p.Ridge, Diameter: 2 * set.Radius(),
		Gap: job.TrivialRisk, Deviation: p.ClipNorm, Spread: p.ClipNorm, Epsilon: p.Epsilon, Delta: p.Delta}
	if s := p.Silos; s.Count > 0 {
		f.Silos, f.Available, f.Records = float64(s.Count), float64(s.Reports), float64(s.Units)
		if s.Spread > 0 {
			f.Spread = math.Min(f.Spread, s.Spread)
		}
	}
	return f, nil
}

func (p *prescribed) print(w io.Writer) {
	if p == nil {
		return
	}
	if p.Prescription == nil {
		fmt.Fprintf(w, "paper         has nothing to print: %s\n", p.Reason)
		return
	}
	fmt.Fprintf(w,
		"paper         Theorem %s of Lowy and Razaviyayn would have %s, K = %d and %s; it is about %s\n              nothing of it is run: the plan above is, with what the accountant proves\n",
		p.Theorem, cli.Count(p.Rounds, "round"), p.Batch, noiseOf(p.ReportNoise, p.MeanNoise), p.Claims)
	for _, s := range []struct {
		name  string
		value *float64
	}{{"eta", p.Step}, {"v", p.Steepness}} {
		if s.value != nil {
			fmt.Fprintf(w, "              %s = %.4g, beta = %.4g\n", s.name, *s.value, p.Smoothness)
		}
	}
	if p.Stages > 0 {
		fmt.Fprintf(w, "              %s of its accelerated method, beta = %.4g\n", cli.Count(uint64(p.Stages), "stage"),
			p.Smoothness)
	}
	for _, c := range p.Conditions {
		met := "met"
		if !c.Met {
			met = "not met"
		}
		fmt.Fprintf(w, "              %s: %.4g and %.4g, %s\n", c.Text, c.Value, c.Bound, met)
	}
	if p.Epsilon != nil {
		fmt.Fprintf(w, "              such rounds really cost epsilon %s\n", between(*p.Epsilon))
	}
	if p.Ratio != nil {
		batch := p.Runs.Batch
		if p.Theorem == "5.1" { // which is of single records
			batch = 1
		}
		fmt.Fprintf(w,
			"              for the plan's own %s, K = %d: noise %.4g in one report, %.3g times the %.4g that runs\n",
			cli.Count(p.Runs.Rounds, "round"), batch, *p.Here, *p.Ratio, p.Runs.ReportNoise)
	}
}

func between(i isrl.Interval) string {
	if i.Lower == i.Upper {
		return cli.Upper(i.Upper, 3)
	}
	return fmt.Sprintf("%.3g to %s", i.Lower, cli.Upper(i.Upper, 3))
}

// noiseOf describes the noise of one report and of a round's mean.
func noiseOf(report, mean *float64) string {
	if report == nil || mean == nil {
		return "no noise that its lemmas prove"
	}
	return fmt.Sprintf("noise %.4g in one report, %.4g in the mean", *report, *mean)
}
