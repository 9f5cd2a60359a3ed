package tune

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/panlearn/panlearn/learner/task"
	"gonum.org/v1/gonum/stat"
)

// A Report is the outcome of a comparison.
type Report struct {
	Task       string      `json:"task"`
	Measure    string      `json:"measure"`
	Falls      bool        `json:"smaller_is_better"`
	Seeds      int         `json:"seeds"`
	Users      uint64      `json:"users"`
	Data       bool        `json:"data"` // whether the rows were data, rather than made up from the declaration
	Candidates []Candidate `json:"candidates"`
	Dropped    []dropped   `json:"dropped,omitempty"`
	// Best is the setting to take: the empty one unless another was better beyond the noise of the seeds.
	Best setting `json:"best"`
}

// A Candidate holds the results of one setting. Gains are paired: the same seeds, the same users, the same
// rows.
type Candidate struct {
	Set    setting `json:"set"`
	Mean   float64 `json:"mean"`
	SD     float64 `json:"sd"`
	Loss   float64 `json:"loss"`    // mean, in the coordinates of the feature map
	Gain   float64 `json:"gain"`    // over the task as it is; above 0 is better
	GainSD float64 `json:"gain_sd"` // of one seed's
	Better bool    `json:"better"`  // beyond the noise of the seeds
	Rounds uint64  `json:"rounds"`
}

// dropped is a setting that was not tried.
type dropped struct {
	Set    setting `json:"set"`
	Reason string  `json:"reason"`
}

func (c *comparison) report() Report {
	base := c.candidates[0]
	out := Report{Task: base.job.Spec.Name, Measure: c.measure.Name(), Falls: c.measure.Falls,
		Seeds: c.Seeds, Users: c.Cost().Users, Data: c.Rows.Data(), Dropped: c.dropped, Best: setting{}}
	for i, one := range c.candidates {
		line := Candidate{Set: one.setting, Loss: stat.Mean(one.losses, nil), Rounds: one.rounds}
		line.Mean, line.SD = stat.MeanStdDev(one.values, nil)
		line.Gain, line.GainSD = stat.MeanStdDev(c.measure.Gains(one.values, base.values), nil)
		line.Better = i > 0 && c.better(one)
		out.Candidates = append(out.Candidates, line)
	}
	if ranked := c.ranked(); len(ranked) > 0 {
		out.Best = ranked[0].setting
	}
	return out
}

// Print writes the table.
func (r Report) Print(w io.Writer) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "setting\trounds\t%s\tsd\tbetter by\tpaired sd\tloss\t\n", strings.ReplaceAll(r.Measure, "_", " "))
	for i, c := range r.Candidates {
		name, gain, sd, verdict := c.Set.short(), "", "", ""
		if i > 0 {
			gain, sd = fmt.Sprintf("%+.3g", c.gain()), fmt.Sprintf("%.2g", c.GainSD)
		}
		switch {
		case c.Better && c.Set.String() == r.Best.String():
			verdict = "better, taken"
		case c.Better:
			verdict = "better"
		}
		fmt.Fprintf(t, "%s\t%d\t%.4g\t%.2g\t%s\t%s\t%.4g\t%s\n", name, c.Rounds, c.Mean, c.SD, gain, sd, c.Loss, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, d := range r.Dropped {
		fmt.Fprintf(w, "not tried: %s: %s\n", d.Set.short(), d.Reason)
	}
	_, err := fmt.Fprintln(w, r.verdict())
	return err
}

// verdict returns the recommendation in a sentence.
func (r Report) verdict() string {
	if len(r.Best) == 0 {
		return fmt.Sprintf("best: the task as it is; nothing was better beyond the noise of %d seeds", r.Seeds)
	}
	text := "best:"
	for _, set := range r.Best.Sets() {
		text += " --set '" + set + "'"
	}
	return text
}

// Comment returns a comment for the head of a task file: what was compared, on what, and the verdict.
func (r Report) Comment(on string) string {
	text := fmt.Sprintf("learner tune compared by %s, over %d seeds of %d users, on %s:\n", strings.ReplaceAll(r.Measure,
		"_", " "), r.Seeds, r.Users, on)
	for _, c := range r.Candidates {
		text += fmt.Sprintf("  %.4g (sd %.2g)  %s\n", c.Mean, c.SD, c.Set.short())
	}
	text += "These rows must be public or paid for: the epsilon of the task does not cover the choice.\n"
	return text + r.verdict()
}

// short shows the setting, lists of crosses by their length, and columns by what becomes of how many.
func (s setting) short() string {
	if len(s) == 0 {
		return "as it is"
	}
	var parts []string
	kinds := map[string]int{}
	for _, set := range s.Sets() {
		key, value, _ := strings.Cut(set, "=")
		var column task.Column
		if json.Unmarshal([]byte(value), &column) == nil && column.Name != "" {
			what := string(column.Kind)
			if column.Scale != "" {
				what = "scale " + string(column.Scale)
			}
			kinds[what]++
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal([]byte(value), &list) == nil {
			value = fmt.Sprintf("%d of them", len(list))
		}
		if !strings.HasSuffix(key, ".hidden") {
			parts = append(parts, key+" = "+value)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("features.columns = %s for %s", what, count(kinds[what], "number")))
	}
	return strings.Join(parts, ", ")
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// gain returns Gain, or 0 where it is only a rounding error: sums of the same numbers in another order are
// compared.
func (c Candidate) gain() float64 {
	if math.Abs(c.Gain) < 1e-12*(math.Abs(c.Gain)+c.GainSD) {
		return 0
	}
	return c.Gain
}
