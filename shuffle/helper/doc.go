// Package helper runs the second operator of trust split: it joins the leader's attempts, decides with Prio3 which
// reports count, and releases one aggregate share a round, under a floor of its own.
//
// # How it is built
//
// The mechanism is split.Desk and split.Helper, values without a clock or network. Around them are two goroutines and
// the adapter's. [Helper.Run] follows the records: it finds the Task, the newest Round and its newest Open, verifies
// them as a device does, and puts Joins and Shares. The adapter's goroutine brings messages of the leader (exchange.go):
// each is verified, opened and answered there. Reports are decided on all processors by a goroutine of the attempt
// (attempt.go). One mutex guards what they share.
//
// # Promises
//
//   - The helper works for the leader, the learner and the task that its operator pinned, and for nobody else: it
//     refuses a Task that does not name all three keys.
//   - One release a round, whatever crashes: the folder's mark is written before anything of a release leaves, and all
//     that leaves of it are the bytes of that mark. A helper joins no round at or below its mark, and no round that has
//     a Share.
//   - Nothing but outcomes, and shares under a floor, leave the process. A floor follows from 32 fresh bytes of the
//     operating system and a secret of the key file together.
//   - Keys, ids and shares of an attempt live in memory alone, and are erased when it is released, replaced or over.
//   - Whatever devices, leader and broker send is counted by [Reason] or split.Outcome, and never logged.
//
// # Refusals
//
// Run ends with an error that wraps folder.ErrOlder where the folder is not as this identity left it: files of
// different times, a Join of a task that the folder never joined, or a Share above the mark with the identity's own
// signature. A restart does not help; the task needs a new identity.
//
// # What a caller owes
//
//  1. Hand out ports whose streams exist, and a folder that no other process has.
//  2. Pin the leader's and the learner's keys by configuration.
//  3. Call Run once; stop it by its context. On nil the task is over.
//  4. Keep core dumps, swap and snapshots of memory from the process.
package helper
