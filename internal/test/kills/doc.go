// Package kills runs a task as real processes on a real NATS server and ends them with SIGKILL at random moments.
// It has tests only. What it cannot see of a single user, because the noise is real, package campaign sees in
// simulation; what campaign cannot see, because its broker, disks and processes are made of memory, is seen here.
//
// # What is run
//
// A learner, two processes of one stage, two publishers and a nats-server that keeps files and syncs each write.
// One after the other is killed, whichever a seeded draw names, and started again after a random pause, so that
// several may be gone at a time. Half of the moments are drawn from the clock; the others come up to a few
// milliseconds after the broker announced a record, because what matters lies between two records. After the last
// kill everything is left alone until the task has ended.
//
// # What must hold
//
//   - Every record that was ever seen on the broker is there in the end, with the same bytes; each round has one
//     outcome, and a real one the claim of the same attempt.
//   - When the learner is killed, every round that anybody saw is on its disk, the same bytes.
//   - Of publishers that are silos the same holds for blocks of rows, by the rows with which they begin; what is left
//     over is what fills no block.
//   - No user's event is counted twice: the users of a batch are at most those whose device says, durably, that this
//     round has counted them or may have. Each publisher's summary is what its store says, and adds up.
//   - The ledger's chain is whole and has one entry a round, of the batch's kind and users.
//   - The learner's disk, checkpoint and ledger, is byte for byte the same as that of an undisturbed learner that read
//     the same batches; snapshot and ledger as printed are the same text.
//   - No program ends by itself but at the task's end: what was killed around it is waited for.
//
// A task without an end runs for many rounds, under kills all the while, and is finished. Besides the above, what
// the learner keeps does not grow with the rounds.
//
// A publisher is asked to stop by SIGTERM and SIGINT, too, in rounds that are open. It ends with exit code 75, its
// summary claims no more than its store holds, and what is left in the end is as above.
//
// Each of these checks is shown to fail on evidence that was tampered with.
package kills
