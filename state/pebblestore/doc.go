// Package pebblestore keeps the learner's state in a Pebble folder. It is the only package that imports Pebble.
//
// It promises what [state.Store] promises: each commit is one synced batch with the checkpoint and its ledger
// entries, so after a crash at any moment the folder holds exactly some committed prefix, and every commit that
// was reported as done is in it. One process owns the folder at a time, readers included.
//
// # Layout
//
//	key                       value
//	"checkpoint"              the newest checkpoint, as state.Checkpoint encodes it
//	"archived"                sums of the ledger up to the last archived entry, as state.Ledger encodes them
//	"ledger/" + 8 bytes       a later ledger entry, of this sequence, big-endian, as state.Entry encodes it
//	"row/" + 8 bytes          what is kept of the round of this number, big-endian, as state.Kept encodes it
//	"model/" + 8 bytes        the model that is kept of the round, likewise
//
// The folder also contains FORMAT, the version of the whole folder, see [FolderFormat], and ledger.archive.
//
// # Archive
//
// Pebble holds the newest thousand entries of the ledger. Older ones are in ledger.archive, entry k at offset (k-1)
// state.EntryBytes, verbatim. About every five hundredth commit the committed entries that are not archived are written
// there and synced; then the commit's own batch writes the sums up to the last of them, and deletes them from Pebble.
// So a crash leaves an entry in Pebble, in the archive, or in both; if in both, it is read from Pebble. Only the part
// of the archive that the sums in Pebble cover is read. A torn end, and the end of a folder whose Pebble was rolled
// back, lie after that part and are overwritten by the same entries; entries of another history there are moved to a
// file ledger.archive.other.*.
//
// [Store.Load] does not read the archive: a learner starts and runs without it, or with a damaged one, and logs an
// error if the file is missing or short. [Store.Ledger] reads it, with an error that wraps [state.ErrArchive] at the
// first lost entry; state.Checkpoint.VerifyLedger finds changed entries. As an entry's offset follows from its number,
// the archive of a backup can be written over the beginning of a damaged one, which keeps later entries.
//
// Values carry their own version and SHA-256, so a value is checked even where Pebble's block checksum passes.
// Blocks are not compressed: what is on disk can be searched byte for byte.
//
// # What may be stored
//
// Only values computed from released noisy batches. Pebble overwrites nothing in place: old checkpoints stay in its log
// and tables until compaction, and in backups for ever. A running total, a report or a key must never be given to this
// package, not even for a moment.
//
// # Damage
//
// After Close all data are in tables, where a damaged byte anywhere is an error. After a crash the last commits are in
// the log alone, and damage in its last 32 KiB cannot be distinguished from the torn end that a crash leaves: the store
// then opens at an earlier commit. That is a rollback of the folder, not a wrong state: package learner/service refuses
// it if the broker has a newer round, unless service.Config.AcceptRollback is set.
//
// What Load returns after a kill is durable, even if the commit was not synced before: opening moves the log into
// tables, and syncs them.
//
// # Failure
//
// Pebble reports a broken commit or manifest to its logger's Fatalf and expects that the process ends there; if Fatalf
// returns, the commit is reported as done although it is not durable. Here Fatalf records the failure, closes
// [Store.Failed] and never returns: that goroutine blocks for ever, with Pebble's locks, so that nothing further is
// written. Waiting and later calls return [state.ErrFailed]. A failed flush or compaction is treated in the same way,
// because Pebble would repeat it without pause. The folder stays locked until the process ends, because Pebble's other
// goroutines may still write.
//
// # What the caller owes
//
//  1. Open; on [state.ErrLocked] ask the owner over its control socket instead.
//  2. Load, then commit each round as package state describes. Watch Failed, and end the process when it is closed.
//  3. Close. To make a backup, pass the results of Load and Ledger to [Write].
package pebblestore
