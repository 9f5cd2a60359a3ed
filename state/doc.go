// Package state defines what the learner keeps on disk and the rule by which it may change.
//
// It holds formats and checks only: no disk, clock, goroutine or entropy. Subpackage pebblestore keeps the
// bytes in Pebble, storetest.Memory keeps them in the process for tests, and both pass the contract storetest.Run.
//
// The state is a [Checkpoint] (the cursor, the optimizer's whole state as opaque bytes, the signed messages that must
// be sent again verbatim) and the privacy ledger, an append-only chain of [Entry] values. A checkpoint contains the
// [Ledger], the running sums of that chain: its newest hash, the open reservation, the largest charge, and the numbers
// of rounds, steps and users. A learner needs only these sums, so memory, the time of a commit and the time of a start
// do not grow with the task. One commit changes all of it or nothing.
//
// A store also keeps a history for the caller ([Kept]): a row for a round, and the model after it. Both are written,
// replaced and deleted in the commits of rounds, or in a commit of their own, which may change the algorithm's state
// when a model is released again. The learner does not need them to continue.
//
// A start verifies that the newest entries lead to the sums. All entries, which a store may have moved to an archive,
// are verified by their readers: they must lead to the sums of the checkpoint. A state without its archive is complete
// and usable; the archive proves to others how the sums came about.
//
// # What it promises
//
//   - A batch is applied at most once: [Next] accepts exactly the round after the committed one.
//   - Resume equals uninterrupted: formats are canonical, so k commits, a restart and m commits leave the
//     bytes of k+m commits.
//   - A round is charged before anybody is asked for a report: the reservation of round r+1 is in the same
//     commit as the signed bytes of round r+1. A reservation that was not settled, and a void round, count in full.
//   - A flipped byte, a truncated ledger or an unknown version is an error, never a wrong model.
//
// # What it refuses
//
// It never holds anything of one user or of an unfinished batch: everything in a checkpoint is a function of batches
// that were released with their noise. A log-structured store keeps old versions of every value, so a running sum
// written twice would reveal one user's report by subtraction. The hash chain detects damage and careless edits;
// somebody who can rewrite the whole folder can also rewrite the chain, so print or publish the head.
//
// # What the caller owes
//
//  1. Load the checkpoint; [ErrEmpty] means that the task starts. Continue with its Ledger.
//  2. At the start: [Ledger.Reserve] round 1, put the signed bytes of Round 1 in NextRound, commit with Round 0.
//  3. Send NextRound (or End) verbatim; it is the same after every restart.
//  4. When the batch of round Cursor.Round+1 is read and checked: step the optimizer, [Ledger.Spend] its real
//     figures ([Ledger.Void] if the batch is void), then [Ledger.Reserve] the following round.
//  5. Commit the new checkpoint with exactly the entries of step 4. If Reserve returned a [*BudgetError], or
//     the task is done, commit without NextRound and with End.
//  6. Only after Commit returned nil do anything that others can see. If it returned an error, or Failed is
//     closed, stop the process: only a new Load shows what is on disk.
package state
