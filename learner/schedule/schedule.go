// Package schedule is the table of methods: their names in task files and plans, what each consists of, and
// which of them go together with which losses, trusts and schedules. A task's validation and the planner ask
// it.
//
// Theorems are numbered as in Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR
// 2022, or, where a comment names them, in Lowy, Razaviyayn, Private Federated Learning Without a Trusted
// Server, ICLR 2023.
package schedule

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/learner/convex"
)

// Names of the methods.
const (
	PSGD                 = "psgd"
	PAGD                 = "pagd"
	PAGDEnvelope         = "pagd-envelope"
	PAGDRestarts         = "pagd-restarts"
	PAGDEnvelopeRestarts = "pagd-envelope-restarts"
	PGD                  = "pgd"
	PGDEnvelope          = "pgd-envelope"
	PGDRestarts          = "pgd-restarts"
	PGDEnvelopeRestarts  = "pgd-envelope-restarts"
	APGD                 = "apgd"
	APGDEnvelope         = "apgd-envelope"
	APGDRestarts         = "apgd-restarts"
	Prox                 = "prox"
	// Auto lets the plan take the method that does best on simulated rows of the task's shape.
	Auto = "auto"
)

// Kinds of plans.
const (
	// what was measured to learn well, see package learner/practical; no bound on the risk is proved
	Practical = "practical"
	Proved    = "proved" // a method of the table, with the theory's steps and a bound on the risk
)

// Ways to go on for as long as users come; "" ends.
const (
	Constant = "constant" // PSGD with a constant step and a window that forgets, see method.Stream
	Decaying = "decaying" // PSGD with steps that fall like 1/sqrt(t), see method.Stream
	Adaptive = "adaptive" // of practical plans: steps and cohorts that follow the stream, see method.Bank
	Epochs   = "epochs"   // PAGD restarted in epochs that double up to the planned rounds, see method.EpochsConfig
)

// Continuous lists the ways to go on of practical plans, or of proved ones.
func Continuous(practical bool) []string {
	if practical {
		return []string{Adaptive}
	}
	return []string{Constant, Decaying, Epochs}
}

// A Method is a row of the table.
type Method struct {
	Name        string
	Accelerated bool // PAGD; else descent steps and their average
	Envelope    bool // on the Moreau envelope: losses with a prox, smooth or not
	// a series in phases, on disjoint users or, accelerated and interactive, on the same; for objectives made strongly
	// convex by a ridge
	Restarts    bool
	Interactive bool // the same users answer every round of a phase
	// Minimizers reports whether silos report the minimiser of their loss near the announced point instead of
	// gradients, with the same rows in every round or new ones.
	Minimizers bool
	// Privacy and Sampling are the exponents of n in the theorem's bound on the excess risk; Sampling is 0 where it is
	// about the mean loss of the users.
	Privacy, Sampling float64
	// RidgePrivacy is the former with a ridge, logarithms left out; 0: a ridge changes nothing. What learning from n users
	// costs has the exponent -1 then.
	RidgePrivacy float64
}

// Exponents returns the exponents of n in the bound on the excess risk: of what privacy adds, and of what learning from n
// users costs anyway; the latter is 0 where the bound is about the mean loss of the users.
func (m Method) Exponents(ridge bool) (privacy, sampling float64) {
	if ridge && m.RidgePrivacy != 0 {
		return m.RidgePrivacy, -1
	}
	return m.Privacy, m.Sampling
}

// methods are in the order of the documentation.
var methods = [...]Method{
	// Theorem 4.1: any convex Lipschitz loss
	{Name: PSGD, Privacy: -1. / 2, Sampling: -1. / 2, RidgePrivacy: -1},
	// Theorem 4.3: smooth ones
	{Name: PAGD, Accelerated: true, Privacy: -4. / 5, Sampling: -1. / 2, RidgePrivacy: -4. / 3},
	// Theorem 4.7
	{Name: PAGDEnvelope, Accelerated: true, Envelope: true, Privacy: -2. / 3, Sampling: -1. / 2, RidgePrivacy: -1},
	{Name: PAGDRestarts, Accelerated: true, Restarts: true, Privacy: -2, Sampling: -1}, // Theorem 4.8
	{Name: PAGDEnvelopeRestarts, Accelerated: true, Envelope: true, Restarts: true, Privacy: -4. / 3, Sampling: -1},
	// Theorem 4.9, as all that follow; with a ridge Theorem 2.1 of Lowy, Razaviyayn, too
	{Name: PGD, Interactive: true, Privacy: -1, Sampling: -1. / 2, RidgePrivacy: -2},
	{Name: PGDEnvelope, Interactive: true, Envelope: true, Privacy: -1, Sampling: -1. / 2, RidgePrivacy: -2},
	{Name: PGDRestarts, Interactive: true, Restarts: true, Privacy: -2, Sampling: -1},
	{Name: PGDEnvelopeRestarts, Interactive: true, Envelope: true, Restarts: true, Privacy: -2, Sampling: -1},
	// Theorem 4.1 of Lowy, Razaviyayn, as all that follow; with a ridge the bound is on the population
	{Name: APGD, Accelerated: true, Interactive: true, Privacy: -1, RidgePrivacy: -1},
	{Name: APGDEnvelope, Accelerated: true, Interactive: true, Envelope: true, Privacy: -1, RidgePrivacy: -1},
	// on the mean loss of the users -2
	{Name: APGDRestarts, Accelerated: true, Interactive: true, Restarts: true, Privacy: -1, Sampling: -1},
	// phased output perturbation, docs/reference/bounds.md
	{Name: Prox, Minimizers: true, Privacy: -1, Sampling: -1. / 2},
}

// Names lists the names of all methods, Auto left out, in the order of the documentation.
func Names() []string {
	out := make([]string, len(methods))
	for i, m := range methods {
		out[i] = m.Name
	}
	return out
}

// Of returns the row of a name, and false where there is none.
func Of(name string) (Method, bool) {
	for _, m := range methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// Again returns the method with the same steps on the same users in every round; where there is none, the
// method of plain steps.
func (m Method) Again() (name string) {
	for _, a := range methods {
		if a.Interactive && a.Envelope == m.Envelope && a.Restarts == m.Restarts &&
			(name == "" || a.Accelerated == m.Accelerated) {
			name = a.Name
		}
	}
	return name
}

// OnRecords reports whether the bound on the method's risk is on the mean loss of the users at hand. With a
// ridge a bound on the population's mean loss follows.
func (m Method) OnRecords() bool { return m.Accelerated && m.Interactive }

// A Case holds the properties of a task that decide which methods apply to it.
type Case struct {
	Loss        string // its name, for refusals; "" where it has none
	Smooth      bool   // the loss's gradient is Lipschitz
	Proximal    bool   // the loss has a prox operator, convex.Proximal
	Ridge       bool   // the objective is strongly convex
	Interactive bool   // users may answer several rounds
	Silos       bool   // they are organisations, whose blocks are as large in every phase
	Cohort      bool   // the users of a round are set
	Continuous  string // Constant, Decaying, Epochs or ""
	Floors      string // the trust, where it covers one look of an intruder behind floors
	Minimizers  bool   // the loss is of one linear score, so that it is convex after clipping, and smooth
	All         bool   // all silos are in every round
	ByUser      bool   // people are protected
	Scores      bool   // a report has scores of the announced point
	Set         string // its kind, "" for a ball
}

// Validate returns an error if a method does not apply to the case: it names the condition of the theorem behind
// the method that the case lacks. It returns nil if the method applies. Auto applies to a task that ends.
func (c Case) Validate(name string) error {
	m, known := Of(name)
	endless := c.Continuous != ""
	switch {
	case name == Auto && endless:
		return errors.New("bounds of tasks that end are compared, and this one does not")
	case name == Auto:
		return nil
	case !known:
		return fmt.Errorf("no method of the name %q", name)
	case m.Minimizers:
		return c.minimizers()
	case m.Envelope && !c.Proximal:
		return fmt.Errorf("the loss%s has no prox operator, which the envelope is made of", c.loss())
	case !m.Envelope && (m.Accelerated || m.Interactive) && !c.Smooth:
		return fmt.Errorf("the loss%s is not smooth", c.loss())
	case m.Restarts && !c.Ridge:
		return errors.New("the objective is not strongly convex; a ridge would make it so")
	case m.Interactive && !c.Interactive:
		return errors.New("nobody answers more than one round; schedule.interactive allows more")
	case m.Interactive && c.Floors != "":
		return fmt.Errorf(
			"the guarantee of trust %s against an intruder is proved where nobody answers more than one round (Theorem C.3)",
			c.Floors)
	case m.Restarts && m.Interactive && !m.Accelerated && c.Silos:
		return errors.New("not with silos: they answer all rounds, and nobody may answer two of its phases")
	case m.Interactive && c.Cohort:
		return errors.New("everybody answers every round, so the cohort cannot be set")
	case endless && (m.Restarts || m.Interactive):
		return errors.New("it ends, and the stream does not")
	case c.Continuous == Epochs && !m.Accelerated:
		return errors.New("epochs are of accelerated methods")
	case endless && c.Continuous != Epochs && m.Accelerated:
		return fmt.Errorf("a %s step is psgd's", c.Continuous)
	}
	return nil
}

// minimizers returns an error that explains why silos cannot report minimisers, or nil if they can.
func (c Case) minimizers() error {
	switch {
	case !c.Silos:
		return errors.New("its reports are minimisers over many rows of one organisation, and the task declares none")
	case c.ByUser:
		return errors.New("what a minimiser moves by is proved where one row is replaced, and people are protected")
	case !c.Minimizers:
		return fmt.Errorf(
			"the loss%s is not known to be convex and smooth after clipping, which losses of one linear score are: %s", c.loss(),
			convex.SlopedLosses())
	case c.Ridge:
		return errors.New("no bound is proved with a ridge; its own weight keeps minimisers together")
	case c.Continuous != "":
		return errors.New("it ends, and the stream does not")
	case !c.All:
		return errors.New("its bound is for rounds of all silos; leave silo.reports out")
	case c.Interactive && c.Floors != "":
		return fmt.Errorf(
			"the guarantee of trust %s against an intruder is proved where nobody answers more than one round (Theorem C.3)",
			c.Floors)
	case c.Set != "" && c.Set != "ball" && c.Set != "nonnegative" && c.Set != "box":
		return fmt.Errorf("minimisers are kept in a ball, its nonnegative part or a box, and not in set %s", c.Set)
	case c.Scores:
		return errors.New("a minimiser is reported alone; leave validation out")
	}
	return nil
}

func (c Case) loss() string {
	if c.Loss == "" {
		return ""
	}
	return " " + c.Loss
}

// Default returns the method for a case that names none: PAGD or, where the loss is not smooth, PAGD on its
// envelope, which did best on most tasks. Where neither goes it is PSGD. Where the same users may answer
// several rounds it is Auto.
func (c Case) Default() string {
	if c.Interactive {
		return Auto
	}
	for _, name := range []string{PAGD, PAGDEnvelope} {
		if c.Validate(name) == nil {
			return name
		}
	}
	return PSGD
}
