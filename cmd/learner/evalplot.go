package main

import (
	"fmt"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/picture"
)

// draw writes a reliability diagram, a line for each model, if a file is named.
func (e evalConfig) draw(names []string, results ...released.Evaluation) error {
	if e.picture == "" {
		return nil
	}
	p := picture.Panel{Title: "what probabilities are worth", X: "predicted probability, mean of a bin",
		Y: "share that occurred", Unit: true, Grid: true, Legend: picture.TopLeft,
		Lines: []picture.Line{{Name: "as said", Points: []picture.Point{{}, {X: 1, Y: 1}}, Color: 2, Dashes: 2}}}
	for i, r := range results {
		if r.OfClasses == nil || r.CalibrationError == nil {
			return cli.Usagef("--plot: draws what probabilities are worth, and the loss of %s has none", e.models[i])
		}
		line := picture.Line{Name: fmt.Sprintf("%s: calibration error %.4f", names[i], *r.CalibrationError), Color: i,
			Dashes: i, Dots: true}
		for _, bin := range r.Reliability {
			line.Points = append(line.Points, picture.Point{X: bin.Probability, Y: bin.Occurred})
		}
		p.Lines = append(p.Lines, line)
	}
	return drawn(picture.Write(e.picture, p))
}
