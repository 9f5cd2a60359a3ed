// Package markfile keeps the marks of a shuffle stage (Marks of package shuffle/stage) in a folder: for each task one
// small file with the highest round that was claimed, and the instance of the process that claimed it.
//
// A mark is written to a temporary file, synced, renamed over the old one, and the folder is synced, so a crash leaves
// the old mark or the new one. A file that was damaged is an error and never a lower mark. Marks hold nothing of users.
//
// Processes of one stage on one machine should share a folder: they write one after the other, under an exclusive lock
// of the task's lock file, and of those that claim one round the first alone gets it. That holds also where each of
// them believes to have the lease, because the broker shows them different records. On other machines there are other
// folders, which know only what was claimed there. A folder that is lost, or restored from an older copy, protects
// nothing that was claimed since: do not back it up.
//
// What the caller owes: [Open] the folder, and hand the result out as stage.Config.Marks. The folder is on a local file
// system, where locks and fsync(2) do what they say.
package markfile
