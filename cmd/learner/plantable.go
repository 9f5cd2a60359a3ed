package main

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// inBits describes what a coordinate of a report is made of.
func inBits(p accounting.Plan) string {
	if p.Trust.HasOperators() {
		return fmt.Sprintf("%s shared between two operators", cli.Count(uint64(bits.Len(uint(p.Levels))), "bit"))
	}
	return fmt.Sprintf("%d one-bit messages", p.BitsPerCoordinate)
}

// inBytes describes how long a report is, which is named where the words do not.
func inBytes(p accounting.Plan, named string) string {
	if p.Trust.HasOperators() {
		return fmt.Sprintf("%d bytes%s for the leader, %d for the helper, %d for both", p.ReportBytes, named, p.HelperBytes,
			p.PublicBytes)
	}
	return fmt.Sprintf("%d bytes%s", p.ReportBytes, named)
}

func (r planReport) print(w io.Writer) error {
	p := r.Privacy
	fmt.Fprintf(w, `task          %s: %s, %s in %s (none released under %d)
protects      %s
              from %s
%smechanism     d = %d, g = %d, b = %d, p = %.6g: %s a coordinate, %s
noise         %.4g of %s, standard deviation of one coordinate of the mean %s, rounding included
              central DP %.4g, local DP %.4g`, r.Task, r.Algorithm, r.all(), r.rounds, r.Minimum, r.Unit, r.Against, r.about(),
		r.Dim, p.Levels, p.Trials, p.P, inBits(p), inBytes(p, " a report"), r.scale*p.TotalStd(), r.clip(), r.meanOf(),
		r.Comparison.CentralNoiseStd, r.Comparison.LocalNoiseStd)
	if r.Comparison.PaperNoiseStd != nil {
		fmt.Fprintf(w, ", the constants of Cheu et al. %.4g", *r.Comparison.PaperNoiseStd)
	}
	if r.Top > 0 {
		r.printCohorts(w)
	}
	if r.Spare > 0 {
		fmt.Fprintf(w, "\nspare         %s of them: every round fills where so many report in vain or stay away",
			r.All().Count(r.Spare))
	}
	for i, m := range r.Moments {
		fmt.Fprintf(w, "\n%-14sin round %d, of %s: d = %d, g = %d, b = %d, p = %.6g, noise %.4g of their norm",
			[]string{"moments", "matrix"}[min(i, 1)], i+1, r.inRound(m.Cohort), m.Dim, m.G, m.B, m.P, m.NoiseStd)
	}
	if x := r.Prox; x != nil {
		fmt.Fprintf(w,
			"\nprox          a silo answers with the minimiser of its loss + (lambda/2)||. - c||^2, lambda = %.4g, c the announced point, less c: norm at most L/lambda = %.4g,\n"+
				"              by %s of gradient descent, each a pass over its rows: %d passes over a row in all", x.Weight, x.Norm,
			cli.Count(x.Steps, "step"), x.Passes)
	}
	if v := r.Validation; v != nil {
		apart := ""
		if r.PredictedExcessRisk != nil {
			apart = ", left out in the table's column"
		}
		fmt.Fprintf(w, "\nvalidation    %s on %s: %s more, noise %.1f %% larger (included above%s)",
			v.names(), r.scored(), cli.Count(uint64(v.Coordinates), "coordinate"), 100*(v.larger-1), apart)
	}
	switch {
	case r.PredictedExcessRisk == nil:
		fmt.Fprint(w, "\nexcess risk   no bound: a practical plan; schedule.plan=proved has one")
	case r.Vacuous:
		fmt.Fprintf(w,
			"\nexcess risk   at most %.4g in expectation (says nothing: the start has at most %.4g; the method may still learn, simulate tells)",
			*r.PredictedExcessRisk, *r.TrivialRisk)
	default:
		fmt.Fprintf(w, "\nexcess risk   at most %.4g in expectation", *r.PredictedExcessRisk)
	}
	if r.OnRecords {
		fmt.Fprint(w, ", on these records: the mean loss of those who report; with a ridge it would be of the population")
	}
	if r.Prox != nil && r.Prox.AnyDifference {
		fmt.Fprint(w, ", for silos that differ in any way: silo.spread says how much they do")
	}
	if r.AtMinimum != nil && r.Silos > 0 {
		fmt.Fprintf(w,
			"\n              that is if every report comes; with %d in every round, of silos that stay away at random, at most %.4g%s",
			r.Minimum, *r.AtMinimum, r.vacuous(*r.AtMinimum))
	}
	if r.PredictedExcessRisk != nil && r.Passes == "one" && r.Phases[0].Cohort < r.Silos {
		fmt.Fprintf(w,
			"\n              with the %d silos of a round taken as drawn at random for it; they come by turns, of which it is not proved", r.Phases[0].Cohort)
	}
	fmt.Fprintln(w)
	r.printTurnouts(w)
	r.printAdvice(w)
	r.Binding.print(w, r)
	r.printGuarantees(w)
	if delta := r.Privacy.Delta; delta*float64(r.Users) > 1 {
		fmt.Fprintf(w,
			"              delta %g is above 1/%s = %.2g: publishing %s drawn by lot would be within it; take far less\n",
			delta, r.All().Many, 1/float64(r.Users), r.One())
	}
	r.Prescribed.print(w)
	r.Start.Print(w)
	if r.PredictedExcessRisk == nil { // nothing to compare by
		return r.ManyPasses.Print(w)
	}
	fmt.Fprintln(w)
	if err := r.printAlternatives(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := r.printBaselines(w); err != nil || len(r.Orders) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return r.printOrders(w)
}

// all returns the number of users of a plan, or of units and silos, in words.
func (r planReport) all() string {
	all := r.All().Count(r.Users)
	if r.Rounds == nil {
		all = "a horizon of " + all
	}
	if r.Silos == 0 {
		return all
	}
	return fmt.Sprintf("%s of %s", all, r.Reporter().Count(r.Silos))
}

// about describes the content of a report, as a line; empty if it is one event, reported once.
func (r planReport) about() string {
	rounds := cli.Count(uint64(r.RoundsPerUser), "round")
	switch {
	case r.Silos > 0 && r.Interactive:
		return fmt.Sprintf(
			"reports       many passes: each about all that a silo has, at least %s; a silo answers up to %s; noise %.4g in one report\n",
			r.Kind.Unit().Count(r.Units), rounds, r.ReportNoise)
	case r.Silos > 0:
		return fmt.Sprintf("reports       one pass: each about %s that are in no other; noise %.4g in one report\n",
			r.Kind.Unit().Count(r.Units), r.ReportNoise)
	case r.Interactive:
		return fmt.Sprintf("reports       many passes: a user answers up to %s, always about %s; noise %.4g in one report\n",
			rounds, r.One(), r.ReportNoise)
	case r.Protects == "user" || r.Privacy.Trust == accounting.Local:
		return fmt.Sprintf("reports       one pass: each about %s; noise %.4g in one report\n", r.One(), r.ReportNoise)
	}
	return ""
}

// inRound returns n with the word for those who answer a round: users, or reports of silos.
func (r planReport) inRound(n uint64) string { return r.InRound().Count(n) }

// printCohorts prints, for a task without end, the sizes of its rounds, the amount of their noise and who adds it,
// and the most that one report can move.
func (r planReport) printCohorts(w io.Writer) {
	p := r.Privacy
	if r.Silos > 0 {
		fmt.Fprintf(w,
			"\ncohorts       of %d silos for ever, released with %d at least: the memory follows the stream, and they do not",
			r.Top, r.Base)
		return
	}
	fmt.Fprintf(w, "\ncohorts       of %d", r.Base)
	switch {
	case r.Top-r.Base > r.Top/10:
		fmt.Fprintf(w, " to %d, as the stream wants", r.Top)
	case r.Top > r.Base: // constant, and released where a tenth is missing
		fmt.Fprintf(w, " to %d", r.Top)
	}
	switch {
	case p.Trust == accounting.Local:
	case p.Trust.HasOperators():
		fmt.Fprint(w, "; each of the two operators adds noise that is enough alone")
	case p.Trials == 0:
		fmt.Fprint(w, "; all of their noise is the stage's")
	default:
		fmt.Fprintf(w, "; each is released with the noise of %d, of which the stage adds what is missing", r.Cohort)
	}
	if r.Top > r.Base || r.Cohort > r.Base {
		fmt.Fprintf(w, "\n              so a coordinate of the mean of %d has about %.3g of the clip norm of noise", r.Base,
			r.noiseOf(r.Base))
	}
	if r.Top > r.Base {
		fmt.Fprintf(w, ", and of the mean of %d about %.3g", r.Top, r.noiseOf(r.Top))
	}
	fmt.Fprintf(w,
		"\n              one report, whatever it says, moves a coordinate of the mean of %d by at most %.3g of the clip norm",
		r.Base, (1+float64(p.Trials)/float64(p.Levels))/float64(r.Base))
}

// noiseOf returns about the standard deviation of one coordinate of the mean gradient of so many users, with the
// noise that is planned for Cohort.
func (r planReport) noiseOf(users uint64) float64 {
	return r.scale * r.Privacy.TotalStd() * float64(r.Cohort) / float64(users)
}

// clip names the unit of noise.
func (r planReport) clip() string {
	if r.Prox != nil {
		return "L/lambda"
	}
	return "the clip norm"
}

// meanOf describes whose mean a round releases.
func (r planReport) meanOf() string {
	if r.Silos > 0 {
		return fmt.Sprintf("of a round's %d reports", r.Cohort)
	}
	return "gradient of " + r.inRound(r.Cohort)
}

// scored describes what validation scores.
func (r planReport) scored() string {
	switch {
	case r.Silos > 0:
		return fmt.Sprintf("every report's own %s", r.Row().Many)
	case r.Protects == "user":
		return "every user's own events"
	}
	return "every device's own event"
}

// printGuarantees prints once what does not rest on others: whatever holds without their noise, and one look of an
// intruder.
func (r planReport) printGuarantees(w io.Writer) {
	last := map[string]string{}
	for _, g := range r.Guarantees {
		whom := "the " + g.Adversary
		if r.Privacy.Trust == accounting.Local {
			whom = "everybody"
		}
		if g.Adversary == "operator" {
			whom = "the learner and one of the two operators, who see every round"
		}
		line := fmt.Sprintf("guarantee     %s against %s", g.text(), whom)
		switch {
		case g.Adversary == "operator":
		case r.Privacy.Trust.HasOperators():
			line += ", if both operators are honest"
		case g.Adversary != "intruder" || r.RoundsPerUser > 1:
			line += r.Privacy.Trust.Assuming(g.HonestFraction, r.Reporter().Many)
		}
		if last[g.Adversary] != line {
			fmt.Fprintln(w, line)
		}
		last[g.Adversary] = line
	}
}

func (s scores) names() string {
	if s.Correctness {
		return "loss and accuracy"
	}
	return "loss"
}

func (r planReport) printAdvice(w io.Writer) {
	if r.Useless != "" {
		fmt.Fprintf(w, "warning       %s\n", r.Useless)
	}
	if r.FewUsers != "" {
		fmt.Fprintf(w, "warning       %s\n", r.FewUsers)
	}
	if r.Vacuous {
		if r.UsersNeeded != nil {
			fmt.Fprintf(w, "warning       too few %s for the bound to promise anything: about %d would do\n", r.All().Many,
				*r.UsersNeeded)
		} else {
			fmt.Fprintf(w, "warning       the bound promises nothing, for any number of %s in reach\n", r.All().Many)
		}
	}
	if f := r.FewerReports; f != nil {
		fmt.Fprintf(w, "advice        with silo.reports=%d the bound is %.4g\n", f.Reports, f.PredictedExcessRisk)
	}
	if r.Why != "" {
		fmt.Fprintf(w, "why           %s\n", r.Why)
	}
	switch {
	case !r.Clips:
	case r.PredictedExcessRisk == nil:
		fmt.Fprintln(w, "clips         where the moments of the first round say, unless model.clip_norm does")
	default:
		fmt.Fprintln(w,
			"clips         yes: gradients can exceed the clip norm; the risk is of the convex surrogate with the cut gradient")
	}
}

func (g guarantee) text() string {
	if g.Epsilon == nil {
		return "no finite epsilon"
	}
	return fmt.Sprintf("epsilon %s, delta %g", cli.Upper(*g.Epsilon, 4), g.Delta)
}

// printAlternatives shows one line a plan, and one for each phase where there are several.
func (r planReport) printAlternatives(w io.Writer) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	columns := "learner's epsilon by honest share"
	if r.Privacy.Trust == accounting.Local {
		columns = "epsilon"
	}
	fmt.Fprintf(t, "algorithm\trounds\tcohort\tg\tb\tp\tnoise\tbits/%[1]s\tbytes/%[1]s\tanswers\trisk\t%s\n",
		r.Counted().One, columns)
	var refused []alternative
	for _, a := range r.Alternatives {
		if !a.Applies {
			refused = append(refused, a)
			continue
		}
		name, one := a.Algorithm, a.Phases[0]
		if a.Algorithm == r.Algorithm {
			name = "* " + name
		}
		risk := fmt.Sprintf("%.4g", a.PredictedExcessRisk)
		if a.OnRecords {
			risk += " on records"
		}
		risk += r.vacuous(a.PredictedExcessRisk)
		if len(a.Phases) == 1 {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%.4g\t%.3g\t%d\t%d\t%d\t%s\t%s\n", name, *one.Rounds, one.Cohort,
				one.G, one.B, one.P, one.NoiseStd, a.BitsPerUser, a.BytesPerUser, a.RoundsPerUser, risk, curveOf(a.Guarantees))
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t\t\t\t\t\t%d\t%d\t%d\t%s\t%s\n",
			name, a.Rounds, a.BitsPerUser, a.BytesPerUser, a.RoundsPerUser, risk, curveOf(a.Guarantees))
		for i, ph := range a.Phases {
			title := fmt.Sprintf("phase %d", i+1)
			if ph.Moments {
				title = "moments"
			}
			fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\t%.4g\t%.3g\t\t\t%d\t%.4g\t\n",
				title, *ph.Rounds, ph.Cohort, ph.G, ph.B, ph.P, ph.NoiseStd, ph.RoundsPerUser, ph.Risk)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, a := range refused {
		fmt.Fprintf(w, "not %s\n", a.Reason)
	}
	return nil
}

// vacuous returns the word for a bound that is no better than the start's risk; empty for other bounds.
func (r planReport) vacuous(risk float64) string {
	if r.TrivialRisk != nil && risk >= *r.TrivialRisk {
		return ", says nothing"
	}
	return ""
}

// curveOf describes the guarantee of each honest share, and that against the second adversary at the planned one.
func curveOf(lines []guarantee) string {
	var text, second string
	for _, g := range lines {
		epsilon := "none"
		if g.Epsilon != nil {
			epsilon = cli.Upper(*g.Epsilon, 3)
		}
		switch {
		case g.Adversary == "learner":
			text += fmt.Sprintf("%s: %s  ", g.HonestFraction, epsilon)
		case second == "":
			second = g.Adversary + " " + epsilon
		}
	}
	return text + second
}

func (r planReport) printBaselines(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "the same budget\talgorithm\trounds\tcohort\tnoise\trisk\tnoise from")
	for _, b := range r.Baselines {
		if b.Risk == nil {
			fmt.Fprintf(t, "%s\t%s\t\t\t\t\t%s\n", b.Name, b.Algorithm, b.Reason)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.3g\t%.4g%s\t%s\n", b.Name, b.Algorithm, *b.Rounds, *b.Cohort, *b.NoiseStd, *b.Risk,
			r.vacuous(*b.Risk), b.Mechanism)
	}
	return t.Flush()
}

// printOrders lists what theorems say of the kind of problem.
func (r planReport) printOrders(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "orders, no bounds: constants are 1, no logarithms\tvalue\tformula\ttheorem")
	for _, o := range r.Orders {
		fmt.Fprintf(t, "%s\t%.3g\t%s\t%s\n", o.Name, o.Value, o.Formula, o.Theorem)
	}
	return t.Flush()
}

// A guarantee bounds what one adversary learns about one unit.
type guarantee struct {
	Adversary      string              `json:"adversary"`
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	Epsilon        *float64            `json:"epsilon"` // null: no finite one
	Delta          float64             `json:"delta"`
}

// A guarantor asks the accountant once for the releases of each stint.
type guarantor struct {
	delta float64
	known map[string][]guarantee
}

// plan lists what holds for the users of every stint: a user takes part in one, in all of its phases, and the worst one
// counts.
func (g guarantor) plan(p planning.Proposal) ([]guarantee, error) {
	var out []guarantee
	for _, releases := range p.Stints() {
		lines, err := g.stint(releases)
		if err != nil {
			return nil, err
		}
		out = worst(out, lines)
	}
	return out, nil
}

// worst returns, line by line, the weaker of two lists for the same trust and planned share.
func worst(a, b []guarantee) []guarantee {
	if a == nil {
		return b
	}
	out := append([]guarantee(nil), a...)
	for i, line := range b { // every release has the same lines
		if have := out[i].Epsilon; have != nil && (line.Epsilon == nil || *line.Epsilon > *have) {
			out[i].Epsilon = line.Epsilon
		}
	}
	return out
}

// stint lists the adversaries, and what is left of the guarantee when fewer users add noise than was planned for.
func (g guarantor) stint(planned []accounting.Release) ([]guarantee, error) {
	key := fmt.Sprint(planned)
	if lines, ok := g.known[key]; ok {
		return lines, nil
	}
	first := planned[0] // of the same trust, users and share as the others
	var out []guarantee
	for _, honest := range []string{first.HonestFraction.String(), "0.9", "0.75", "0.5", "0.25"} {
		fraction, err := accounting.ParseFraction(honest)
		if err != nil {
			return nil, err
		}
		// Under trust local nobody is relied upon, under split no user, and there is one line.
		if fraction.Float() > first.HonestFraction.Float() || len(out) > 0 && (first.Trust == accounting.Local || first.Trust.HasOperators() ||
			out[0].HonestFraction.String() == fraction.String()) {
			continue
		}
		releases := slices.Clone(planned)
		for i := range releases {
			releases[i].HonestFraction = fraction
		}
		// Where the share is less than one user nobody's noise is relied upon, and nothing is promised.
		cost := accounting.Guarantee{Learner: math.Inf(1), Intruder: math.Inf(1), HasIntruder: first.Trust.HasIntruder()}
		if fraction.Floor(first.Users) > 0 {
			if cost, err = accounting.RepeatedEpsilon(1, [][]accounting.Release{releases}, g.delta); err != nil {
				return nil, err
			}
		}
		add := func(adversary string, epsilon float64) {
			line := guarantee{Adversary: adversary, HonestFraction: fraction, Delta: g.delta}
			if !math.IsInf(epsilon, 0) {
				line.Epsilon = &epsilon
			}
			out = append(out, line)
		}
		add("learner", cost.Learner)
		if adversary, epsilon := cost.Second(); adversary != "" {
			add(adversary, epsilon)
		}
	}
	g.known[key] = out
	return out, nil
}
