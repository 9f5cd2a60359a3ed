package device

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAClockThatJumpsAfterItsComparison: between the comparison and the charge the clock goes ahead by years. The
// ledger is not told.
func TestAClockThatJumpsAfterItsComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, by := newClock(), time.Duration(0)
		c.read = func() time.Time { return time.Now().Round(0).Add(by) }
		c.compared(time.Now())
		time.Sleep(time.Hour)
		for _, jump := range []time.Duration{0, 30 * time.Second, -time.Hour, 70 * 365 * 24 * time.Hour} {
			by = jump
			if told := time.Until(c.now()); told > clockJump || told > jump {
				t.Errorf("a jump of %v: the ledger is told %v from now", jump, told)
			}
		}
		if !c.doubtful() {
			t.Error("it is not compared again")
		}
	})
}
