package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Where the plot lies in the drawing, which the template makes 440 by 164.
const (
	plotLeft, plotRight = 46.0, 428.0
	plotTop, plotBottom = 16.0, 138.0
)

// A Chart is a figure of lines over one axis, with its text alternative. Its template draws it as SVG, of which the
// style sheet sets all colours.
type Chart struct {
	ID, Title string
	Note      string // below the title
	Summary   string // the text for a reader who does not see the lines
	Empty     string // shown instead of a drawing that has no points yet
	Cut       string // what the vertical axis leaves out; empty: nothing
	Series    []Series
	Marks     []Mark
	Signs     []Mark // one of each kind in Marks, for the legend
	X, Y      []Tick
	AxisX     string
	Points    string   // what is said of each point, for a pointer or a keyboard; see plot.points
	Newest    string   // the last of it
	Head      []string // of the table
	Rows      [][]string
}

// A Series is one line of a chart, or the whole of one with its band. Paths are SVG path data.
type Series struct {
	Name string
	Kind string // class of the style sheet: one, or two, which is dashed
	Line string
	Band string  // empty: none
	X, Y float64 // of the last point
}

// A Mark is an event at a place of the horizontal axis.
type Mark struct {
	At, Shift  float64 // Shift moves the sign aside from others
	Kind, Name string  // Kind is a class of the style sheet
	Path       string  // of its sign, around (0, 0)
}

// A curve is a line of a plot: a value for each point, NaN where there is none.
type curve struct {
	name      string
	y         []float64
	low, high []float64 // of the band; nil: none
	apart     bool      // of table and CSV alone
}

// A plot holds the points that a chart draws, lists and exports as CSV.
type plot struct {
	x      []float64
	keys   []float64 // a number for each point that stays its own while others come: a round, or a time
	names  []string  // of the points, for people
	more   []string  // said of them besides; nil: nothing
	marks  []marks   // nil: none
	curves []curve
	format func(float64) string
	label  func(v, step float64) string // of the vertical axis
	zero   bool                         // it begins at 0
	cut    bool                         // it leaves out what few points have
}

// listed is the number of points in a chart's table: the newest, the last first.
const listed = 12

// draw fills in the drawing of a chart, what is said of its points, and its table.
func (c *Chart) draw(p plot) {
	c.list(p)
	left, right, some := spread(p.x)
	low, high, any := p.extent()
	if !some || !any {
		return
	}
	marks, step := ticks(low, high, 4)
	y := axis{marks[0], marks[len(marks)-1], plotBottom, plotTop}
	for _, v := range marks {
		c.Y = append(c.Y, Tick{y.at(v), p.label(v, step)})
	}
	x := axis{left, right, plotLeft, plotRight}
	marks, step = ticks(left, right, 5)
	for _, v := range marks {
		if v >= left && v <= right && (step >= 1 || right-left < 1) {
			c.X = append(c.X, Tick{x.at(v), axisLabel(v, step)})
		}
	}
	if left == right {
		c.X = []Tick{{x.at(left), axisLabel(left, 1)}}
	}
	kinds := []string{"one", "two"}
	for _, k := range p.curves {
		if !k.apart {
			c.Series = append(c.Series, k.series(kinds[len(c.Series)%2], p.x, x, y))
		}
	}
	c.mark(p, x, y)
	c.Points = p.points(x, y)
	if last := len(p.x) - 1; last >= 0 {
		c.Newest = p.say(last)
	}
}

// axisLabel formats a tick of the horizontal axis; it shortens thousands.
func axisLabel(v, step float64) string {
	if step >= 1000 {
		return tickLabel(v/1000, step/1000) + "k"
	}
	return tickLabel(v, step)
}

// extent returns the range of the vertical axis; ok is false if there is nothing to show. A band widens it by at most
// the median of its half width, so that the first, wide ones do not flatten the line.
func (p plot) extent() (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, k := range p.curves {
		if k.apart {
			continue
		}
		l, h, any := spread(k.y)
		if !any {
			continue
		}
		ok = true
		if p.cut {
			h = most(k.y)
		}
		if k.low != nil {
			width := make([]float64, len(k.y))
			for i, v := range k.y {
				width[i] = max(k.high[i]-v, v-k.low[i])
			}
			under, over, _ := spread(k.low, k.high)
			l, h = max(under, l-median(width)), min(over, h+median(width))
		}
		low, high = min(low, l), max(high, h)
	}
	if p.zero {
		low = min(low, 0)
	}
	return low, high, ok
}

// mark sets the signs of what happened, and of what the axis leaves out.
func (c *Chart) mark(p plot, x, y axis) {
	add := func(m Mark, at float64) {
		m.At = at
		c.Marks = append(c.Marks, m)
		if !slices.ContainsFunc(c.Signs, func(s Mark) bool { return s.Kind == m.Kind }) {
			c.Signs = append(c.Signs, m)
		}
	}
	over, largest := 0, 0.0
	for i := range p.x {
		if p.marks != nil {
			for k, kind := range p.marks[i].kinds() {
				kind.Shift = 10 * float64(k)
				add(kind, x.at(p.x[i]))
			}
		}
		for _, k := range p.curves {
			if p.cut && !k.apart && finite(k.y[i]) && k.y[i] > y.to {
				over, largest = over+1, max(largest, k.y[i])
				add(Mark{Kind: "over", Name: "above the axis", Path: "M0-4L4 3H-4Z"}, x.at(p.x[i]))
			}
		}
	}
	if over > 0 {
		c.Cut = fmt.Sprintf("%d above the axis, so that the others can be told apart: %s at most.", over, p.format(largest))
	}
}

func (k curve) series(kind string, xs []float64, x, y axis) Series {
	s := Series{Name: k.name, Kind: kind}
	var line, above, below strings.Builder
	pen := "M"
	var lower []string
	for i, v := range k.y {
		if !finite(v) || !finite(xs[i]) {
			pen = "M"
			continue
		}
		s.X, s.Y = x.at(xs[i]), y.at(v)
		fmt.Fprintf(&line, "%s%g %g", pen, s.X, s.Y)
		pen = "L"
		if k.low != nil && finite(k.low[i]) && finite(k.high[i]) {
			pen := "L"
			if above.Len() == 0 {
				pen = "M"
			}
			fmt.Fprintf(&above, "%s%g %g", pen, s.X, y.at(k.high[i]))
			lower = append(lower, fmt.Sprintf("L%g %g", s.X, y.at(k.low[i])))
		}
	}
	if len(lower) > 1 {
		for _, l := range slices.Backward(lower) {
			below.WriteString(l)
		}
		s.Band = above.String() + below.String() + "Z"
	}
	s.Line = line.String()
	return s
}
