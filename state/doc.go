// Package state defines what the learner keeps on disk and the rule by which it may change.
//
// It holds formats and checks only: no disk, clock, goroutine or entropy. Subpackage pebblestore keeps the
// bytes in Pebble, [Memory] keeps them in the process, and storetest is the contract that both pass.
//
// What is kept is a [Checkpoint] (the cursor, the optimizer's whole state as opaque bytes, the signed messages that
// must be sent again verbatim) and the privacy ledger, an append-only chain of [Entry] values. A checkpoint has the
// [Ledger], the running sums of that chain: its newest hash, the open reservation, the largest charge, how many
// rounds, steps and users. They are all that a learner needs of it, so that a task of any length takes the same
// memory, the same time for a commit and the same to start. One commit changes all of it or nothing.
//
// Beside it a store keeps what the caller wants to look back at: a row for a round, and the model after it ([Kept]).
// Both are written, replaced and deleted in the commits of rounds, or in one that changes nothing else but, where a
// model is released again, the algorithm's state. Nothing reads them to go on.
//
// A start verifies that the newest entries lead to the sums. All entries, which a store may have moved to an archive,
// are verified by who reads them: they must make the sums of the checkpoint. Without its archive a state is whole and
// goes on: the archive is what proves to others how it came about.
//
// # What it promises
//
//   - A batch is applied at most once: [Next] accepts exactly the round after the committed one.
//   - Resume equals uninterrupted: formats are canonical, so k commits, a restart and m commits leave the
//     bytes of k+m commits.
//   - A round is charged before anybody is asked for a report: the reservation of round r+1 is in the same
//     commit as the signed bytes of round r+1. A reservation that was not settled, and a void round, count in full.
//   - A flipped byte, a truncated ledger or an unknown version is an error that says so, never a wrong model.
//
// # What it refuses
//
// It never holds anything of one user or of an unfinished batch: everything in a checkpoint is a function of
// batches that were released with their noise. A log-structured store keeps old versions of every value, so
// a running sum written twice would tell one user's report by subtraction. The hash chain detects damage and
// careless edits; somebody who can rewrite the whole folder can also rewrite the chain, so print or publish the head.
//
// # What the caller owes
//
//  1. Load the checkpoint; [ErrEmpty] means that the task starts. Its Ledger is the one to go on with.
//  2. At the start: [Ledger.Reserve] round 1, put the signed bytes of Round 1 in NextRound, commit with Round 0.
//  3. Send NextRound (or End) verbatim; it is the same after every restart.
//  4. When the batch of round Cursor.Round+1 is read and checked: step the optimizer, [Ledger.Spend] its real
//     figures ([Ledger.Void] if the batch is void), then [Ledger.Reserve] the following round.
//  5. Commit the new checkpoint with exactly the entries of step 4. If Reserve returned a [*BudgetError], or
//     the task is done, commit without NextRound and with End.
//  6. Only after Commit returned nil do anything that others can see. If it returned an error, or Failed is
//     closed, stop the process: only a new Load shows what is on disk.
package state
