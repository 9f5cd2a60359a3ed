package dashboard

import (
	"fmt"
	"math"
	"strings"
)

// Where the plot lies in the drawing, which the template makes 440 by 164.
const (
	plotLeft, plotRight = 46.0, 428.0
	plotTop, plotBottom = 12.0, 138.0
)

// A Chart is a figure of lines over one axis, with its text alternative. Its template draws it as SVG, of which the style
// sheet sets all colours.
type Chart struct {
	ID, Title string
	Note      string // below the title
	Summary   string // what a reader who does not see the lines is told
	Empty     string // in place of a drawing that has no points yet
	Series    []Series
	X, Y      []Tick
	AxisX     string
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

// A Tick is a mark of an axis, with its place in the drawing.
type Tick struct {
	At    float64
	Label string
}

// A curve is what a series is drawn from. Points that are not finite are left out.
type curve struct {
	name      string
	x, y      []float64
	low, high []float64 // of the band; nil: none
}

// An axis maps values to the drawing.
type axis struct{ from, to, start, end float64 }

func (a axis) at(v float64) float64 {
	if a.to == a.from {
		return (a.start + a.end) / 2
	}
	return a.start + (v-a.from)/(a.to-a.from)*(a.end-a.start)
}

// spread is the least range that holds all values; false if there is none.
func spread(values ...[]float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			if finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high, low <= high
}

// ticks are about n round values that span low to high.
func ticks(low, high float64, n int) (values []float64, step float64) {
	if high <= low {
		high = low + max(math.Abs(low), 1)*1e-3
	}
	raw := (high - low) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step = 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw {
			step = m * power
			break
		}
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	for i := first; i <= last && len(values) < 64; i++ {
		values = append(values, i*step)
	}
	return values, step
}

// tickLabel prints a tick with the digits that its step asks for.
func tickLabel(v, step float64) string {
	if a := math.Abs(v); a >= 1e6 || a > 0 && step < 1e-4 {
		return fmt.Sprintf("%.2g", v)
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	return strings.Replace(fmt.Sprintf("%.*f", digits, v+0), "-", "−", 1)
}

// draw fills in the drawing of a chart. zero makes the vertical axis begin at 0.
func (c *Chart) draw(zero bool, label func(v, step float64) string, curves ...curve) {
	var xs, ys [][]float64
	for _, k := range curves {
		xs, ys = append(xs, k.x), append(ys, k.y, k.low, k.high)
	}
	left, right, any := spread(xs...)
	low, high, some := spread(ys...)
	if !any || !some {
		return
	}
	if zero {
		low = min(low, 0)
	}
	marks, step := ticks(low, high, 4)
	y := axis{marks[0], marks[len(marks)-1], plotBottom, plotTop}
	for _, v := range marks {
		c.Y = append(c.Y, Tick{y.at(v), label(v, step)})
	}
	x := axis{left, right, plotLeft, plotRight}
	marks, step = ticks(left, right, 5)
	for _, v := range marks {
		if v >= left && v <= right && (step >= 1 || right-left < 1) {
			c.X = append(c.X, Tick{x.at(v), tickLabel(v, step)})
		}
	}
	if left == right {
		c.X = []Tick{{x.at(left), tickLabel(left, 1)}}
	}
	for i, k := range curves {
		c.Series = append(c.Series, k.series([]string{"one", "two"}[i%2], x, y))
	}
}

func (k curve) series(kind string, x, y axis) Series {
	s := Series{Name: k.name, Kind: kind}
	var line, above, below strings.Builder
	pen := "M"
	var lower []string
	for i, v := range k.y {
		if !finite(v) || !finite(k.x[i]) {
			pen = "M"
			continue
		}
		s.X, s.Y = round1(x.at(k.x[i])), round1(y.at(v))
		fmt.Fprintf(&line, "%s%.1f %.1f", pen, s.X, s.Y)
		pen = "L"
		if k.low != nil && finite(k.low[i]) && finite(k.high[i]) {
			pen := "L"
			if above.Len() == 0 {
				pen = "M"
			}
			fmt.Fprintf(&above, "%s%.1f %.1f", pen, s.X, y.at(k.high[i]))
			lower = append(lower, fmt.Sprintf("L%.1f %.1f", s.X, y.at(k.low[i])))
		}
	}
	if len(lower) > 1 {
		for i := len(lower) - 1; i >= 0; i-- {
			below.WriteString(lower[i])
		}
		s.Band = above.String() + below.String() + "Z"
	}
	s.Line = line.String()
	return s
}

func round1(v float64) float64 { return math.Round(10*v) / 10 }
