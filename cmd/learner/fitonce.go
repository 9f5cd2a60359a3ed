package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/wire"
)

// once plans a method that needs all rows at once; nil: the task's has rounds.
func (f *fitConfig) once(ctx context.Context, spec *task.Spec, s *rehearse.Rows) (*curated.Plan, error) {
	method := spec.Schedule.Algorithm
	if f.sized {
		return nil, cli.Usagef("--workers, --gap, --solver, --slack: of %s alone, with --public",
			strings.Join(publicMethods(), " and "))
	}
	if !spec.Schedule.Curated() {
		return nil, nil
	}
	if f.serve != "" {
		return nil, cli.Usagef("--http: not with %s, which shows nothing before its one release", method)
	}
	plan, err := curated.NewPlan(ctx, spec, f.persons(s))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, cli.Usage(err)
	}
	return &plan, nil
}

// persons groups the rows to learn from by the person they belong to. If rows are protected, each row is a person.
func (f *fitConfig) persons(s *rehearse.Rows) []oneplace.Person {
	if f.people == 0 {
		out := make([]oneplace.Person, len(s.Train))
		for i := range out {
			out[i] = s.Train[i : i+1 : i+1]
		}
		return out
	}
	out := make([]oneplace.Person, len(f.units))
	for i, u := range f.units {
		out[i] = u.Rows
	}
	return out
}

// A published is the part of the JSON output of `learner fit` about a method that needs all rows at once.
type published struct {
	Source string `json:"source"` // paper and theorem
	// NoiseStd is the standard deviation of the noise on one coordinate of the last release, in units of theta;
	// absent if the method's noise is not of this form.
	NoiseStd float64  `json:"noise_std,omitempty"`
	Halted   bool     `json:"halted"` // a test did not pass: the model is of Phase
	Phase    int      `json:"phase"`  // whose release the model is; 0: the public start
	Phases   int      `json:"phases"` // planned
	Least    int      `json:"least,omitempty"`
	Bound    *float64 `json:"bound"` // on the expected excess risk; null: none
	// OnRecords reports whether the bound is about the mean loss of the rows at hand, and not of new ones.
	OnRecords bool `json:"on_records"`
	// steps, or rounds of queries, that wait for the results of those before
	Depth int64 `json:"depth,omitempty"`
	// gradients of single rows in all of them; expected where they are sampled in secret
	Queries float64  `json:"queries,omitempty"`
	Largest int64    `json:"round_queries,omitempty"` // of the largest round
	Notes   []string `json:"notes,omitempty"`
	Better  string   `json:"better,omitempty"` // a simpler method that is expected to do better, in a sentence

	unit   wording.Noun
	public bool // nothing is protected
}

// printRelease prints what a method that needs all rows at once has released. It prints nothing for a task with
// rounds.
func printRelease(w io.Writer, s statedir.Status) error {
	r := s.Release
	if r == nil {
		return nil
	}
	model := "nothing is released yet: the model is the public start"
	switch {
	case r.Halted:
		model = fmt.Sprintf("halted, the model is of phase %d of %d", r.Phase, r.Phases)
	case r.Phase > 0:
		model = fmt.Sprintf("released after %s", cli.Count(r.Phases, "phase"))
	}
	_, err := fmt.Fprintf(w, "method        %s, %s: %s\n", r.Method, r.Source, model)
	return err
}

// publishedOf returns the release in a state folder; nil if its task has rounds.
func publishedOf(v statedir.View) *published {
	r := v.Release
	if r == nil {
		return nil
	}
	status, err := v.Status()
	if err != nil {
		return nil // printing goes on without it
	}
	return &published{Source: r.Source, NoiseStd: r.NoiseStd,
		Halted: r.Halted, Phase: r.Phase, Phases: r.Phases, Least: r.Least, Bound: r.Bound, OnRecords: r.OnRecords,
		Depth: r.Depth, Queries: r.Queries, Notes: r.Notes, Better: r.Baseline, unit: status.Kind.Unit()}
}

// how describes the method's course in a few words.
func (p *published) how() string {
	if p.public {
		return fmt.Sprintf("%s, %s", cli.Count(p.Depth, "round"), fmt.Sprintf("%.0f queries", p.Queries))
	}
	if p.Halted {
		return fmt.Sprintf("halted: the model is of phase %d of %d", p.Phase, p.Phases)
	}
	return cli.Count(p.Phases, "phase")
}

// String returns the lines printed beside epsilon.
func (p *published) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("method", "%s", p.Source)
	if p.NoiseStd > 0 {
		line("noise", "%.4g on each parameter of the last release, standard deviation", p.NoiseStd)
	}
	if p.Least > 0 {
		line("smallest n", "%s", p.unit.Count(uint64(p.Least)))
	}
	of := "new rows"
	if p.OnRecords {
		of = "these rows"
	}
	if p.Bound == nil {
		line("bound", "none on the excess risk that says anything")
	} else {
		line("bound", "%.3g on the expected excess risk on %s", *p.Bound, of)
	}
	for _, n := range p.Notes {
		line("", "%s", n)
	}
	if p.Depth > 0 && p.Largest > 0 {
		line("queries", "depth %d, %.0f in all, %.1f a round, at most %d", p.Depth, p.Queries, p.Queries/float64(p.Depth),
			p.Largest)
	} else if p.Depth > 0 {
		line("queries", "depth %d, about %.0f in all, %.1f a step", p.Depth, p.Queries, p.Queries/float64(p.Depth))
	}
	if p.Better != "" {
		line("better", "%s", p.Better)
	}
	return b.String()
}

// publicMethods lists the methods for data that need no protection.
func publicMethods() (names []string) {
	for _, m := range curated.Methods() {
		if m.Public {
			names = append(names, m.Name)
		}
	}
	return names
}

// oracleOnly refuses a method that adds noise where none is wanted.
func oracleOnly(method string) error {
	if m, known := curated.Of(method); known && !m.Public {
		return cli.Usagef("--public: %s adds noise: leave --public or the method out", method)
	}
	return nil
}

// runOracle minimises the loss of rows that need no protection by queries in parallel.
func (f *fitConfig) runOracle(c *cobra.Command, progress io.Writer, spec *task.Spec, s *rehearse.Rows) error {
	fmt.Fprintln(progress,
		"NO PRIVACY: --public learns without any noise; model and figures are for data that need no protection alone")
	workers := cmp.Or(int(f.workers), runtime.GOMAXPROCS(0))
	r, err := curated.Minimize(c.Context(), spec, s.Train, oneplace.Effort{Gap: f.gap, Workers: workers, Solver: f.solver,
		Slack: f.slack})
	if err != nil {
		if c.Context().Err() != nil {
			return err
		}
		return cli.Usage(err)
	}
	snapshot, err := released.Of(spec, r.Model)
	if err != nil {
		return err
	}
	plan := &wire.Plan{Algorithm: spec.Schedule.Algorithm, Silos: 1}
	snapshot.Round, snapshot.ModelVersion, snapshot.Ended = uint64(r.Depth), uint64(r.Depth), true
	snapshot.Probabilities = released.ProbabilitiesOf(spec, s.Loss.Lipschitz(s.Features.Bound()) > spec.ClipNorm())
	kind := wording.Of(plan)
	kind.Once = false
	snapshot.Privacy = released.Unprotected(kind)
	method, _ := curated.Of(plan.Algorithm)
	more := &published{public: true, Source: method.Source, Phase: 1, Phases: 1, OnRecords: true, Depth: r.Depth,
		Queries: float64(r.Queries), Largest: r.Largest}
	if !math.IsInf(r.Bound, 0) {
		more.Bound = &r.Bound
	}
	return f.print(c, s, snapshot, r.Model, plan, more)
}
