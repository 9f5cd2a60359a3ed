package schedule

import (
	"strings"
	"testing"
)

// TestDefaultGoesWithTheCase: the default method applies to every task; and to a case with a plain loss exactly
// the methods apply that the theorems are about.
func TestDefaultGoesWithTheCase(t *testing.T) {
	for i := range 1 << 5 {
		bit := func(k int) bool { return i>>k&1 == 1 }
		c := Case{Smooth: bit(0), Proximal: bit(1), Ridge: bit(2), Interactive: bit(3), Cohort: bit(4)}
		if err := c.Validate(c.Default()); err != nil {
			t.Errorf("%+v: default %s: %v", c, c.Default(), err)
		}
		var goes []string
		for _, name := range Names() {
			m, _ := Of(name)
			if m.Minimizers {
				continue
			}
			if c.Validate(name) == nil {
				goes = append(goes, name)
			}
			sound := (!m.Envelope || c.Proximal) && (m.Envelope || name == PSGD || c.Smooth) && (!m.Restarts || c.Ridge) &&
				(!m.Interactive || c.Interactive && !c.Cohort)
			if sound != (c.Validate(name) == nil) {
				t.Errorf("%+v: %s: %v", c, name, c.Validate(name))
			}
		}
		if goes[0] != PSGD {
			t.Errorf("%+v: psgd goes with every convex loss, of %v", c, goes)
		}
	}
	for continuous, want := range map[string]string{Constant: PSGD, Decaying: PSGD, Epochs: PAGD} {
		c := Case{Smooth: true, Proximal: true, Continuous: continuous}
		if got := c.Default(); got != want || c.Validate(want) != nil || c.Validate(Auto) == nil {
			t.Errorf("%s: default %s, want %s, and not %s", continuous, got, want, Auto)
		}
	}
	for name, want := range map[string]string{PSGD: PGD, PAGD: APGD, PAGDEnvelope: APGDEnvelope,
		PAGDRestarts:         APGDRestarts,
		PAGDEnvelopeRestarts: PGDEnvelopeRestarts, PGD: PGD, PGDEnvelope: PGDEnvelope, PGDRestarts: PGDRestarts, APGD: APGD,
		APGDRestarts: APGDRestarts} {
		if m, _ := Of(name); m.Again() != want {
			t.Errorf("%s with the same users: %s, want %s", name, m.Again(), want)
		}
	}
	silos := Case{Smooth: true, Ridge: true, Interactive: true, Silos: true}
	if silos.Validate(PGDRestarts) == nil || silos.Validate(APGDRestarts) != nil {
		t.Error("phases of other users with silos who answer all rounds, or no stages of the same")
	}
	if (Case{Smooth: true, Interactive: true, Floors: "pan"}).Validate(PGD) == nil {
		t.Error("pgd under floors")
	}
}

// TestCaseOfProx: Prox is for silos that all answer, about losses whose minimisers' moves are known, in one
// pass or many; any other case is refused with the reason.
func TestCaseOfProx(t *testing.T) {
	good := Case{Smooth: true, Proximal: true, Silos: true, Minimizers: true, All: true}
	for _, interactive := range []bool{false, true} {
		good.Interactive = interactive
		if err := good.Validate(Prox); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, spoil := range map[string]func(*Case){
		"organisation":   func(c *Case) { c.Silos = false },
		"people":         func(c *Case) { c.ByUser = true },
		"the loss hinge": func(c *Case) { c.Minimizers, c.Loss = false, "hinge" },
		"ridge":          func(c *Case) { c.Ridge = true },
		"stream":         func(c *Case) { c.Continuous = Decaying },
		"all silos":      func(c *Case) { c.All = false },
		"trust pan":      func(c *Case) { c.Floors = "pan" },
		"validation":     func(c *Case) { c.Scores = true },
		"a box":          func(c *Case) { c.Set = "simplex" },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(Prox); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
