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
//	"ledger/" + 8 bytes       ledger entry with this sequence, big-endian, as state.Entry encodes it
//
// Beside Pebble's files lies FORMAT, the version of the whole: see [FolderFormat].
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
// After Close all is in tables, where a damaged byte anywhere is an error. After a crash the last commits are in
// the log alone, and damage in its last 32 KiB cannot be told from the torn end that a crash leaves: the store then
// opens at an earlier commit. That is a rollback of the folder, not a wrong state: package learner/service refuses it
// where the broker knows a newer round, until it is told to apply the batches again.
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
//  3. Close. A backup copies the closed folder; a checkpoint of an open store is Pebble's own and comes later.
package pebblestore
