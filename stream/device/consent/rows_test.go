package consent

import (
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
)

// TestRowsOfAReport checks that the work of a report, which ticks are sized for, covers all rows of its units.
func TestRowsOfAReport(t *testing.T) {
	a := Agreement{Spec: &task.Spec{}, Phases: []Phase{{}}}
	if a.Rows() != 1 {
		t.Errorf("an event has %d rows", a.Rows())
	}
	a.Phases[0].Params = randomizer.Params{Units: 50}
	if a.Rows() != 50 {
		t.Errorf("a block of 50 rows has %d", a.Rows())
	}
	a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Items: 16}
	if a.Rows() != 50*16 {
		t.Errorf("50 people of up to 16 rows have %d", a.Rows())
	}
	if a.Phases[0].Params.Units = 0; a.Rows() != 16 {
		t.Errorf("a person of up to 16 rows has %d", a.Rows())
	}
}
