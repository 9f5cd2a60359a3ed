package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/task"
)

// unitsOf returns the word for the units that a task protects, where all rows are in one place.
func unitsOf(base *task.Spec) wording.Noun {
	kind := wording.Kind{Protects: "event"}
	if base.Privacy.ByUser() {
		kind.Protects = "user"
	}
	if base.Silo != nil {
		kind.Silos = 1
	}
	return kind.Unit()
}

// printOnePlace writes the table of the methods of one process.
func (t Table) printOnePlace(w io.Writer) error {
	if len(t.OnePlace) == 0 {
		return nil
	}
	fmt.Fprintf(w,
		"\nAll rows in one process, learner fit --algorithm: %s, by what is proved of them; none is simulated\n",
		t.units.Count(uint64(t.People)))
	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(rows, "  method\tfrom %s on\tpaper's\tless noise from\trisk proved\ta baseline is better\n", t.units.Many)
	var refused reasons
	for _, c := range t.OnePlace {
		fmt.Fprintf(rows, "  %s\t%d\t%s\t%s\t%s\t%s\n", c.Method, c.Least, or(c.PaperLeast, "-"), c.from(), c.proved(),
			c.better())
		if c.Refused != "" && c.Least <= t.People {
			refused.put(c.Method, strings.TrimPrefix(c.Refused, c.Method+": "))
		}
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	fmt.Fprintln(w)
	note(w, "from",
		"every group, batch and deletion exists; paper's: with the constants that it prints. It says nothing of accuracy")
	note(w, "less noise",
		fmt.Sprintf(
			"than one release of a minimiser or mean that takes %s as one row, from so many rows of each on, as different as the clip norm allows, "+
				"and for a loss no more curved than the objective; never: not with any number of rows", t.units.A()))
	note(w, "no method",
		"the practical plan, which learner fit runs without --algorithm, has no bound: what it is predicted to do stands above, in one place")
	for _, why := range refused.texts {
		if who := refused.lines[why]; len(who) < len(t.OnePlace) {
			why = strings.Join(who, ", ") + ": " + why
		}
		note(w, "not planned", why)
	}
	return nil
}

func or(n int, none string) string {
	if n == 0 {
		return none
	}
	return fmt.Sprint(n)
}

func (c Curated) from() string {
	switch {
	case c.method.Standing == oneplace.Baseline:
		return "is the baseline"
	case !c.Compared:
		return "-"
	case c.LessNoiseFrom == nil:
		return "never"
	}
	return fmt.Sprintf("%d rows each", *c.LessNoiseFrom)
}

func (c Curated) proved() string {
	if c.Refused != "" {
		return "not planned"
	}
	return c.Bound.proved()
}

func (c Curated) better() string {
	if c.Better == "" {
		return "-"
	}
	return fmt.Sprintf("%s, %.3g", c.Better, c.BetterProved)
}
