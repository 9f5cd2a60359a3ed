// Package picture draws lines over an axis into a file, for the flag --plot of the commands and the pictures of the
// documents. It alone uses gonum's plotter: a caller says what is drawn, and not how.
//
// The caller's steps: Validate the name before there is work that would be lost, then Write.
package picture

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Panel is one drawing: lines over an axis, and a legend.
type Panel struct {
	Title, X, Y string
	LogX, LogY  bool
	Ticks       []float64 // of the horizontal axis; nil: round numbers
	Unit        bool      // both axes go from 0 to 1
	Grid        bool
	Legend      Corner
	Room        float64 // above the lines, for the legend: a factor of the vertical axis; 0: none
	Lines       []Line
}

// A Corner names the place of a legend.
type Corner int

const (
	BottomRight Corner = iota
	TopRight
	TopLeft
)

// A Line is a series of points with one look.
type Line struct {
	Name   string // in the legend; empty: not in it
	Points []Point
	Color  int // of gonum's, by number
	Dashes int // likewise; 0: none
	Dots   bool
	Shape  int // of the dots
}

// A Point is a place of a line, with the half width of the band around it.
type Point struct{ X, Y, SD float64 }

// Level returns a line that keeps its height, for the levels that others are compared with.
func Level(name string, from, to, y float64) Line {
	return Line{Name: name, Points: []Point{{X: from, Y: y}, {X: to, Y: y}}, Color: 2, Dashes: 2}
}

// Validate refuses a file name of a format that is not drawn; the empty name means no picture.
func Validate(file string) error {
	if ext := strings.ToLower(filepath.Ext(file)); file != "" && ext != ".svg" && ext != ".png" {
		return fmt.Errorf("%s: want a name that ends in .svg or .png", file)
	}
	return nil
}

// Write draws panels side by side into a file, PNG or SVG by its name.
func Write(file string, panels ...Panel) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), ".")
	paper, err := draw.NewFormattedCanvas(vg.Length(len(panels))*6.5*vg.Inch, 5*vg.Inch, format)
	if err != nil {
		return err
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Points(20), PadTop: vg.Points(6), PadBottom: vg.Points(6),
		PadLeft: vg.Points(6), PadRight: vg.Points(12)}
	area := draw.New(paper)
	for i, p := range panels {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		drawn.Draw(tiles.At(area, i, 0))
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := paper.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.X.Label.Text, out.Y.Label.Text = p.Title, p.X, p.Y
	for _, axis := range [...]struct {
		*plot.Axis
		log bool
	}{{&out.X, p.LogX}, {&out.Y, p.LogY}} {
		if axis.log {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
	}
	if p.Ticks != nil {
		var ticks plot.ConstantTicks
		for _, at := range p.Ticks {
			ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprint(at)})
		}
		out.X.Tick.Marker = ticks
	}
	if p.Grid {
		out.Add(plotter.NewGrid())
	}
	out.Legend.Top, out.Legend.Left = p.Legend != BottomRight, p.Legend == TopLeft
	if !out.Legend.Left {
		out.Legend.XOffs = -vg.Points(6)
	}
	out.Legend.TextStyle.Font.Size = vg.Points(9)
	for _, l := range p.Lines {
		if err := l.add(out); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Unit:
		out.X.Min, out.X.Max, out.Y.Min, out.Y.Max = 0, 1, 0, 1
	case p.LogY && (out.Y.Min <= 0 || out.Y.Max <= out.Y.Min): // a point, or down to 0: ten times on either side
		out.Y.Min, out.Y.Max = out.Y.Max/10, out.Y.Max*10
	}
	out.Y.Max *= max(1, p.Room)
	return out, nil
}

func (l Line) add(to *plot.Plot) error {
	var middle, above, band plotter.XYs
	wide := false
	for i, s := range l.Points {
		middle, above = append(middle, plotter.XY{X: s.X, Y: s.Y}), append(above, plotter.XY{X: s.X, Y: s.Y + s.SD})
		under := l.Points[len(l.Points)-1-i]
		band = append(band, plotter.XY{X: under.X, Y: under.Y - under.SD})
		wide = wide || s.SD > 0
	}
	if len(middle) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(middle)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	line.Color, line.Dashes, line.Width = plotutil.Color(l.Color), plotutil.Dashes(l.Dashes), vg.Points(1.5)
	dots.Color, dots.Shape = line.Color, plotutil.Shape(l.Shape)
	shown := []plot.Thumbnailer{line}
	if wide {
		area, err := plotter.NewPolygon(append(above, band...))
		if err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		r, g, b, _ := line.Color.RGBA()
		area.Color, area.LineStyle.Width = color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 50}, 0
		to.Add(area)
	}
	if to.Add(line); l.Dots {
		to.Add(dots)
		shown = append(shown, dots)
	}
	if l.Name != "" {
		to.Legend.Add(l.Name, shown...)
	}
	return nil
}

// Sampled returns the points of a function on a grid of factors, from x/factor to x*factor with so many steps to each
// side. It leaves out what is not positive and finite, and the places above most.
func Sampled(x, factor float64, steps int, most float64, f func(float64) float64) (out []Point) {
	for i := -steps; i <= steps; i++ {
		at := x * math.Pow(factor, float64(i)/float64(steps))
		if y := f(at); at <= most && y > 0 && !math.IsInf(y, 0) {
			out = append(out, Point{X: at, Y: y})
		}
	}
	return out
}
