// Package leaderfile keeps the folder of a leader of two operators (Folder of package shuffle/stage): its signing key
// ([Create]), the list of the tasks that it ever began, and for each task a small file of marks, the leader's floored
// share of an attempt that is prepared, encrypted under a key in a file of its own, and the helper's Share of the round
// that was released last.
//
// Key, list and marks hold each other's random ids (package shuffle/roster). A key without its list, a list whose marks
// are missing, and marks of another folder are refused with stage.ErrFolder, whatever the broker shows or forgot: the
// stage of that key may have released what they do not know.
//
// Every step reads the marks, asks split.LeaderMarks, writes and syncs, under an exclusive lock of the task's lock
// file: processes of one stage share the folder. A file is written to a temporary one, synced, renamed, and the folder
// is synced, so a crash leaves the old one or the new one. Files of an attempt bear its number and part of its hash, so
// that marks name one file whatever a crash left beside it. A damaged file is an error, and is never taken for a
// missing one.
//
// When an attempt dies its key is overwritten where it lies, and synced, before the marks forget it: with the next
// attempt's release the share would be a second one. On disks that move what is overwritten (flash, copy on write) a
// part of the key may stay in blocks that no file has.
//
// Nothing in the folder is about one user: a share with its floor is uniform to anyone who does not know the helper's
// share, and both together are the content of the batch. The folder belongs to one machine. It must not be restored
// from a copy.
package leaderfile
