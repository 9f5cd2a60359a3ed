package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/panlearn/panlearn/learner/task/inspection"
)

// PrintInspection writes, as text for people, how data fit a task.
func PrintInspection(out io.Writer, r *inspection.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	share := func(n int) string { return fmt.Sprintf("%d (%.3g %%)", n, 100*float64(n)/float64(max(1, r.Rows))) }
	fmt.Fprintf(w, "%s: %s, invalid %s\n", r.Task, Count(r.Rows, "row"), share(r.Invalid))
	for _, bad := range r.First {
		where := fmt.Sprintf("line %d", bad.Line)
		if bad.File != "" {
			where += fmt.Sprintf(" of %q", bad.File)
		}
		if bad.Column != "" {
			where += fmt.Sprintf(", column %q", bad.Column)
		}
		fmt.Fprintf(w, "  %s: %s\n", where, bad.Reason)
	}
	fit := 0
	fmt.Fprintln(w, "\ncolumn\tinvalid\tclamped\tmissing\tunlisted")
	for _, c := range r.Columns {
		if c == (inspection.Column{Name: c.Name}) {
			fit++
			continue
		}
		fmt.Fprintf(w, "%.40q\t%s\t%s\t%s\t%s\n", c.Name, share(c.Invalid), share(c.Clamped), share(c.Missing),
			share(c.Unlisted))
	}
	fmt.Fprintf(w, "%d of %s\t0\t0\t0\t0\n", fit, Count(len(r.Columns), "column"))
	if len(r.Unknown) > 0 {
		fmt.Fprintf(w, "no event has the columns %q\n", r.Unknown)
	}
	n := r.Norms
	fmt.Fprintf(w,
		"\nnorms: half are up to %.4g, 90 %% up to %.4g, 99 %% up to %.4g, all up to %.4g; %.3g %% are above the bound %.4g and scaled down to it\n",
		n.P50, n.P90, n.P99, n.Max, 100*r.ClippedShare, r.NormBound)
	fmt.Fprintln(w, "\nlabel\trows")
	for _, name := range r.LabelNames {
		fmt.Fprintf(w, "%.40q\t%s\n", name, share(r.Labels[name]))
	}
	fmt.Fprintf(w, "\norder: the label's correlation with the position of the row is %.3f, with the label before it %.3f",
		r.OrderCorrelation, r.NeighbourCorrelation)
	if r.Ordered {
		fmt.Fprintf(w, "\n  %.0f standard deviations from random order: %s\n", r.Deviations, r.Advice)
	} else {
		fmt.Fprintln(w, "; that is no sign of an order")
	}
	return w.Flush()
}
