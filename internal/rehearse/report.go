package rehearse

import (
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A report is the JSON of `learner simulate`.
type report struct {
	Ran
	// Start is the snapshot that the task begins with, and what it costs; null: none.
	Start *Start `json:"start,omitempty"`
	// Grouping describes how reports were made of the rows; null if each is about one row.
	Grouping *grouping `json:"grouping,omitempty"`
	// HonestFraction is the share of every cohort on whose noise epsilon relies.
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	// Learned holds what the first cohorts of the first seed released; null in a proved plan.
	Learned *practical.Summary `json:"learned,omitempty"`
	Scores

	// Diverges describes models that are worse than Baseline, and what helps; absent if there are none.
	Diverges *diverged `json:"diverges,omitempty"`

	// Verdict compares the private models with others, in words; absent for a task without an end.
	Verdict *verdict `json:"verdict,omitempty"`
	// ManyPasses is about the same users in all rounds; absent where the task may not have that.
	ManyPasses *ManyPasses `json:"many_passes,omitempty"`

	Baselines []baseline `json:"baselines,omitempty"`
	// Online scores learners that are not private and follow the same rows in the order of the first seed; only for a
	// task without an end.
	Online  []Online `json:"online,omitempty"`
	Curve   []spot   `json:"curve,omitempty"` // of the runs, where a picture is drawn
	Measure string   `json:"curve_measure,omitempty"`

	shown    Measure // by the curves
	rounds   string  // in words
	assuming string  // see accounting.Trust.Assuming
}

// Ran describes the task that was run.
type Ran struct {
	Task      string  `json:"task"`
	Algorithm string  `json:"algorithm"`
	Rounds    uint64  `json:"rounds"` // taken; a continuous task takes as many as the data fill
	Cohort    uint64  `json:"cohort"`
	Base      uint64  `json:"base,omitempty"` // of a task without end: the smallest cohort
	Top       uint64  `json:"top,omitempty"`  // and the largest
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	Trust     string  `json:"trust"`
	Unit      string  `json:"unit"` // that epsilon protects, in words
	wording.Kind
}

// Scores hold what the private runs came to, beside the same method without noise and the best constant.
type Scores struct {
	Runs []Outcome `json:"runs"`
	Mean Outcome   `json:"mean"`
	SD   *Outcome  `json:"sd,omitempty"` // of one run, over the seeds; none for a single one
	// NonPrivate scores the same method without noise on the order of users of the first seed.
	NonPrivate Outcome `json:"non_private"`
	// Baseline scores the best constant for the training labels: the majority class, or the mean. See model.Baseline.
	Baseline Outcome `json:"baseline"`
}

// Print writes the report for people.
func (r report) Print(w io.Writer) error {
	if _, err := fmt.Fprintf(w,
		"%s: %s, %s\na real run    epsilon %s, delta %g%s\nprotects      %s\nprivate       %s%s\nbaseline      %s\n",
		r.Task, r.Algorithm, r.rounds, cli.Upper(r.Epsilon, 4), r.Delta, r.assuming, r.Unit, r.Mean, r.SD.spread(len(r.Runs)),
		r.Baseline); err != nil {
		return err
	}
	r.Start.Print(w)
	if err := wording.PrintLearned(w, r.Learned); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Baselines, func(b baseline) bool { return b.Name == baselineExact }) {
		if _, err := fmt.Fprintf(w, "not private   %s (first seed)\n", r.NonPrivate); err != nil {
			return err
		}
	}
	if err := r.ManyPasses.Print(w); err != nil {
		return err
	}
	for _, o := range r.Online {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", o.Name, o); err != nil {
			return err
		}
	}
	for _, b := range r.Baselines {
		if err := b.print(w); err != nil {
			return err
		}
	}
	if r.Verdict != nil {
		if _, err := fmt.Fprintf(w, "verdict       %s\n", r.Verdict.Text); err != nil {
			return err
		}
	}
	if r.Diverges != nil {
		_, err := fmt.Fprintf(w, "attention     %s\n", r.Diverges.Text)
		return err
	}
	return nil
}
