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
// Beside Pebble's files lie FORMAT, the version of the whole, see [FolderFormat], and ledger.archive.
//
// # Archive
//
// Of the ledger Pebble holds the newest thousand entries. Older ones are in ledger.archive, entry k at offset (k-1)
// state.EntryBytes, verbatim. With every five hundredth commit or so the entries that are committed and not archived
// are written there and synced; then the commit's own batch has the sums up to the last of them, and deletes them from
// Pebble. So a crash leaves an entry in Pebble, in the archive, or in both, and in both it is read from Pebble: of the
// archive only what the sums in Pebble cover is believed. A torn end, and the end of a folder whose Pebble was rolled
// back, lie behind that and are written over by the same entries; entries of another history there are
// moved to a file ledger.archive.other.*.
//
// [Store.Load] reads no archive: a learner starts and goes on without it, or with a damaged one, and says in its log
// where the file is missing or short. [Store.Ledger] reads it, with an error that wraps [state.ErrArchive] at the
// first entry that is lost; state.Checkpoint.VerifyLedger finds entries that were changed. As an entry's place follows
// from its number, the archive of a backup can be written over the beginning of a damaged one, which keeps what came
// later.
//
// Values carry their own version and SHA-256, so a value is checked even where Pebble's block checksum passes.
// Blocks are not compressed: what is on disk can be searched byte for byte.
//
// # What may be stored
//
// Only what was computed from released noisy batches. Pebble overwrites nothing in place: old checkpoints
// stay in its log and tables until compaction, and in backups for ever. A running total, a report or a key
// must never be given to this package, not even for a moment.
//
// # Damage
//
// After Close all is in tables, where a damaged byte anywhere is an error. After a crash the last commits are in the
// log alone, and damage in its last 32 KiB cannot be distinguished from the torn end that a crash leaves: the store
// then opens at an earlier commit. That is a rollback of the folder, not a wrong state: package learner/service refuses
// it where the broker knows a newer round, until it is told to apply the batches again.
//
// What Load returns after a kill is durable, even if the commit was not synced before: opening moves the log into
// tables, and syncs them.
//
// # Failure
//
// Pebble reports a broken commit or manifest to its logger's Fatalf and expects that the process ends there;
// if Fatalf returns, the commit is reported as done although it is not durable. Here Fatalf records the
// failure, closes [Store.Failed] and never returns: that goroutine stays where it is, with Pebble's locks, so
// that nothing further is written. Calls that are waiting get [state.ErrFailed], and so does every later
// one. A failed flush or compaction is treated in the same way, because Pebble would repeat it without
// pause. The folder stays locked until the process ends, because Pebble's other goroutines may still write.
//
// # What the caller owes
//
//  1. Open; on [state.ErrLocked] ask the owner over its control socket instead.
//  2. Load, then commit round after round as package state says. Watch Failed, and end the process on it.
//  3. Close. A backup is made by [Write], of what Load and Ledger return.
package pebblestore
