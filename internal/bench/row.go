package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Row is one figure beside its yardstick.
type Row struct {
	Group     string  `json:"group"`
	What      string  `json:"what"`
	Value     float64 `json:"value"` // median
	Unit      string  `json:"unit"`
	Yardstick string  `json:"yardstick,omitempty"` // what Ratio is over; empty: there is none
	Measured  float64 `json:"yardstick_value,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"` // median of the ratios of neighbours
	Low       float64 `json:"low,omitempty"`   // least of them
	High      float64 `json:"high,omitempty"`  // greatest
	Repeats   int     `json:"repeats"`
	Note      string  `json:"note,omitempty"`
	Target    *Target `json:"target,omitempty"`
}

// A Target is what a row is held to.
type Target struct {
	Text string `json:"text"`
	Met  bool   `json:"met"`
}

// newRow is a row without a yardstick.
func newRow(group, what, unit string, measured series) Row {
	return Row{Group: group, What: what, Value: measured.median(), Unit: unit, Repeats: len(measured)}
}

// beside adds a yardstick, measured in turns with the row.
func (r Row) beside(what string, measured, yardstick series) Row {
	ratios := measured.over(yardstick)
	r.Yardstick, r.Measured, r.Ratio = what, yardstick.median(), ratios.median()
	r.Low, r.High = slices.Min(ratios), slices.Max(ratios)
	return r
}

// atMost and atLeast hold v to a limit that text states.
func (r Row) atMost(text string, v, limit float64) Row {
	r.Target = &Target{Text: text, Met: v <= limit}
	return r
}

func (r Row) atLeast(text string, v, limit float64) Row {
	r.Target = &Target{Text: text, Met: v >= limit}
	return r
}

// figure prints three significant digits, never in exponents.
func figure(v float64) string {
	digits := 0
	for scaled := max(v, 1e-9); scaled < 100 && digits < 4; scaled *= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func (r Row) cells() []string {
	cells := []string{r.What, figure(r.Value) + " " + r.Unit, "", "", "", r.Note}
	if r.Yardstick != "" {
		cells[2] = figure(r.Ratio)
		cells[3] = figure(r.Low) + " to " + figure(r.High)
		cells[4] = fmt.Sprintf("%s: %s", r.Yardstick, figure(r.Measured))
	}
	if r.Target != nil {
		word := "MISSED"
		if r.Target.Met {
			word = "met"
		}
		if cells[5] != "" {
			cells[5] += "; "
		}
		cells[5] += r.Target.Text + ": " + word
	}
	return cells
}

func (rep Report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %d cores\n", rep.Go, rep.System, rep.Cores)
	if rep.Quick {
		fmt.Fprintln(w, "a quick run: these figures mean little")
	}
	groups := make(map[string][]Row)
	var order []string
	for _, r := range rep.Rows {
		if groups[r.Group] == nil {
			order = append(order, r.Group)
		}
		groups[r.Group] = append(groups[r.Group], r)
	}
	for _, group := range order {
		fmt.Fprintf(w, "\n%s\n", group)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "\tmedian\tratio\tleast to greatest\tyardstick\t")
		for _, r := range groups[group] {
			fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
