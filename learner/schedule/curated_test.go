package schedule

import (
	"slices"
	"strings"
	"testing"
)

// TestCuratedNames: a name belongs to a method of many places or to one of one process, and the refusal names
// the command that runs it.
func TestCuratedNames(t *testing.T) {
	for _, name := range CuratedNames() {
		if slices.Contains(Names(), name) || name == Auto {
			t.Errorf("%s is a method of many places too", name)
		}
		if err := OnePlace(name); err == nil || !strings.Contains(err.Error(), "learner fit --algorithm "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range append(Names(), Auto, "") {
		if OnePlace(name) != nil {
			t.Errorf("%s is refused where rows are in many places", name)
		}
	}
}
