package main

import (
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
)

// scaled returns rows in the coordinates that a model with these scales lives in; nil leaves them as they are.
func (s *simulation) scaled(rows []convex.Example, scales []float64) []convex.Example {
	if scales == nil {
		return rows
	}
	out := make([]convex.Example, len(rows))
	for i, x := range rows {
		s.job.Plan.Precondition.Rescale(&out[i], x, scales)
	}
	return out
}

// exactScales are those that the second moments of all training data give, nil where the task does not ask for scales.
func (s *simulation) exactScales() ([]float64, error) {
	how := s.job.Plan.Precondition
	if how == nil {
		return nil, nil
	}
	moments := make([]float64, how.Dim)
	exact, err := report.NewExact(report.Config{Statistic: report.SecondMoments, Features: s.job.Features.Dim(), Loss: s.job.Loss, ClipNorm: how.Norm, Scaling: how})
	if err != nil {
		return nil, err
	}
	for _, x := range s.train {
		for j, v := range exact.Vector(x) {
			moments[j] += v / float64(len(s.train))
		}
	}
	return how.Scales(moments, 0)
}
