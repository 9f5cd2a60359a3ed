package statedir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Release holds what a method of one process published, and the claims of its plan: the whole state of such a task.
// Before the one release Model is the public start and Phase 0. Its bytes, JSON as encoding/json writes it, are the
// checkpoint's state of the algorithm.
type Release struct {
	Method string `json:"method"`
	Source string `json:"source"` // paper and theorem
	Least  int    `json:"least"`  // smallest number of units that it takes
	Phases int    `json:"phases"` // planned
	Phase  int    `json:"phase"`  // of the model's release; 0: the public start
	Halted bool   `json:"halted"` // a test did not pass
	// of one coordinate of the last release, in units of theta; 0: not of this form
	NoiseStd  float64  `json:"noise_std"`
	Bound     *float64 `json:"bound"`      // on the expected excess risk; null: none
	OnRecords bool     `json:"on_records"` // the bound is about the mean loss of the rows at hand
	// steps that wait for the results of those before, where gradients are sampled
	Depth    int64    `json:"depth,omitempty"`
	Queries  float64  `json:"queries,omitempty"`  // expected gradients of single rows in them
	Notes    []string `json:"notes,omitempty"`    // constants
	Baseline string   `json:"baseline,omitempty"` // what is said where a simpler method is expected to do better

	Model []float64 `json:"model,omitempty"`
}

// Bytes returns the release as JSON: the state in a checkpoint.
func (r *Release) Bytes() ([]byte, error) { return json.Marshal(r) }

// parseRelease reads what Bytes wrote, of a plan.
func parseRelease(data []byte, plan *wire.Plan) (*Release, error) {
	r := new(Release)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("stored release: %w", err)
	}
	if again, err := r.Bytes(); err != nil || !bytes.Equal(again, data) {
		return nil, fmt.Errorf("stored release: not written as this program writes it")
	}
	if dim := manifest.Dim(plan); len(r.Model) != dim || r.Method != plan.Algorithm {
		return nil, fmt.Errorf("stored release: %d parameters of %q, the plan has %d of %q", len(r.Model), r.Method, dim,
			plan.Algorithm)
	}
	for _, v := range r.Model {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("stored release: a parameter is not finite")
		}
	}
	return r, nil
}

// public returns the part of the release that a status shows: all but the model, which a snapshot has.
func (r *Release) public() *Release {
	if r == nil {
		return nil
	}
	out := *r
	out.Model = nil
	return &out
}
