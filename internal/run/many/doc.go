// Package many runs one role for many tasks in one process: the option --tasks of `learner run`, `ingest shuffle`,
// `ingest publish` and `ingest issuer`.
//
// A fleet follows a [List] of tasks, which changes while it runs, and runs a member, with a [Seat], for each task on it.
// A member that fails is shown with its error and started again after a wait, unless trying again mends nothing; then it
// waits until its task file changes. A panic of a member is such a failure. No member sees another: they share the
// process, its connection to the broker and what the caller gives them.
//
// Everything that a member shows is below /tasks/NAME/ of the fleet's endpoints, where it is what the same role shows
// for one task. /metrics has the metrics of all.
//
// What the caller owes: every field of [Config] that has no default, and a Run that returns when its context is done.
package many
