package consent

import "github.com/panlearn/panlearn/learner/report"

// checkProx refuses minimisers that may move by more than is charged for if one of units rows is replaced. It relies
// on the device's own loss, bound of features and set, whatever the plan claims about them.
func (a *Agreement) checkProx(field string, c report.Config, units uint64) error {
	x := c.Prox
	if x == nil {
		return nil
	}
	if a.Spec.Silo == nil || a.Spec.Privacy.ByUser() || a.card != nil {
		return Refuse(field+".prox", "a report of a minimiser",
			"one of gradients: minimisers are of an organisation's rows, with no people and no validation in the declaration")
	}
	if err := c.CheckProx(units, a.Set.Radius()*(1+2*tolerance)); err != nil {
		return Refuse(field+".prox", err.Error(), "a minimiser whose move where a row is replaced is known")
	}
	if most := 1 / (a.Loss.Smoothness(a.Features.Bound()) + x.Weight); !(x.StepSize <= most*(1+tolerance)) {
		return Refuse(field+".prox.step_size", x.StepSize, "at most %v, for the loss and the features that are declared",
			most)
	}
	return nil
}
