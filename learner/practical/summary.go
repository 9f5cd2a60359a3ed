package practical

// A Summary holds, for display, the released numbers of a plan's first cohorts on which the later rounds are based.
type Summary struct {
	Norm      float64 `json:"norm"`          // root of the mean square of a row's norm in the frame's coordinates
	ClipNorm  float64 `json:"clip_norm"`     // of gradients, in these coordinates
	Clipped   float64 `json:"clipped_share"` // expected share of gradients; 0 in a task without an end, like Step
	ClippedAt string  `json:"clipped_at"`    // the model of Clipped: "start" for classes, "linear fit" for numbers
	Step      float64 `json:"step"`
	// StepName is v, if steps are at most 1/v, or eta; empty if steps follow a stream.
	StepName string `json:"step_name"`
	// Effective is the number of coordinates in which the second-moment matrix exceeds its noise; 0 without a matrix.
	Effective float64 `json:"effective_coordinates,omitempty"`
}

// Summary returns the summary; nil before the rounds of gradients.
func (l *Learned) Summary() *Summary {
	if l == nil || l.Start == nil {
		return nil
	}
	out := &Summary{Norm: l.Report.Norm, ClipNorm: l.Frame.Clip,
		Clipped: l.Report.Clipped, Step: l.Curvature, StepName: "v", Effective: l.Report.Effective, ClippedAt: "linear fit"}
	if l.Report.Shares != nil {
		out.ClippedAt = "start"
	}
	if l.Stream != nil { // whose clips and steps follow it
		out.Clipped, out.ClippedAt, out.StepName = 0, "", ""
	}
	if l.Step > 0 {
		out.Step, out.StepName = l.Step, "eta"
	}
	return out
}
