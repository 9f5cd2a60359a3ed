// Package consent makes the checks of a device before it takes part: a [Policy] of its operator, and the [Agreement]
// that it comes to with an announced task. It believes nothing that it can compute: epsilon is its own, with its own
// assumption about the other users.
//
// What a caller owes, in this order:
//
//  1. [ReadTask], [Policy.CheckPin] and [Policy.CheckTask], once, with the Task as it is on the broker.
//  2. [Policy.AffordTotal] with [Agreement.Charge], before an event is charged, where the policy bounds all tasks
//     together.
//  3. [Agreement.CheckRound] and [Announcement.CheckOrder] for every announced round, before anybody joins it.
//  4. [Announcement.ReadRound] and its like for every record that comes later. What they refuse counts as not there.
//
// All of these checks are numbered in docs/reference/refusals.md. What a policy refuses is a [RefusedError] that names
// field, value and what would be accepted.
package consent

import "fmt"

// A RefusedError means that a device does not take part: its policy, its pins or its own accounting forbid it. Its
// fields hold public values only. Commands exit with code 3, and trying again does not help.
type RefusedError struct {
	Field    string // as the message or the policy names it: plan.minimum, round 3: point
	Value    string // what was found
	Accepted string // what would be accepted
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s is %s: want %s", e.Field, e.Value, e.Accepted)
}

// Refuse makes the *RefusedError of a field that is value; accepted and args say, as for fmt.Sprintf, what would be
// accepted.
func Refuse(field string, value any, accepted string, args ...any) error {
	return &RefusedError{Field: field, Value: fmt.Sprint(value), Accepted: fmt.Sprintf(accepted, args...)}
}
