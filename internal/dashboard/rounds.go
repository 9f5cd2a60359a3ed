package dashboard

import (
	"math"
	"time"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
)

// A roundPoint is an applied round, or several that were merged: then Took, Slowest, Count, the marks and Surprise
// (the largest) are of all, and the rest is of the newest.
type roundPoint struct {
	Round    uint64        `json:"round"`
	Users    uint64        `json:"users"` // counted up to here
	At       time.Time     `json:"at"`    // of the commit
	Count    uint64        `json:"count"` // rounds in it
	Took     time.Duration `json:"took"`  // all of them together
	Slowest  time.Duration `json:"slowest"`
	Gradient float64       `json:"gradient"` // norms; 0: a round of moments
	Noise    float64       `json:"noise"`
	Model    float64       `json:"model"`
	Accuracy *score        `json:"accuracy,omitempty"`
	Loss     *score        `json:"loss,omitempty"`
	Surprise *float64      `json:"surprise,omitempty"` // of a stream without an end
	Marks    marks         `json:"marks"`
}

// marks counts the events since the point before.
type marks struct {
	Restarts uint64 `json:"restarts,omitempty"` // of the learner
	Reopened uint64 `json:"reopened,omitempty"` // attempts at a round after its first
	Void     uint64 `json:"void,omitempty"`     // rounds
	Alarms   uint64 `json:"alarms,omitempty"`   // rounds that a stream without an end surprised in, the point's own too
}

func (m marks) and(o marks) marks {
	return marks{m.Restarts + o.Restarts, m.Reopened + o.Reopened, m.Void + o.Void, m.Alarms + o.Alarms}
}

// A score is one of progressive validation, with its bands.
type score struct {
	Recent  method.Band `json:"recent"`
	Overall method.Band `json:"overall"`
}

func scoreOf(s *method.Scores) *score {
	if s == nil {
		return nil
	}
	return &score{s.Recent, s.Overall}
}

func mergeRounds(older, newer roundPoint) roundPoint {
	newer.Count, newer.Took = older.Count+newer.Count, older.Took+newer.Took
	newer.Slowest, newer.Marks = max(older.Slowest, newer.Slowest), older.Marks.and(newer.Marks)
	if older.Surprise != nil && (newer.Surprise == nil || *older.Surprise > *newer.Surprise) {
		newer.Surprise = older.Surprise
	}
	return newer
}

// pointOf returns the point of a committed round; since holds the marks since the point before.
func pointOf(a service.Applied, at time.Time, parameters int, since marks) roundPoint {
	p := roundPoint{Round: a.Round, Users: a.Users, At: at.UTC(), Count: 1, Took: a.Took, Slowest: a.Took,
		Gradient: a.GradientNorm, Model: a.ModelNorm, Marks: since,
		Noise: a.NoiseStd * math.Sqrt(float64(parameters))} // the norm that is expected, or a little more
	if t := a.Tracking; t != nil {
		p.Surprise = &t.Surprise
		if t.Alarm {
			p.Marks.Alarms++
		}
	}
	if v := a.Validation; v != nil && v.Rounds > 0 {
		p.Accuracy, p.Loss = scoreOf(v.Accuracy), scoreOf(&v.Loss)
	}
	return p
}

// A ratePoint is a period in which reports came, with their numbers.
type ratePoint struct {
	until             time.Time
	seconds           float64
	accepted, refused float64 // reports
}

func mergeRates(older, newer ratePoint) ratePoint {
	return ratePoint{until: newer.until, seconds: older.seconds + newer.seconds,
		accepted: older.accepted + newer.accepted, refused: older.refused + newer.refused}
}
