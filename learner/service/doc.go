// Package service is the long-lived learner: it announces rounds, consumes each batch exactly once, and commits.
//
// The decisions are a sans-IO core: given the committed checkpoint and the bytes of a batch it returns the next
// checkpoint with its ledger entries, or an error. [Service.Run] performs the effects around it, in this order:
//
//  1. Load the committed state. Where there is none: learn the stage's key, build the signed Task, reserve round 1 in
//     the ledger, and commit all of it before anything is published.
//  2. Put Task, then Round r+1, byte for byte as committed. Other bytes in their place mean that another learner is
//     running: stop.
//     After three or more void rounds in a row, wait before the next Round.
//  3. Wait until batch.<r+1> is there. It is read by subject; there is no consumer to lose. Meanwhile look now and then
//     whether the records put so far are still on the broker. If not, go on as at a start: put them again, or refuse.
//  4. Check it against the pinned stage key, the task hash and the round manifest, estimate the mean gradient, step.
//  5. Commit model, cursor, ledger entry and the signed bytes of the following round in one write. Then go to 2.
//  6. After the last step, or when the budget refuses the next round, put End. Run returns a refusal, now and at every
//     later start.
//
// The core: core.go checks a batch and settles it, charge.go charges a round before it is announced, follow.go makes
// the next Round or End, progress.go sums up. Around it: service.go is the loop, broker.go puts and reads, rollback.go
// detects a state folder or broker that is older than the other, lost.go records that the broker lost since, voids.go
// waits after void rounds, finish.go ends a task early.
//
// A crash between any two of these steps repeats the same bytes, so nothing visible changes. A void batch is charged
// and leaves the model as it was: the next round asks at the same point.
package service
