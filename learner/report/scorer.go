package report

import (
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Scorer computes the scores of the announced point that a device reports beside its gradient: the loss and, for
// classes, whether the class was predicted. The loss is the task's, even if the gradient is its envelope's. One
// goroutine uses it.
type Scorer struct {
	card     convex.Scorecard
	loss     convex.Loss
	features *task.FeatureMap
	scores   []float64 // scratch
}

// NewScorer returns the scorer of a task's events for its card.
func NewScorer(features *task.FeatureMap, card convex.Scorecard, loss convex.Loss) *Scorer {
	return &Scorer{card: card, loss: loss, features: features}
}

// Score overwrites dst, of the card's length, with the scores of a point on a row that the loss accepts. It keeps
// nothing of the row.
func (s *Scorer) Score(dst, point []float64, row convex.Example) {
	correct := false
	if s.card.Correctness {
		s.scores = s.features.Scores(s.scores, point, row)
		correct = s.features.Predict(s.scores) == row.Label
		clear(s.scores)
	}
	s.card.Write(dst, s.loss.Value(point, row), correct)
}
