// Package intrusion steals the disk of a running system, and dumps its memory, and looks for what must not be there. It
// has tests only.
//
// # What is run
//
// A real learner on a Pebble folder, a real shuffle stage, and real devices, on an embedded NATS server that keeps
// all its streams in files: one process, the entropy of production. While they work, all their folders are copied,
// as a thief or a crash would find them: between two reports, at each announcement, release and commit, and when
// all is over. Logs are kept at debug level, and /metrics is read as often.
//
// # What must not be there
//
// The test knows every secret of the run. Devices pass their draws to it; the private key of each attempt is found in a
// heap dump that is made while the attempt is open, by trying what looks like a key against the public one; with it the
// recorded reports are opened, and the running totals added up in the order in which the stage took them. Then every
// byte of every copy is searched, at every offset, in many encodings, for
//
//   - the content of one user's report, and the gradient behind it;
//   - the totals between two reports, or a closed round's totals before its top-up;
//   - the sum of the users' gradients without noise;
//   - the private key of an attempt, or an identity's private key outside its file.
//
// After Close the same search for a key goes through the heap, and the same trial of everything that looks like a key
// through the heap and the disk: nothing that is left opens what was recorded.
//
// # What may be there
//
// Every version of the learner's state that the log and the tables of the LSM tree hold is, byte for byte, one that
// another learner computes from the batches that were released, and the times at which the broker stored them: so it is
// post-processing, and never the middle of a batch. The same holds for what is kept of earlier rounds, models included.
//
// Runs in which one of these things is kept on purpose show that each search can find it.
package intrusion
