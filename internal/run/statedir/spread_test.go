package statedir

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
)

// TestSpreadIsWhatWasReleased: it is in the units of the data, so that a column in other units has a spread in those; a
// proved plan has none.
func TestSpreadIsWhatWasReleased(t *testing.T) {
	proved := strings.Replace(runtest.Words, "schedule: {", "schedule: {algorithm: psgd, ", 1)
	for name, file := range map[string]string{"classes": runtest.Words, "numbers": runtest.Numbers, "proved": proved} {
		_, view := ended(t, runtest.Parsed(t, file))
		snapshot, err := view.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		spread := view.Spread(snapshot.Features)
		if name == "proved" {
			if spread != nil {
				t.Errorf("%s: %v", name, spread)
			}
			continue
		}
		if len(spread) != len(snapshot.Features) {
			t.Fatalf("%s: %d spreads of %d features", name, len(spread), len(snapshot.Features))
		}
		for j, c := range snapshot.Features {
			if s := spread[j] * c.Factor; s <= 0 || s > 2 {
				t.Errorf("%s: the spread of %s is %g declared scales", name, c.Name, s)
			}
		}
	}
}
