package dashboard

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// kinds returns the signs of what happened.
func (m marks) kinds() (out []Mark) {
	for _, k := range []struct {
		n    uint64
		mark Mark
	}{
		{m.Restarts, Mark{Kind: "restart", Name: "learner started again", Path: "M-4 0a4 4 0 1 1 8 0a4 4 0 1 1-8 0"}},
		{m.Reopened, Mark{Kind: "reopened", Name: "attempt opened again", Path: "M0 4L-4-3H4Z"}},
		{m.Void, Mark{Kind: "void", Name: "void round", Path: "M-3.5-3.5l7 7m0-7l-7 7"}},
		{m.Alarms, Mark{Kind: "alarm", Name: "the stream changed", Path: "M0-5L5 0L0 5L-5 0Z"}},
	} {
		if k.n > 0 {
			out = append(out, k.mark)
		}
	}
	return out
}

// text describes what happened since the point before; empty if nothing did.
func (m marks) text() string {
	var parts []string
	for _, p := range []struct {
		n         uint64
		one, many string
	}{{m.Restarts, "the learner was started again", "the learner was started again %d times"},
		{m.Reopened, "an attempt was opened again", "attempts were opened again %d times"},
		{m.Void, "a round was void", "%d rounds were void"},
		{m.Alarms, "the stream changed", "the stream changed %d times"}} {
		switch {
		case p.n == 1:
			parts = append(parts, p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf(p.many, p.n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Before it " + strings.Join(parts, ", ") + "."
}

// say describes a point in one line.
func (p plot) say(i int) string {
	var values []string
	for _, k := range p.curves {
		if !k.apart && finite(k.y[i]) {
			text := k.name + " " + p.format(k.y[i])
			if k.low != nil {
				text += fmt.Sprintf(" (%s to %s)", p.format(k.low[i]), p.format(k.high[i]))
			}
			values = append(values, text)
		}
	}
	out := p.names[i] + ": " + strings.Join(values, ", ") + "."
	if p.more != nil && p.more[i] != "" {
		out += " " + p.more[i]
	}
	if p.marks != nil {
		if text := p.marks[i].text(); text != "" {
			out += " " + text
		}
	}
	return out
}

// points returns a line for each point: its key, its place on the horizontal axis, each line's place on the vertical
// axis or -, and after a bar its description.
func (p plot) points(x, y axis) string {
	var out strings.Builder
	for i := range p.x {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "%s %g", strconv.FormatFloat(p.keys[i], 'f', -1, 64), x.at(p.x[i]))
		for _, k := range p.curves {
			switch {
			case k.apart:
			case finite(k.y[i]):
				fmt.Fprintf(&out, " %g", y.at(k.y[i]))
			default:
				out.WriteString(" -")
			}
		}
		out.WriteString("|" + p.say(i))
	}
	return out.String()
}

// list fills in the table of a chart: the newest points first.
func (c *Chart) list(p plot) {
	c.Head = []string{"Point"}
	for _, k := range p.curves {
		c.Head = append(c.Head, strings.ToUpper(k.name[:1])+k.name[1:])
		if k.low != nil {
			c.Head = append(c.Head, "Band of it")
		}
	}
	text := func(v float64) string {
		if !finite(v) {
			return "none"
		}
		return p.format(v)
	}
	for i := len(p.x) - 1; i >= max(0, len(p.x)-listed); i-- {
		row := []string{p.names[i]}
		for _, k := range p.curves {
			row = append(row, text(k.y[i]))
			if k.low != nil {
				row = append(row, text(k.low[i])+" to "+text(k.high[i]))
			}
		}
		c.Rows = append(c.Rows, row)
	}
}

// csv writes all points, with the columns that name them before the curves: lead has their heads, then a row for each
// point.
func (p plot) csv(w io.Writer, lead [][]string) error {
	out := csv.NewWriter(w)
	head := slices.Clone(lead[0])
	for _, k := range p.curves {
		name := strings.NewReplacer(" ", "_", ",", "").Replace(k.name)
		if head = append(head, name); k.low != nil {
			head = append(head, name+"_low", name+"_high")
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	number := func(v float64) string {
		if !finite(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	for i := range p.x {
		row := slices.Clone(lead[i+1])
		for _, k := range p.curves {
			if row = append(row, number(k.y[i])); k.low != nil {
				row = append(row, number(k.low[i]), number(k.high[i]))
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
