// Package markfile keeps the marks of a shuffle stage ([stage.Marks]) in a folder: for each task one small file with the
// highest round that was claimed.
//
// A mark is written to a temporary file, synced, renamed over the old one, and the folder is synced, so a crash leaves
// the old mark or the new one. A file that was damaged is an error and never a lower mark. Marks hold nothing of users.
//
// Processes of one stage on one machine may share a folder: only the one that holds the lease writes. On other machines
// there are other folders, which know only what was claimed there. A folder that is lost, or restored from an older copy,
// protects nothing that was claimed since: do not back it up.
//
// What the caller owes: [Open] the folder, and hand the result out as stage.Config.Marks.
package markfile
