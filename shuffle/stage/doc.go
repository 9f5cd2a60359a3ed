// Package stage runs the shuffle stage: it follows the rounds of one task on a broker, opens sealed reports,
// mixes each cohort in a shuffle.Mixer and releases one batch a round.
//
// # How it is built
//
// A round is a chain of phases. A phase returns effects, which name the one call of the broker that it needs, and is
// handed the result; it has no clock, goroutine or network, so that a test can stop between any two calls. [Stage.Run]
// owns the goroutine: it keeps the lease (lease.go), performs the effects (perform.go), and repeats those that failed.
//
//	introducing -> enlisting -> seeking -> settling                                enlist.go, find.go
//	settling    -> closing     its batch is there
//	            -> awaiting    it has none
//	awaiting    -> inspecting  its Round is there
//	            -> recalling   the same where reports have tokens, and rounds before it are not read yet
//	            -> looking     the same under trust split
//	            -> seeking     the Round was put again after it had been removed
//	            -> ended       the task ended before it
//	            -> settling    for long it is not there: the round before, with a batch that may be lost; the next, if the task ended after it
//	recalling   -> inspecting  every list of tokens that a batch covers was read   recall.go
//	inspecting  -> contested   it is claimed
//	            -> voiding     a mark without its claim, or a Close without its batch
//	            -> opening     none of these; the queue is cleared                 clear.go
//	opening     -> collecting  the Open is ours                                    collect.go
//	            -> opening     another's: the next attempt, under a fresh key
//	            -> seeking     others worked on for long, and may have had the round removed: the attempt is dropped
//	collecting  -> marking     full, or late with the minimum and quiet: the cutoff is fixed, key and totals are erased
//	            -> finishing   the same under trust split: key is erased, the share has its floor
//	            -> reopening   the helper does not hold the attempt any more
//	            -> looking     the helper has released the round
//	            -> closing     there is an outcome after all: the attempt is dropped
//	            -> ended       the task ended before it: the attempt is dropped
//	            -> settling    the task ended after it, and its outcome is lost: the same
//	            -> seeking     another process opened the round after us: the same
//	marking     -> claiming    the mark is ours                                    mark.go
//	            -> inspecting  another process's: the release is erased
//	claiming    -> releasing   the claim is ours                                   claim.go
//	            -> spending    the same where reports have tokens
//	            -> contested   another's: the release is erased
//	            -> seeking     others worked on for long, as above: the same
//	spending    -> releasing   the round's lists of tokens are there               recall.go
//	            -> contested   another list is there, not ours
//	releasing   -> closing     there is a batch, ours or not
//	contested   -> closing     their batch is there                                void.go
//	            -> voiding     their lease expired twice
//	voiding     -> closing     there is a batch, void or not
//	closing     -> sweeping    the Close is there                                  close.go
//	sweeping    -> settling    the next round
//
// Under trust split the stage is the leader of two operators, and these phases come with it (pairing.go, exchange.go):
//
//	looking     -> inspecting  nothing of the round was released                   finishing.go
//	            -> finishing   its share is in the folder
//	            -> voiding     the helper released it, and the folder has no share
//	finishing   -> marking     the helper's Share is in the folder
//	            -> reopening   the helper reports that the attempt died: its key in the folder is overwritten
//	            -> looking     another process went further
//	reopening   -> opening     after a while, longer each time
//
// A phase that needs the lease and loses it is abandoned, with all that it holds, and seeking begins again. From the
// mark to the Close a phase goes on without the lease: bytes may have been sent that nobody else can finish.
//
// Reports are fetched by one goroutine while those of the last fetch are examined, and opened by Config.Workers
// goroutines; only Run's goroutine adds them to the totals.
//
// # Promises
//
//   - At most one batch of a round, real or void, whatever crashes and whatever other processes run: an attempt
//     puts its claim before its batch, both are written by compare-and-set, and the loser erases its totals and
//     sends nothing.
//   - A report is counted at most once, and only under the id, attempt and manifest that it was sealed for.
//   - Nothing is opened after the cutoff is fixed; the key is erased before the claim is put.
//   - Totals, key and id set live in memory only. A crash or a lost lease loses them, by design: the round is
//     opened again under a fresh key, and devices seal the same counts again.
//   - Under the trusts with floors one plaintext is in memory at a time, else a few for each worker; all are
//     overwritten.
//   - Whatever a device sends ends in a [Reason]; it is counted and never logged.
//   - Under trust split nothing that the stage does depends on its sum of shares before its floor is laid; what it puts
//     follows from its folder alone, whichever process puts it.
//   - Where reports have tokens a nonce is counted once, in an attempt and over all rounds with a batch: lists of
//     them are put between claim and batch, which covers them by its chain. A round without a batch spends nothing.
//   - Memory: totals (dim words), the ids of one cohort, at most Prefetch sealed reports, 16 bytes of
//     each token that was counted.
//
// # Refusals
//
// Run ends with an error that says what to do where the task has another stage identity, where a record does
// not verify under its pinned key, where a round contradicts its task, where a batch could not fit the broker, where
// the broker does not show all tokens that were counted ([ErrHidden]), and
// never for anything that a device sent.
//
// # What a caller owes
//
//  1. Hand out ports whose streams exist, with ATTEMPTS, BATCHES and SPENT synced on every write or replicated.
//  2. Use one identity for all stage processes of a task; the task names it.
//  3. Call Run once; stop it by its context. Between claim and batch it goes on for up to LeaseTTL before it returns,
//     because stopping there would make the round void.
//  4. On nil the task is over. On a context error stop, or start a new Stage. On any other error a restart alone
//     does not help: read it.
//  5. Leave Config.Entropy nil.
//  6. For trust split fill in Config.Leader, with a folder on a disk that outlives the process and is never restored.
package stage
