package main

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// TestStatementOfPeople: the account of a silo whose tasks are all of people is of a person, though people have
// none of their own.
func TestStatementOfPeople(t *testing.T) {
	for want, units := range map[string][]string{"the user that paid most": {task.UnitUser, task.UnitUser},
		"the event that paid most": {task.UnitUser, task.UnitEvent}} {
		s := statement{Unit: task.UnitEvent}
		for _, unit := range units {
			s.Tasks = append(s.Tasks, spending{Task: "t", Unit: unit})
		}
		var out strings.Builder
		if err := s.print(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %v\n%s", units, err, out.String())
		}
	}
}
