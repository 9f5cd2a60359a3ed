package convex

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Traits is a row of the table of losses: the properties of a loss for code that knows only its name.
type Traits struct {
	Name   string
	Labels Labels
	Smooth bool // the gradient is Lipschitz, see Loss.Smoothness
	// Scores is the meaning of the loss's linear scores.
	Scores scores
	// Error is the mean by which predictions of numbers and counts are compared with labels. Wrong classes are
	// counted instead.
	Error    Error
	Constant constant // the score that has the least mean loss on labels
	// HalfSquare reports whether the loss is half the square of the residual, so that its mean is half the mean square.
	HalfSquare bool
	// Rounded reports whether a practical plan smooths the slopes of a smooth loss too.
	Rounded bool
	Draft   draft // zero: no parameter is required

	parameters []string // that the loss takes, by their names in a Declaration
	make       func(Declaration) Loss
	class      func(Declaration) ClassShape          // of losses of classes, and nil for others
	fit        func(Declaration, Residuals) FitShape // of losses of numbers and counts, and nil for others
}

// Takes reports whether the loss takes the parameter of a name, as in a Declaration.
func (t Traits) Takes(parameter string) bool { return slices.Contains(t.parameters, parameter) }

// Labels are the kinds of labels.
type Labels int

// The kinds of labels.
const (
	TwoClasses  Labels = iota // -1 or +1
	ManyClasses               // 0 to k-1
	Numbers                   // finite
	Counts                    // whole numbers from 0
)

// Classes reports whether labels are classes, one of two or of several.
func (l Labels) Classes() bool { return l == TwoClasses || l == ManyClasses }

func (l Labels) check(y float64) error {
	switch {
	case math.IsNaN(y) || math.IsInf(y, 0):
		return fmt.Errorf("label: not finite, want a finite number")
	case l == TwoClasses && y != -1 && y != 1:
		return fmt.Errorf("label: outside the domain of the loss, want -1 or +1")
	case l == Counts && (y < 0 || y != math.Trunc(y)):
		return fmt.Errorf("label: outside the domain of the loss, want a whole number of at least 0")
	}
	return nil
}

// scores are the meanings of linear scores.
type scores int

// The meanings of scores.
const (
	Plain            scores = iota // the prediction itself, or an order of the events and no more
	LogOdds                        // of the class +1
	LogProbabilities               // of every class, up to a constant
	LogMean                        // logarithm of the expected count
)

// Probable reports whether scores determine the probability of each class.
func (s scores) Probable() bool { return s == LogOdds || s == LogProbabilities }

// Error is a mean of the differences between labels and predictions.
type Error int

// The means of differences.
const (
	rootMeanSquare Error = iota
	MeanAbsolute
	Pinball // the quantile loss itself, and the share of labels at or below their prediction
)

// constant is the way in which the best constant score follows from labels.
type constant int

// The ways to the best constant.
const (
	Search         constant = iota // for the least mean loss, of one score
	MeanLabel                      // the mean
	Median                         // the median
	Quantile                       // the quantile of the declared level
	LogMeanLabel                   // the logarithm of the mean
	LogClassCounts                 // of every class, the logarithm of its weighted count
)

// A draft describes the one parameter that a drafted task has to declare.
type draft struct {
	Parameter string                     // its name in a Declaration
	Value     func(high float64) float64 // for labels of at most high
	Note      string                     // its meaning, in a sentence for the task's author
}

// always returns a drafted value that does not depend on labels.
func always(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// losses is the table of losses, in the order of the documentation. The first loss for a kind of labels is the default
// of drafted tasks.
var losses = [...]Traits{
	{Name: "logistic", Labels: TwoClasses, Smooth: true, Scores: LogOdds, parameters: []string{classWeights, labelNoise},
		make: func(Declaration) Loss { return Logistic{} }, class: logisticShape},
	{Name: "softmax", Labels: ManyClasses, Smooth: true, Scores: LogProbabilities, Constant: LogClassCounts,
		parameters: []string{classes, classWeights},
		make:       func(d Declaration) Loss { return Softmax{Classes: d.Classes} }, class: softmaxShape},
	{Name: "squared", Labels: Numbers, Smooth: true, Constant: MeanLabel, HalfSquare: true,
		make: func(Declaration) Loss { return Squared{} }, fit: squaredShape},
	{Name: "huber", Labels: Numbers, Smooth: true, parameters: []string{width},
		Draft: draft{width, always(0.1),
			"width is where errors begin to count as they are and no more squared, in the label scaled to [-1, 1]."},
		make: func(d Declaration) Loss { return Linear[huber]{huber{d.Width}} }, fit: huberShape},
	{Name: "absolute", Labels: Numbers, Error: MeanAbsolute, Constant: Median,
		make: func(Declaration) Loss { return Absolute{} }, fit: absoluteShape},
	{Name: "quantile", Labels: Numbers, Error: Pinball, Constant: Quantile, parameters: []string{level},
		Draft: draft{level, always(0.9), "level is the share of the labels that are to be at most their prediction."},
		make:  func(d Declaration) Loss { return Linear[quantile]{quantile{d.Level}} }, fit: quantileShape},
	{Name: "hinge", Labels: TwoClasses, parameters: []string{classWeights},
		make: func(Declaration) Loss { return Hinge{} }, class: hingeShape},
	{Name: "smoothed-hinge", Labels: TwoClasses, Smooth: true, Rounded: true, parameters: []string{width, classWeights},
		Draft: draft{width, always(0.5), "width is that of the rounded corner."},
		make:  func(d Declaration) Loss { return Linear[smoothedHinge]{smoothedHinge{d.Width}} }, class: smoothedHingeShape},
	{Name: "poisson", Labels: Counts, Smooth: true, Scores: LogMean, Constant: LogMeanLabel,
		parameters: []string{scoreBound, maxCount},
		Draft:      draft{scoreBound, leastScoreBound, "score_bound is the logarithm of the largest prediction."},
		make:       func(d Declaration) Loss { return Poisson{Linear[poisson]{poisson{d.ScoreBound}}, d.MaxCount} },
		fit:        poissonShape},
}

// LossNames returns the names of all losses, in the order of the documentation.
func LossNames() []string { return namesOf(func(Traits) bool { return true }) }

// SlopedLosses names the smooth losses of one linear score, which stay convex and smooth when their slopes are cut, as
// "a, b or c", see SlopeOf.
func SlopedLosses() string {
	names := namesOf(func(t Traits) bool { return t.Smooth && SlopeOf(t.make(Declaration{})) != nil })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func namesOf(have func(Traits) bool) []string {
	var out []string
	for _, l := range losses {
		if have(l) {
			out = append(out, l.Name)
		}
	}
	return out
}

// First returns the first loss of the table with labels of the kind.
func First(kind Labels) Traits {
	for _, l := range losses {
		if l.Labels == kind {
			return l
		}
	}
	return Traits{}
}

// TraitsOf returns the row of a loss; for an unknown name, a row with an empty name.
func TraitsOf(name string) Traits {
	for _, l := range losses {
		if l.Name == name {
			return l
		}
	}
	return Traits{}
}

// A Declaration is a loss as a task file and a plan name it. All of it is public. A parameter that the loss does not
// take is 0.
type Declaration struct {
	Name    string  `json:"name"`              // one of LossNames
	Classes int     `json:"classes,omitempty"` // softmax: number of classes, at least 2
	Level   float64 `json:"level,omitempty"`   // quantile: level in (0, 1)
	// huber, in units of the label, and smoothed-hinge, in units of the margin; above 0
	Width      float64 `json:"width,omitempty"`
	ScoreBound float64 `json:"score_bound,omitempty"` // poisson: largest score at which exp is kept, in (0, 300]
	// poisson: largest count; 0 accepts any, and then there is no Lipschitz constant
	MaxCount     float64   `json:"max_count,omitempty"`
	ClassWeights []float64 `json:"class_weights,omitempty"` // losses of classes, see NewWeighted; nil means 1 for all
	// logistic: probability of a flipped label, in [0, 0.5), see denoised
	LabelNoise float64 `json:"label_noise,omitempty"`
}

// The names of the parameters.
const (
	classes      = "classes"
	level        = "level"
	width        = "width"
	scoreBound   = "score_bound"
	maxCount     = "max_count"
	classWeights = "class_weights"
	labelNoise   = "label_noise"
)

// Bounds of parameters.
const (
	maxClasses    = 1 << 16
	maxScoreBound = 300 // squares of its exponential must stay finite
)

// A ParameterError reports an invalid parameter of a declaration.
type ParameterError struct {
	Parameter string // its name in JSON; of a list followed by a dot and the position, from 0
	Value     any
	Want      string // what would be accepted
}

// Error names the parameter, its value, and what would be accepted.
func (e *ParameterError) Error() string {
	return fmt.Sprintf("%s: %v, want %s", e.Parameter, e.Value, e.Want)
}

// Check returns a *ParameterError for the first parameter that is out of range, or that the loss does not take.
func (d Declaration) Check() error {
	t := TraitsOf(d.Name)
	if t.Name == "" {
		return &ParameterError{"name", fmt.Sprintf("%q", d.Name), "one of " + strings.Join(LossNames(), ", ")}
	}
	within := func(x, most float64) bool { return x > 0 && x <= most }
	for _, p := range [...]struct {
		name          string
		value         any
		given, sound  bool
		want, because string
	}{
		{level, d.Level, d.Level != 0, within(d.Level, math.Nextafter(1, 0)), "a number in (0, 1)", ""},
		{width, d.Width, d.Width != 0, within(d.Width, math.MaxFloat64), "a number > 0", ""},
		{scoreBound, d.ScoreBound, d.ScoreBound != 0, within(d.ScoreBound, maxScoreBound),
			fmt.Sprintf("a number > 0 and at most %d", maxScoreBound), ""},
		{labelNoise, d.LabelNoise, d.LabelNoise != 0, d.LabelNoise >= 0 && d.LabelNoise < 0.5, "a number in [0, 0.5)",
			": corrected for noise it is not convex"},
		{classes, d.Classes, d.Classes != 0, d.Classes >= 2 && d.Classes <= maxClasses, fmt.Sprintf("2 to %d", maxClasses),
			""},
		{maxCount, d.MaxCount, d.MaxCount != 0, d.MaxCount >= 0 && d.MaxCount <= math.MaxFloat64,
			"a number > 0, or 0 for any", ""},
		{classWeights, d.ClassWeights, d.ClassWeights != nil, true, "", ": its labels are no classes"},
	} {
		switch taken := t.Takes(p.name); {
		case p.given && !taken:
			return &ParameterError{p.name, p.value, fmt.Sprintf("nothing for loss %s%s", d.Name, p.because)}
		case taken && !p.sound:
			return &ParameterError{p.name, p.value, p.want}
		}
	}
	if d.ClassWeights == nil {
		return nil
	}
	if t.Labels == TwoClasses {
		return checkWeights(d.ClassWeights, 2)
	}
	return checkWeights(d.ClassWeights, d.Classes)
}

// NewLoss returns the loss of the given name, for losses without parameters: logistic, squared, absolute and hinge.
func NewLoss(name string) (Loss, error) { return Declaration{Name: name}.New() }

// New returns the declared loss, or an error that wraps a *ParameterError.
func (d Declaration) New() (Loss, error) {
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("loss: %w", err)
	}
	l := TraitsOf(d.Name).make(d)
	var err error
	switch {
	case d.LabelNoise != 0:
		l, err = denoise(d.LabelNoise, d.ClassWeights)
	case d.ClassWeights != nil:
		l, err = NewWeighted(l, d.ClassWeights)
	}
	if err != nil {
		return nil, fmt.Errorf("loss %s: %w", d.Name, err)
	}
	return l, nil
}

// A Loss is a function l(theta; e), convex in theta for every example e whose label passes CheckLabel. Implementations
// are values without state, safe for concurrent use. A task's own loss needs only these methods.
type Loss interface {
	// Name is the loss's name in task files, see LossNames.
	Name() string
	// Parameters is the length of theta for a feature vector of the given dimension: the same number for a loss of one
	// linear score, k times it for one score a class.
	Parameters(features int) int
	// Value returns l(theta; e).
	Value(theta []float64, e Example) float64
	// Gradient overwrites dst, of the length of theta, with the gradient at theta, or with a subgradient where the loss is
	// not differentiable. dst must not share memory with theta.
	Gradient(dst, theta []float64, e Example)
	// Lipschitz is the supremum of the subgradients' norms over all theta and labels, for features of norm at most x; +Inf
	// where there is none.
	Lipschitz(x float64) float64
	// Smoothness is the Lipschitz constant of the gradient over all theta and labels, for features of norm at most x;
	// +Inf where there is none, which includes every loss that is not differentiable.
	Smoothness(x float64) float64
	// CheckLabel refuses a label outside the domain of the loss. The error names what would be accepted.
	CheckLabel(y float64) error
}

// A Proximal loss is one whose prox operator is known, so that it has a Moreau envelope, see NewEnvelope.
type Proximal interface {
	Loss
	// Prox overwrites dst, of the length of theta, with argmin_u l(u; e) + (b/2) ||u - theta||^2 for a finite b > 0.
	// dst must not share memory with theta.
	Prox(dst, theta []float64, e Example, b float64)
}
