package schedule

import "testing"

// TestDefaultGoesWithTheCase: whatever a task is like, the method that stands for no name goes with it; and of a case with a plain loss
// exactly those methods go that the theorems are about.
func TestDefaultGoesWithTheCase(t *testing.T) {
	for i := range 1 << 5 {
		bit := func(k int) bool { return i>>k&1 == 1 }
		c := Case{Smooth: bit(0), Proximal: bit(1), Ridge: bit(2), Interactive: bit(3), Cohort: bit(4)}
		if err := c.Check(c.Default()); err != nil {
			t.Errorf("%+v: default %s: %v", c, c.Default(), err)
		}
		var goes []string
		for _, name := range Names() {
			m, _ := Of(name)
			if c.Check(name) == nil {
				goes = append(goes, name)
			}
			sound := (!m.Envelope || c.Proximal) && (m.Envelope || name == PSGD || c.Smooth) && (!m.Restarts || c.Ridge) && (!m.Interactive || c.Interactive && !c.Cohort)
			if sound != (c.Check(name) == nil) {
				t.Errorf("%+v: %s: %v", c, name, c.Check(name))
			}
		}
		if goes[0] != PSGD {
			t.Errorf("%+v: psgd goes with every convex loss, of %v", c, goes)
		}
	}
	for continuous, want := range map[string]string{Constant: PSGD, Decaying: PSGD, Epochs: PAGD} {
		c := Case{Smooth: true, Proximal: true, Continuous: continuous}
		if got := c.Default(); got != want || c.Check(want) != nil || c.Check(Auto) == nil {
			t.Errorf("%s: default %s, want %s, and not %s", continuous, got, want, Auto)
		}
	}
	if (Case{Smooth: true, Interactive: true, Floors: "pan"}).Check(PGD) == nil {
		t.Error("pgd under floors")
	}
}
