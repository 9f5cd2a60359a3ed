// Package folder keeps what a helper of trust split must never forget, in one folder of mode 0700: its key, the tasks
// that it ever joined, and of each the one release that it signed last.
//
// Files:
//
//	identity.pem   the helper's Ed25519 key
//	identity       the folder's random id, the key's public half and place on the disk, of each task ever joined the id
//	               of its mark, and the processes that joined any
//	mark.<task>    the folder's id, the mark's own random id, and the attempt and signed Share released last
//	lock           held by one process for its life
//
// A file is replaced as a whole: written beside, synced, renamed over the old one, and the folder is synced. So a crash
// leaves the old content or the new. A task is listed before its first Join; a mark is written before anything of its
// release leaves.
//
// # Promises
//
//   - One process at a time has the folder ([Open]).
//   - Of one task no two attempts of one round, and none below the highest, are ever marked ([Folder.Release]).
//   - A folder that was put together of parts of different times is refused with [ErrOlder], and stays refused: a
//     listed task whose mark is missing, a mark with a release that is not listed, a mark of another folder, a file
//     that was changed. A copy of the folder is refused, because its key is another file than the one that was made
//     ([disk.Place]). A folder that was restored in its place, or that came with a copied disk or machine, cannot be
//     distinguished from the original; package shuffle/helper stops when it sees a record that the copy does not know,
//     such as a Join of another process ([Folder.Knows]).
//
// # What a caller owes
//
// The folder is on a disk that outlives the process, of a local file system where locks and fsync(2) do what they say.
// It is not backed up, copied or restored, and its machine is not put back from a snapshot: a helper that forgets a
// release makes a second one. A folder that is lost is another identity, and another task.
package folder
