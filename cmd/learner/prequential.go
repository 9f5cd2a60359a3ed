package main

import (
	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// ahead returns an observer that scores every row of a round of gradients by the model that stood before it, and then
// calls next, which may be nil.
func (s *simulation) ahead(p *prequential.Score, next func(sim.Round)) func(sim.Round) {
	var model []float64
	return func(r sim.Round) {
		if r.Point != nil && model != nil {
			predictor := s.predictor(model)
			for _, i := range r.Cohort {
				for _, e := range s.rowsOf(i) {
					p.Add(predictor, e)
				}
			}
			p.Round(r.Tracking)
		}
		model = r.Model()
		if next != nil {
			next(r)
		}
	}
}

// rowsOf are the rows that a report is about.
func (s *simulation) rowsOf(i int32) []convex.Example {
	if s.units != nil {
		return s.units[i].Rows
	}
	return s.train[i : i+1]
}

// scoresOf are those of several runs, as far as they have any.
func scoresOf(runs []simulated) (out []*prequential.Score) {
	for _, r := range runs {
		if r.Prequential != nil {
			out = append(out, r.Prequential)
		}
	}
	return out
}
