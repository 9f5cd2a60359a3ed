package rehearse

import (
	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// An ahead scores the rows of a run's rounds of gradients by the model that was current before each round, and notes
// which rows took part in which order.
type ahead struct {
	*prequential.Score
	rowsOf func(report int32) []convex.Example
	order  []int32 // reports as they came
	from   int     // position in order of the first that was scored
}

// newAhead makes c.OnRound score the rows of c, and then call what was there.
func (s *Rehearsal) newAhead(c *sim.Config) *ahead {
	examples, blocks, next := c.Examples, c.Blocks, c.OnRound
	out := &ahead{Score: prequential.New(s.job.Spec), rowsOf: func(i int32) []convex.Example {
		if blocks != nil {
			return blocks[i].Rows
		}
		return examples[i : i+1]
	}}
	var model []float64
	c.OnRound = func(r sim.Round) {
		if r.Point != nil && model != nil {
			predictor := s.predictor(model)
			for _, i := range r.Cohort {
				for _, e := range out.rowsOf(i) {
					out.Add(predictor, e)
				}
			}
			out.Round(r.Tracking)
		} else {
			out.from += len(r.Cohort)
		}
		out.order = append(out.order, r.Cohort...)
		model = r.Model()
		if next != nil {
			next(r)
		}
	}
	return out
}

// scoresOf returns the scores of the runs that have one.
func scoresOf(runs []Outcome) (out []*prequential.Score) {
	for _, r := range runs {
		if r.Prequential != nil {
			out = append(out, r.Prequential)
		}
	}
	return out
}
