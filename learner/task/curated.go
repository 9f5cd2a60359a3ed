package task

import (
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Curated reports whether the method runs in one process that has all rows.
func (c Schedule) Curated() bool { return schedule.OnePlace(c.Algorithm) != nil }

// notCurated refuses a method of one process if rows are in many places.
func (c Schedule) notCurated() error {
	return refuse("schedule.algorithm", c.Algorithm, "a method of many places here: it is %v",
		schedule.OnePlace(c.Algorithm))
}

// validateCurated refuses keys that do not go with a method of one process, if the task has one.
func (s *Spec) validateCurated() error {
	switch {
	case !s.Schedule.Curated():
		return nil
	case s.Silo == nil || s.Silo.Count != 1 || s.Privacy.Trust != accounting.Local:
		return s.Schedule.notCurated()
	case s.Schedule.Interactive:
		return refuse("schedule.interactive", true, "nothing with schedule.algorithm %s, which has no rounds",
			s.Schedule.Algorithm)
	case s.Validation != nil && !s.Validation.Off:
		return refuse("validation", "set", "nothing with schedule.algorithm %s: there are no reports that could have scores",
			s.Schedule.Algorithm)
	case s.Model.Start != nil:
		return refuse("model.start", "set", "nothing with schedule.algorithm %s, which begins where the set does",
			s.Schedule.Algorithm)
	case !(s.Model.Radius > 0) && s.Model.Set != "box":
		return refuse("model.radius", s.Model.Radius,
			"a number > 0 with schedule.algorithm %s: its guarantee is for models in a bounded set", s.Schedule.Algorithm)
	}
	return nil
}
