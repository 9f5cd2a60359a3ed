// Package stage is the shuffle stage at work: it follows the rounds of one task on a broker, opens sealed reports,
// mixes each cohort in a shuffle.Mixer and releases one batch a round.
//
// # How it is built
//
// A round is a chain of phases (phase.go): seeking, settling, awaiting, inspecting, opening, collecting, claiming,
// releasing, contested, voiding, closing, sweeping. A phase says which one step it wants of the broker and is told
// what came of it; it has no clock, goroutine or network, so that a test can stop between any two steps. [Stage.Run]
// (run.go) owns the goroutine: it keeps the lease, performs the steps, repeats those that failed, and acknowledges.
//
// # Promises
//
//   - At most one batch of a round, real or void, whatever crashes and whoever else runs: an attempt puts its claim
//     before its batch, both are written by compare-and-set, and who loses erases its totals and sends nothing.
//   - A report is counted at most once, and only under the id, attempt and manifest that it was sealed for.
//   - Nothing is opened after the cutoff is fixed; the key is erased before the claim is put.
//   - Totals, key and id set live in memory only. A crash or a lost lease loses them, by design: the round is opened
//     again under a fresh key, and devices seal their same counts anew.
//   - Whatever a device sends ends in a [Reason]; it is counted and never logged.
//   - Memory: totals (dim words), the ids of one cohort, at most Prefetch sealed reports.
//
// # Refusals
//
// Run ends with an error that says what to do where another identity stands as the task's stage, where a record does
// not verify under its pinned key, where a round contradicts its task, where a batch could not fit the broker, and
// never for anything that a device sent.
//
// # What a caller owes
//
//  1. Hand out ports whose streams exist, with ATTEMPTS and BATCHES synced on every write or replicated.
//  2. Use one identity for all stage processes of a task; the task names it.
//  3. Call Run once; stop it by its context. Between claim and batch it goes on for up to LeaseTTL before it returns,
//     because stopping there would burn the round.
//  4. On nil the task is over. On a context error stop, or start a new Stage. On any other error a restart alone
//     does not help: read it.
//  5. Leave Config.Entropy nil.
package stage
