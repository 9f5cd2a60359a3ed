package planning

import (
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner"
)

// Names of the methods, as task files and plans write them. Theorems are those of Cheu, Joseph, Mao, Peng, ICLR 2022.
const (
	MethodPSGD = "psgd" // Theorem 4.1: any convex Lipschitz loss
	MethodPAGD = "pagd" // Theorem 4.3: smooth ones
	// MethodPAGDEnvelope is PAGD on the Moreau envelope, Theorem 4.7: losses with a prox, smooth or not.
	MethodPAGDEnvelope = "pagd-envelope"
	// The restarts are series of the two before on disjoint users, Theorem 4.8, for objectives made strongly convex by a ridge.
	MethodPAGDRestarts         = "pagd-restarts"
	MethodPAGDEnvelopeRestarts = "pagd-envelope-restarts"
	// The pgd methods ask the same users in every round of a phase, Theorem 4.9. They want Problem.Interactive.
	MethodPGD                 = "pgd"
	MethodPGDEnvelope         = "pgd-envelope"
	MethodPGDRestarts         = "pgd-restarts"
	MethodPGDEnvelopeRestarts = "pgd-envelope-restarts"
	// MethodAuto lets the plan take the method with the smallest bound. Bounds are loose, so a method with a larger one
	// may still do better on a given task; simulate tells.
	MethodAuto = "auto"
)

// traits say what a method consists of.
type traits struct {
	accelerated bool // PAGD; else descent steps and their average
	envelope    bool // on the Moreau envelope
	restarts    bool // in phases on disjoint users
	interactive bool // one cohort answers all rounds of a phase
}

var methodTraits = map[string]traits{
	MethodPSGD:                 {},
	MethodPAGD:                 {accelerated: true},
	MethodPAGDEnvelope:         {accelerated: true, envelope: true},
	MethodPAGDRestarts:         {accelerated: true, restarts: true},
	MethodPAGDEnvelopeRestarts: {accelerated: true, envelope: true, restarts: true},
	MethodPGD:                  {interactive: true},
	MethodPGDEnvelope:          {interactive: true, envelope: true},
	MethodPGDRestarts:          {interactive: true, restarts: true},
	MethodPGDEnvelopeRestarts:  {interactive: true, envelope: true, restarts: true},
}

// Methods lists the names of all methods, MethodAuto left out, in the order of the documentation.
func Methods() []string {
	return []string{MethodPSGD, MethodPAGD, MethodPAGDEnvelope, MethodPAGDRestarts, MethodPAGDEnvelopeRestarts,
		MethodPGD, MethodPGDEnvelope, MethodPGDRestarts, MethodPGDEnvelopeRestarts}
}

// Applies says why a method has no plan for the problem: the theorem behind it asks for something that the problem does not
// have. It is nil where it does apply.
func (p Problem) Applies(method string) error {
	t, known := methodTraits[method]
	endless := p.Continuous != ""
	switch {
	case !known:
		return fmt.Errorf("no method of the name %q", method)
	case t.envelope && !p.Proximal:
		return errors.New("the loss has no prox operator, which the envelope is made of")
	case !t.envelope && (t.accelerated || t.interactive) && math.IsInf(p.Smoothness, 1):
		return errors.New("the loss is not smooth")
	case t.restarts && p.Ridge == 0:
		return errors.New("the objective is not strongly convex; a ridge would make it so")
	case t.interactive && !p.Interactive:
		return errors.New("users answer one round each; schedule.interactive allows more")
	case t.interactive && p.Trust.HasFloors():
		return fmt.Errorf("the guarantee of trust %s against an intruder is proved for users of one round (Theorem C.3)", p.Trust)
	case t.interactive && p.Cohort > 0:
		return errors.New("all users answer every round, so the cohort cannot be set")
	case endless && (t.restarts || t.interactive):
		return errors.New("it ends, and the stream does not")
	case p.Continuous == learner.ContinuousEpochs && !t.accelerated:
		return errors.New("epochs are of accelerated methods")
	case endless && p.Continuous != learner.ContinuousEpochs && t.accelerated:
		return fmt.Errorf("a %s step is psgd's", p.Continuous)
	}
	return nil
}

// DefaultMethod is the method that "" stands for: PAGD or, where the loss is not smooth, PAGD on its envelope, because bounds,
// which MethodAuto goes by, favour PSGD on tasks on which it does worse. Where neither applies it is PSGD. Where the same users
// may answer several rounds it is MethodAuto.
func (p Problem) DefaultMethod() string {
	if p.Interactive {
		return MethodAuto
	}
	for _, m := range []string{MethodPAGD, MethodPAGDEnvelope} {
		if p.Applies(m) == nil {
			return m
		}
	}
	return MethodPSGD
}
