package task

import (
	"math"
	"slices"
)

// Words of Privacy.Unit. The canonical form leaves UnitEvent out.
const (
	UnitEvent = "event"
	UnitUser  = "user"
)

// maxItems bounds the rows of a person that enter a report, which a device keeps until then.
const maxItems = 1 << 20

// ByUser reports whether all rows of a person that enter a report are protected together.
func (p Privacy) ByUser() bool { return p.Unit == UnitUser }

// UserRadius returns the norm to which the mean gradient of a person is clipped, as a share of the clip norm of a row;
// 0 where rows are protected, which are clipped once.
func (s *Spec) UserRadius() float64 {
	switch {
	case !s.Privacy.ByUser():
		return 0
	case s.User == nil:
		return 1
	case s.User.Radius > 0:
		return s.User.Radius
	}
	return 1 / math.Sqrt(float64(max(1, s.User.Items)))
}

// validate refuses a person's column and limits that are contradictory or out of range, or that do not go with the unit
// of privacy. taken lists the other fields that the task reads.
func (u *User) validate(unit string, taken Schema) error {
	switch unit {
	case UnitUser:
		if u == nil || u.Column == "" {
			return refuse("user.column", "", "the column that names the person a row is of, which privacy.unit user is about")
		}
	case "":
		if u != nil {
			return refuse("user", "",
				"nothing where single events are protected; privacy.unit: user protects all that a person contributes")
		}
		return nil
	default:
		return refuse("privacy.unit", unit, "user, or nothing, which is event")
	}
	if err := u.validateColumn(taken); err != nil {
		return err
	}
	switch {
	case u.Items < 1 || u.Items > maxItems:
		return refuse("user.items", u.Items, "a whole number from 1 to %d", maxItems)
	case u.Radius > 1:
		return refuse("user.radius", u.Radius,
			"at most 1: a share of the clip norm, which no mean of clipped gradients exceeds")
	case u.Radius < 0:
		return refuse("user.radius", u.Radius, "a number in (0, 1], or 0 for 1/sqrt(user.items)")
	case u.Wait < 0 || u.Wait > maxDeadline:
		return refuse("user.wait", u.Wait, "a duration from 0 to %s", maxDeadline)
	}
	return nil
}

// validateColumn refuses a column that is read for anything else, or that the format cannot have.
func (u *User) validateColumn(taken Schema) error {
	e, name := taken.Events, u.Column
	const path = "user.column"
	if e.Format.Vectors() {
		return refuse(path, name, "events in formats with named columns (%s): %s has none", namedFormats(), e.Format)
	}
	if err := validateColumnName(path, name, nil); err != nil {
		return err
	}
	if err := e.validatePresent(path, name); err != nil {
		return err
	}
	if name == e.Key || name == taken.Label || slices.Contains(taken.Columns, name) {
		return refuse(path, name, "a column that is neither a feature nor the label nor events.key")
	}
	return nil
}
