package task

// A Label declares what is predicted: one of two classes (Positive and Negative), one of several (Classes), a number or a count
// (Min and Max). Which of them follows from the loss.
type Label struct {
	// Column is the field of csv, jsonl or parquet; libsvm and idx have a place for the label.
	Column string `json:"column,omitempty"`

	// Positive and Negative list the labels of the classes +1 and -1. Numbers are compared as numbers: "+1" is "1".
	Positive []string `json:"positive,omitempty"`
	Negative []string `json:"negative,omitempty"`

	// Classes lists the labels of softmax; the loss sees their positions, from 0. Numbers are compared as numbers.
	Classes []string `json:"classes,omitempty"`

	// Min and Max are public bounds of a numeric target; values outside are moved to the nearer one. Of a count (poisson)
	// Min is 0 and Max a whole number.
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Scale Scale   `json:"scale,omitempty"` // of numbers; default symmetric. The loss sees counts as they are
}

// Model is the learned model: linear scores under a convex loss, in a convex set around zero. Radius, Min, Max, Ridge and ClipNorm
// live in the coordinates of the feature map's output. A key that means nothing for the loss or the set is refused.
type Model struct {
	// Loss is logistic, softmax, squared, huber, absolute, quantile, hinge, smoothed-hinge or poisson: see convex.Declaration.
	Loss string `json:"loss"`
	// Level is the quantile that is predicted, in (0, 1), of loss quantile.
	Level float64 `json:"level,omitempty"`
	// Width is where huber turns from a parabola into a line, and the width of the rounded corner of smoothed-hinge; > 0.
	Width float64 `json:"width,omitempty"`
	// ScoreBound bounds the score, the logarithm of the predicted count, of loss poisson; in (0, 300]. Above it predictions stay.
	ScoreBound float64 `json:"score_bound,omitempty"`
	// ClassWeights multiply the loss of an event by its class: negative, positive; for softmax in the order of Label.Classes.
	// Empty: all 1.
	ClassWeights []float64 `json:"class_weights,omitempty"`
	// LabelNoise is the probability, in [0, 0.5), with which a label is known to be flipped; the loss is corrected for it. Loss
	// logistic: the others would not stay convex.
	LabelNoise float64 `json:"label_noise,omitempty"`

	// Set holds the parameters, intercept included: ball (default), box, nonnegative, simplex or l1.
	Set string `json:"set"`
	// Radius is R > 0, the size of every set but the box: the norm that parameters of the ball and of nonnegative stay within,
	// the sum of those of the simplex, the sum of magnitudes of those of l1.
	Radius float64 `json:"radius,omitempty"`
	// Min <= 0 and Max >= 0 bound every parameter of the box.
	Min float64 `json:"min,omitempty"`
	Max float64 `json:"max,omitempty"`

	// Ridge is lambda >= 0 of the term (lambda/2)||theta||^2, intercept included, which the learner adds to the loss. It costs no
	// privacy. Default 0.
	Ridge    float64 `json:"ridge,omitempty"`
	ClipNorm float64 `json:"clip_norm"` // L: bound on the norm of one event's gradient. Default 1
}

// The names of the sets of Model.Set.
const (
	Ball        = "ball"
	Box         = "box"
	Nonnegative = "nonnegative"
	Simplex     = "simplex"
	L1          = "l1"
)
