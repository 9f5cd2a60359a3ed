package convex

// A ClassShape describes a loss of classes to a practical plan (package practical), which steps from the best constant.
// Slopes are vectors with a number for each score.
type ClassShape struct {
	Slope float64 // length of the slopes at scores of 0
	// Bend returns the largest second derivative by the scores at the best constant, for classes of these shares.
	Bend func(shares []float64) float64
	// Length and Square return the length of an event's slopes at the best constant, and its square: of a class with the
	// given share, where squares is the sum of the squares of all shares.
	Length, Square func(share, squares float64) float64
	Noise          float64 // approximate weight of the gradients' noise in the curvature of steps
	Smoothing      float64 // smoothing of the steps, see Smoothed
	// Least is the least mean loss of a constant for two classes, divided by the share of the rarer one; 0 if that ratio
	// is not constant.
	Least  float64
	Stream streamShape
}

// A streamShape describes a loss to a plan that follows a stream without end, along one coordinate of the steps.
type streamShape struct {
	Planned   float64 // low estimate of the mean second derivative, for planning cohorts
	Curvature float64 // the same, for the steps
	Slope     float64 // variance of the gradient of one event at the optimum
	Spread    float64 // expected distance of the optimum from the start
	Trust     float64 // growth of the curvature with the squared norm of a gradient beyond its noise
}

// Residuals describes numeric or count labels before the steps on their loss.
type Residuals struct {
	Center, Deviation float64 // of the labels
	Left              float64 // standard deviation of the residual of a linear fit, in units of Deviation
}

// A FitShape describes a loss of numbers or counts to a practical plan (package practical), as a function of z with
// score = Gain z + Offset. Steps begin near a linear fit to (label - Center)/Deviation.
type FitShape struct {
	Gain, Offset float64
	Unit         float64 // ratio of the loss's slopes to the slopes in z
	Clip         float64 // approximate cut of slopes
	Curvature    float64 // mean second derivative
	Step         float64 // of descent along whitened coordinates
	Slope        float64 // standard deviation of slopes at the fit
	Start        float64 // factor from a linear fit of the label to a fit of z
	Clipped      float64 // share of gradients expected to be clipped at the fit, all of them being equally long
	Smoothing    float64 // smoothing of the steps, see Smoothed
}

// ClassShape returns the shape of a declared loss of classes. It panics for losses of other labels.
func (d Declaration) ClassShape() ClassShape { return TraitsOf(d.Name).class(d) }

// FitShape returns the shape of a declared loss of numbers or counts. It panics for losses of classes.
func (d Declaration) FitShape(r Residuals) FitShape { return TraitsOf(d.Name).fit(d, r) }
