package wording

// Messages about a plan that gives a model worse than the best constant, and advice.
const (
	WorseThanConstant = "worse than the best constant"
	StepsTooLong      = "the steps are too long for these features, or the gradients are clipped too much: take fewer features, a smaller features.fourier.gamma, or schedule.interactive=true"
	TooMuchNoise      = "the noise hides the gradients: take a larger epsilon, more users, fewer features, or schedule.interactive=true"
	FewerOrMore       = "Take fewer features, a smaller features.fourier.gamma, a larger epsilon, more users, or schedule.interactive=true; learner simulate says which helps."
	// Uncut takes what the loss is at least, as a text.
	Uncut   = "at least %s where single losses are not cut at validation.loss_bound, as the gradients say"
	AtBound = "as bad as the scale shows, and it may be worse: a larger validation.loss_bound may tell"
)
