// Package tracing makes an OpenTelemetry trace of every round, for who wants to see in one picture where a round spends its time: at the
// learner, which announces, waits and commits, and at the stage, which opens attempts and releases.
//
// Learner and stage compute the ids of a round's trace and of its root span from the task's name and the round's number, so their spans
// meet without anything added to a message. Attributes are public numbers of the round: what status and metrics show. No span is made
// for a report, since when one came is nobody's business.
//
// It is the only importer of OpenTelemetry.
package tracing
