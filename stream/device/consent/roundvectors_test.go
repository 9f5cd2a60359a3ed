package consent_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// roundVector is the body of a Round of a task among the accepted ones.
type roundVector struct {
	Name    string `json:"name"`
	Task    string `json:"task"` // name of the vector of the task
	Round   hexed  `json:"round"`
	Zeros   int    `json:"zeros,omitempty"`
	Tail    hexed  `json:"tail,omitempty"`
	Known   hexed  `json:"known,omitempty"`  // manifest hash of the round of this number that the device joined
	Before  hexed  `json:"before,omitempty"` // body of the round before
	Refused string `json:"refused,omitempty"`
	Field   string `json:"field,omitempty"`
	Hash    hexed  `json:"accepted,omitempty"` // manifest hash
}

// check does what a device does with the body of a Round whose signature it has verified.
func (v *roundVector) check(a *consent.Agreement) (hash stream.Hash, err error) {
	body := append(append(bytes.Clone(v.Round), make([]byte, v.Zeros)...), v.Tail...)
	var m, before wire.Round
	if err := stream.Unmarshal(body, &m); err != nil {
		return hash, err
	}
	hash = stream.HashOf(body)
	var known *stream.Hash
	if len(v.Known) > 0 {
		known = (*stream.Hash)(v.Known)
	}
	if err := a.CheckRound(&m, hash, known); err != nil || len(v.Before) == 0 {
		return hash, err
	}
	if err := stream.Unmarshal(v.Before, &before); err != nil {
		return hash, err
	}
	return hash, a.CheckOrder(&before, &m)
}

// A changedRound describes a round that differs in one thing from the first one of its step.
type changedRound struct {
	number, name, task string
	step               uint64
	change             func(r *wire.Round)
	before             func(r *wire.Round) // changes the round before, which is one lower in number and step
	known              bool
}

// frameOf is a frame that an honest learner may announce: in a round of the matrix with the label's part.
func frameOf(intercept float64, matrix bool) *wire.Frame {
	f := &wire.Frame{Center: []float64{0.25, -0.5}, Scale: []float64{1, 2}, Intercept: intercept, Bound: 2, Clip: 1.5}
	if intercept == 0 {
		f.Center = []float64{0, 0}
	}
	if matrix {
		f.LabelCenter, f.LabelScale, f.LabelWeight = 5, 2, 0.75
	}
	return f
}

// roundOf returns round of the same number as a step.
func roundOf(task string, hash stream.Hash, step uint64) *wire.Round {
	r := &wire.Round{Version: stream.Version, TaskHash: hash[:], Round: step, Step: step}
	switch task {
	case "shuffle", "interactive", "places":
		r.Point = []float64{0.1 * float64(step), 0, -1}
	case "practical", "adaptive":
		if step > 1 {
			r.Frame = frameOf(0.5, step == 2)
		}
		if step > 2 {
			r.Point = []float64{0.5, 0, -1}
			r.Frame.Whitener = []float64{1, 0.25, 2, 0, -0.5, 3}
		}
	case "practical without an intercept":
		if step > 1 {
			r.Frame = frameOf(0, step == 2)
		}
		if step > 2 {
			r.Point = []float64{0.5, 0}
		}
	}
	if task == "adaptive" && step > 3 {
		r.Cohort = 50
	}
	return r
}

func (c changedRound) make(t *testing.T, hash stream.Hash) roundVector {
	t.Helper()
	m := roundOf(c.task, hash, c.step)
	v := roundVector{Name: c.name, Task: c.task, Refused: c.number}
	if c.known {
		h := stream.HashOf(marshal(t, m))
		v.Known = h[:]
	}
	if c.before != nil {
		before := roundOf(c.task, hash, c.step-1)
		c.before(before)
		v.Before = marshal(t, before)
	}
	if c.change != nil {
		c.change(m)
	}
	if v.Round = marshal(t, m); c.number == "B29" {
		m.Point = make([]float64, stream.MaxDim+1)
		body, at := marshal(t, m), bytes.Index(marshal(t, m), []byte{5<<3 | 2, 0x88, 0x80, 0x80, 0x04})+5
		v.Round, v.Zeros, v.Tail = body[:at], 8*(stream.MaxDim+1), body[at+8*(stream.MaxDim+1):]
	}
	return v
}

func roundVectors(t *testing.T, tasks []taskVector) (out []roundVector) {
	agreed := make(map[string]*consent.Agreement)
	for _, v := range tasks {
		if v.Terms != nil {
			a, err := v.check()
			must(t, err)
			agreed[v.Name] = a
		}
	}
	agreed["interactive"] = agreed["three rounds of one user"]
	for _, c := range ofRounds {
		if c.task == "" {
			c.task = "shuffle"
		}
		if c.step == 0 {
			c.step = 2
		}
		v := c.make(t, agreed[c.task].Hash)
		if c.task == "interactive" {
			v.Task = "three rounds of one user"
		}
		hash, err := v.check(agreed[c.task])
		var refused *consent.RefusedError
		switch {
		case v.Refused != "":
			vectors.Refused(t, v.Name, v.Refused, err)
			if asRefused(err, &refused) {
				v.Field = refused.Field
			}
		case err != nil:
			t.Errorf("%s: %v", v.Name, err)
		default:
			v.Hash = hash[:]
		}
		out = append(out, v)
	}
	return out
}

func framed(number, name string, change func(f *wire.Frame)) changedRound {
	return changedRound{number: number, name: name, task: "practical", step: 3, change: func(r *wire.Round) { change(r.Frame) }}
}

func ofMatrix(number, name string, change func(f *wire.Frame)) changedRound {
	c := framed(number, name, change)
	c.step = 2
	return c
}

var ofRounds = []changedRound{
	{name: "a round"},
	{name: "the same that was answered", known: true},
	{name: "a point on the edge of the ball", change: func(r *wire.Round) { r.Point = []float64{3, 4, 0} }},
	{name: "a step that was void", change: func(r *wire.Round) { r.Round = 7 }},
	{name: "moments", task: "practical", step: 1},
	{name: "the matrix", task: "practical", step: 2},
	{name: "gradients in a frame", task: "practical", step: 3},
	{name: "gradients in the same frame", task: "practical", step: 4, before: func(r *wire.Round) {}},
	{name: "the smallest numbers of a frame", task: "practical", step: 3, change: func(r *wire.Round) {
		r.Frame.Scale, r.Frame.Clip, r.Frame.Bound = []float64{1e-12, 1e-12}, 1e-12, 1e-12
	}},
	{name: "a frame without an intercept", task: "practical without an intercept", step: 3},
	{name: "an adaptive round", task: "adaptive", step: 4},
	{name: "an adaptive round far later, in another frame", task: "adaptive", step: 5, before: func(r *wire.Round) {},
		change: func(r *wire.Round) { r.Round, r.Step, r.Frame.Clip = 9, 9, 3 }},
	{name: "a step after another", before: func(r *wire.Round) {}},
	{name: "the same step after a void round", before: func(r *wire.Round) { r.Round, r.Step = 2, 2 },
		change: func(r *wire.Round) { r.Round = 3 }},
	{name: "the next step of an interactive phase", task: "interactive", before: func(r *wire.Round) {}},
	{name: "a round of a task with places", task: "places"},

	{number: "B26", name: "a short task hash", change: func(r *wire.Round) { r.TaskHash = r.TaskHash[1:] }},
	{number: "B27", name: "round 0", change: func(r *wire.Round) { r.Round = 0 }},
	{number: "B28", name: "step 0", change: func(r *wire.Round) { r.Step = 0 }},
	{number: "B29", name: "a point that is too long"},
	{number: "B30", name: "a point that is no number", change: func(r *wire.Round) { r.Point[1] = math.NaN() }},
	{number: "B30", name: "a point that is infinite", change: func(r *wire.Round) { r.Point[1] = math.Inf(-1) }},
	{number: "R1", name: "of another task", change: func(r *wire.Round) { r.TaskHash = make([]byte, 32) }},
	{number: "R2", name: "a step beyond the plan", change: func(r *wire.Round) { r.Round, r.Step = 9, 4 }},
	{number: "R2", name: "a step ahead of the round", change: func(r *wire.Round) { r.Step = 3 }},
	{number: "R3", name: "a short point", change: func(r *wire.Round) { r.Point = r.Point[:2] }},
	{number: "R3", name: "moments at a point", task: "practical", step: 1, change: func(r *wire.Round) {
		r.Point = []float64{1}
	}},
	{number: "R4", name: "a frame in a proved plan", change: func(r *wire.Round) { r.Frame = frameOf(0, false) }},
	{number: "R4", name: "no frame in a practical plan", task: "practical", step: 3, change: func(r *wire.Round) {
		r.Frame = nil
	}},
	{number: "R5", name: "a deadline of its own", change: func(r *wire.Round) { r.DeadlineMs = 60000 }},
	{number: "R6", name: "a deadline above the longest", task: "a deadline of a round's own, and retention",
		change: func(r *wire.Round) { r.DeadlineMs, r.Point = 60001, []float64{0, 0, 0} }},
	{name: "a deadline of its own, which the plan allows", task: "a deadline of a round's own, and retention",
		change: func(r *wire.Round) { r.DeadlineMs, r.Point = 60000, []float64{0, 0, 0} }},
	{number: "R7", name: "a cohort that the plan says", change: func(r *wire.Round) { r.Cohort = 50 }},
	{number: "R8", name: "a cohort above the largest", task: "adaptive", step: 4, change: func(r *wire.Round) {
		r.Cohort = 61
	}},
	{number: "R8", name: "no cohort in an adaptive phase", task: "adaptive", step: 4, change: func(r *wire.Round) {
		r.Cohort = 0
	}},
	{number: "R9", name: "another round in the place of one that was answered", known: true,
		change: func(r *wire.Round) { r.Point[0] = 0 }},
	{number: "R10", name: "a point outside of the ball", change: func(r *wire.Round) { r.Point = []float64{3, 4, 0.1} }},
	{number: "R10", name: "a point whose squares overflow", change: func(r *wire.Round) {
		r.Point = []float64{1e308, 1e308, 0}
	}},
	{number: "R10", name: "a point in a frame, of more than 10^12", task: "practical", step: 3,
		change: func(r *wire.Round) { r.Point[0] = 1.1e12 }},
	{number: "R11", name: "a step that goes back", before: func(r *wire.Round) { r.Round, r.Step = 2, 2 },
		change: func(r *wire.Round) { r.Round, r.Step = 3, 1 }},
	{number: "R11", name: "two steps in one round", before: func(r *wire.Round) { r.Round, r.Step = 2, 1 },
		change: func(r *wire.Round) { r.Round, r.Step = 3, 3 }},
	{number: "R11", name: "the same step of an interactive phase", task: "interactive", before: func(r *wire.Round) {},
		change: func(r *wire.Round) { r.Step = 1 }},
	{number: "R12", name: "gradients in another frame", task: "practical", step: 4, before: func(r *wire.Round) {},
		change: func(r *wire.Round) { r.Frame.Clip = 2 }},

	framed("G1", "too few centers", func(f *wire.Frame) { f.Center = f.Center[:1] }),
	framed("G2", "too many scales", func(f *wire.Frame) { f.Scale = append(f.Scale, 1) }),
	framed("G3", "a center that is no number", func(f *wire.Frame) { f.Center[1] = math.NaN() }),
	framed("G3", "a center above 10^12", func(f *wire.Frame) { f.Center[1] = -1.1e12 }),
	{number: "G4", name: "a center without an intercept", task: "practical without an intercept", step: 3,
		change: func(r *wire.Round) { r.Frame.Center[0] = 0.25 }},
	framed("G5", "a scale of 0", func(f *wire.Frame) { f.Scale[0] = 0 }),
	framed("G5", "a negative scale", func(f *wire.Frame) { f.Scale[0] = -1 }),
	framed("G6", "no intercept", func(f *wire.Frame) { f.Intercept = 0 }),
	{number: "G6", name: "an intercept in a task without one", task: "practical without an intercept", step: 3,
		change: func(r *wire.Round) { r.Frame.Intercept = 1 }},
	framed("G7", "an infinite bound", func(f *wire.Frame) { f.Bound = math.Inf(1) }),
	framed("G8", "a clip of 0", func(f *wire.Frame) { f.Clip = 0 }),
	framed("G9", "a negative smoothing", func(f *wire.Frame) { f.Smoothing = -1 }),
	framed("G10", "a whitener of another size", func(f *wire.Frame) { f.Whitener = f.Whitener[:5] }),
	framed("G11", "a whitener that is no number", func(f *wire.Frame) { f.Whitener[5] = math.NaN() }),
	ofMatrix("G12", "a label center that is no number", func(f *wire.Frame) { f.LabelCenter = math.NaN() }),
	ofMatrix("G13", "a label scale of 0 beside a weight", func(f *wire.Frame) { f.LabelScale = 0 }),
	ofMatrix("G14", "a negative label weight", func(f *wire.Frame) { f.LabelWeight = -1 }),
	ofMatrix("G15", "the matrix without a label", func(f *wire.Frame) {
		f.LabelCenter, f.LabelScale, f.LabelWeight = 0, 0, 0
	}),
	framed("G15", "gradients with a label", func(f *wire.Frame) { f.LabelScale, f.LabelWeight = 1, 1 }),
	ofMatrix("G16", "a whitener in the round of the matrix", func(f *wire.Frame) {
		f.Whitener = []float64{1, 0, 1, 0, 0, 1}
	}),
	framed("G17", "smoothing of a smooth loss", func(f *wire.Frame) { f.Smoothing = 1 }),
}
