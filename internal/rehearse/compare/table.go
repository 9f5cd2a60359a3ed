package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/wording"
)

// A Table is the lines with what was predicted, and the one that is recommended.
type Table struct {
	Task    string `json:"task"`
	Measure string `json:"measure"` // as rehearse.Measure
	Falls   bool   `json:"smaller_is_better"`
	// Points describes the unit of Line.Behind in words.
	Points   string   `json:"points"`
	Seeds    int      `json:"seeds"`
	Data     bool     `json:"data"`      // whether the rows were data, rather than made up from the declaration
	Constant float64  `json:"constant"`  // what the best constant does
	Rows     int      `json:"rows"`      // of the task: what a line's would be if it took all
	DataRows int      `json:"data_rows"` // 0: none
	Lines    []Line   `json:"lines"`
	Reason   string   `json:"reason"` // for the line that is recommended, or why none is
	LeftOut  []string `json:"left_out"`
	// OnePlace are the methods of one process that has all rows: neither simulated nor recommended.
	OnePlace []Curated `json:"one_place"`
	People   int       `json:"units"` // that the task protects, in all
	units    wording.Noun
}

func (c *comparison) table() Table {
	out := Table{Task: c.base.Name, Measure: c.measure.Name(), Falls: c.measure.Falls, Points: "hundredths of accuracy",
		Seeds: c.Seeds, Data: c.Rows.Data(), Constant: stat.Mean(c.constants, nil), Rows: c.base.Schedule.Users * c.items(),
		LeftOut: c.leftOut, OnePlace: c.curated, People: people(c.base), units: unitsOf(c.base)}
	if c.measure.Falls {
		out.Points = "hundredths of the best constant's error"
	}
	shared := 0.0
	if public, ok := c.Rows.(rehearse.Public); ok {
		shared, out.DataRows = rehearse.Overlap, len(public.Rows)
	}
	k := float64(c.Seeds)
	within := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: k - 1}.Quantile(0.975) * math.Sqrt(1+1/k)
	for _, one := range c.lines {
		mean, sd := stat.MeanStdDev(one.values, nil)
		one.Predicted, one.PredictedWithin = mean, within*sd
		out.Lines = append(out.Lines, one.Line)
	}
	out.Reason = recommend(out.Lines, shared)
	if out.Constant == perfect[c.measure.Falls] {
		out.Reason = "nothing is recommended: the rows that were scored on have one label, so that the best constant makes no error"
	}
	return out
}

// perfect is the measure of a constant that makes no error, by whether smaller values are better.
var perfect = map[bool]float64{false: 1, true: 0}

// Print writes the table, and below it the recommendation, what was done, and what is left out.
func (t Table) Print(w io.Writer) error {
	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(rows, "  trust\treport of\tpasses\tmethod\trounds\tnoise\tbytes\t%s\tbehind\trisk proved\n", t.heading())
	for _, l := range t.Lines {
		fmt.Fprintf(rows, "%s %s\t%s\t%s\t%s\t%d\t%.2g\t%d\t%s\t%s\t%s\n", l.mark(), l.Trust, l.about, l.Passes, l.Algorithm,
			l.Rounds, l.NoiseStd, l.Bytes, t.fewer(l)+spread(l.Predicted, l.PredictedWithin), l.behind(), l.proved())
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	t.printBelow(w)
	return t.printOnePlace(w)
}

// adds returns who adds the noise.
func (l Line) adds() string {
	if l.Trust == place {
		return "one holder of all rows, whose learner fit runs these in one process"
	}
	return l.noise
}

// mark returns the sign in front of a line.
func (l Line) mark() string {
	switch {
	case l.Recommended:
		return "*"
	case !l.Keeps:
		return "x"
	case l.Unsure:
		return "?"
	}
	return " "
}

func (t Table) printBelow(w io.Writer) {
	fmt.Fprintln(w)
	note(w, "recommended", t.Reason)
	for _, l := range t.Lines {
		switch {
		case l.Recommended && len(l.Set) > 0:
			fmt.Fprintf(w, "              it is the task with --set '%s'\n", strings.Join(l.Set, "' --set '"))
		case l.Recommended:
			fmt.Fprintln(w, "              it is the task as it is")
		}
	}
	said := map[string]bool{}
	for _, l := range t.Lines {
		if !said[l.Trust] {
			note(w, l.Trust, fmt.Sprintf("noise is added by %s; trusted: %s", strings.TrimSuffix(l.adds(), " ("+l.Trust+")"),
				l.Trusted))
		}
		said[l.Trust] = true
	}
	rows := "made up from the declaration, other ones for every run, with labels of a planted model: a rough guide, --data FILE takes public ones"
	if t.Data {
		rows = fmt.Sprintf("the %d of the data, of which a fifth is held out to score on, another in every run", t.DataRows)
		if (rehearse.Holdout-1)*t.DataRows < rehearse.Holdout*t.Rows {
			rows += fmt.Sprintf("; the others are repeated: the task is of %d", t.Rows)
		}
	}
	note(w, t.heading(),
		fmt.Sprintf("%smean of %d runs; one more would fall within ±, 19 times of 20. The best constant has %.4g",
			t.whatever(), t.Seeds, t.Constant))
	note(w, "behind",
		fmt.Sprintf(
			"useless: no better than the best constant; else points (%s) behind the best line that protects what the task promises, ± two standard errors, of paired runs. "+
				"Recommended is, of the lines that are at most %.1f behind, the least trust, then the fewest rounds", t.Points,
			tolerance))
	note(w, "rows", rows)
	if fewest := t.fewest(); float64(fewest) < enough*float64(t.Rows) {
		note(w, "~",
			fmt.Sprintf(
				"a run took %d of the %d rows, or more, with noise of the size that is planned for all; with all it would learn more", fewest, t.Rows))
	}
	note(w, "noise",
		"standard deviation of one coordinate of the first mean gradient, in units of the clip norm; bytes: of all reports of one who answers most")
	if slices.ContainsFunc(t.Lines, func(l Line) bool { return l.OnRecords }) {
		note(w, "risk proved",
			"on rows: of the mean loss of those that take part; the others are of the population that rows are drawn from")
	}
	if slices.ContainsFunc(t.Lines, func(l Line) bool { return l.mark() == "?" }) {
		note(w, "?", "predicted better than the best constant by less than the seeds vary: it may learn nothing")
	}
	if slices.ContainsFunc(t.Lines, func(l Line) bool { return l.mark() == "x" }) {
		note(w, "x", "another unit than the task's is protected")
	}
	for _, text := range t.LeftOut {
		note(w, "not shown", text)
	}
}

// heading returns the measure's name, for the table and in front of the note on it.
func (t Table) heading() string {
	if t.Measure == "mean_absolute_error" {
		return "MAE"
	}
	return strings.ReplaceAll(t.Measure, "_", " ")
}

// whatever returns the meaning of a short heading, or "".
func (t Table) whatever() string {
	if t.heading() == "MAE" {
		return "mean absolute error, "
	}
	return ""
}

// width bounds the width of the printed text, in columns, except for overrides to copy.
const width = 120

// note writes a word and, beside it, the note on it.
func note(w io.Writer, word, text string) {
	line := fmt.Sprintf("%-13s", word)
	for _, next := range strings.Fields(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(next) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", 13)
		}
		line += " " + next
	}
	fmt.Fprintln(w, line)
}

// fewest returns the smallest number of rows that a run of a line took.
func (t Table) fewest() int {
	return slices.MinFunc(t.Lines, func(a, b Line) int { return cmp.Compare(a.Rows, b.Rows) }).Rows
}

// enough is the share of the task's rows that counts as all of them.
const enough = 0.9

// fewer marks a line that was predicted on fewer rows than the task's.
func (t Table) fewer(l Line) string {
	if float64(l.Rows) < enough*float64(t.Rows) {
		return "~"
	}
	return ""
}

// spread writes a number and what it varies by, with two digits of the latter.
func spread(mean, by float64) string {
	digits := 3
	if by > 0 {
		digits = int(min(6, max(0, 1-math.Floor(math.Log10(by)))))
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, by)
}

func (l Line) behind() string {
	text := fmt.Sprintf("%.1f ± %.1f", math.Round(10*l.Behind)/10+0, 2*l.BehindError) // + 0: no -0
	switch {
	case l.Vacuous:
		text = "useless"
	}
	return text
}

func (b Bound) proved() string {
	if b.Proved == nil {
		return "none"
	}
	if b.ProvedVacuous {
		return "says nothing"
	}
	text := fmt.Sprintf("%.3g", *b.Proved)
	if b.OnRecords {
		text += " on rows"
	}
	return text
}
