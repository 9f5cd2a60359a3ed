package model

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream/wire"
)

// An Origin is the model that learning began with, as far as privacy goes. What it states protects those whom it was
// learned from; who is in its task and in the own one is protected by both together.
type Origin struct {
	Task     string   `json:"task"`
	Protects string   `json:"protects"` // event, or user
	Epsilon  *float64 `json:"epsilon"`  // that it states; null: it promises nothing
	Delta    *float64 `json:"delta"`
	// OwnEpsilon and OwnDelta are for those who are in the own task alone; null where that protects nothing.
	OwnEpsilon *float64 `json:"own_epsilon"`
	OwnDelta   *float64 `json:"own_delta"`
	// Adds reports whether the statement's epsilon and delta are the sums; otherwise they are the own ones,
	// and for people in both tasks none are known.
	Adds bool `json:"adds"`
}

// From returns the statement of a task with this plan, where s has the epsilon and delta of the task by itself. Where
// learning began with a model that states an epsilon, and for as large a unit, they become the sums: epsilons add up,
// and so do deltas.
func (s Statement) From(plan *wire.Plan) Statement {
	if len(plan.GetStart()) == 0 {
		return s
	}
	p := plan.GetStartPrivacy()
	o := &Origin{Task: p.GetTask(), Protects: "event"}
	if p.GetUnit() == wire.Unit_UNIT_USER {
		o.Protects = "user"
	}
	if p.GetEpsilon() > 0 {
		epsilon, delta := p.Epsilon, p.Delta
		o.Epsilon, o.Delta = &epsilon, &delta
	}
	if s.protects() {
		epsilon, delta := s.Epsilon, s.Delta
		o.OwnEpsilon, o.OwnDelta = &epsilon, &delta
	}
	if o.Adds = o.Epsilon != nil && o.OwnEpsilon != nil && (s.Protects != "user" || o.Protects == "user"); o.Adds {
		s.Epsilon = math.Nextafter(s.Epsilon+*o.Epsilon, math.Inf(1)) // no sum is rounded down
		s.Delta = math.Nextafter(s.Delta+*o.Delta, math.Inf(1))
	}
	s.Start = o
	return s
}

// protects reports whether the statement has an epsilon.
func (s Statement) protects() bool { return !s.NoiseKnown && !s.Public }

// String returns a sentence about what the start adds; empty for nil.
func (o *Origin) String() string {
	switch {
	case o == nil:
		return ""
	case o.Epsilon == nil:
		return "Learning began with a model that states no epsilon, so it has to be public: " +
			"this says nothing about whose data that was learned from."
	case o.Adds:
		return fmt.Sprintf("This is for people who are in task %s too, whose model learning began with (epsilon %v, delta %v); "+
			"epsilon %v, delta %v are for people who are in this task alone.", o.Task, *o.Epsilon, *o.Delta, *o.OwnEpsilon,
			*o.OwnDelta)
	case o.OwnEpsilon == nil:
		return fmt.Sprintf("Learning began with a model of task %s, which states epsilon %v, delta %v for its own data.",
			o.Task, *o.Epsilon, *o.Delta)
	}
	return fmt.Sprintf("Learning began with a model of task %s, which states epsilon %v, delta %v for one event: "+
		"for a person with several events there no epsilon of both together is known.", o.Task, *o.Epsilon, *o.Delta)
}
