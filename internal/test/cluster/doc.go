// Package cluster runs a task on three NATS servers that replicate, and kills them: learner, two stages and
// two publishers as processes, every stream in three copies. It has tests only.
//
// # What is done
//
//   - Each server in turn, the leader of the batches first, gets SIGKILL in the middle of a round, and restarts a while
//     later; or is frozen, so that its connections stay open and nobody replies; or stays dead to the end of the task.
//   - Below the programs, the ports of stream/natsjs write, publish and fetch while their servers die, and with a
//     minority of them, where nothing may be decided and nothing given up.
//   - A process is cut off from its server, gets no replies on an open connection, or has a very slow one.
//
// # What must hold
//
//   - No process ends before the task, and the task ends: a lost server costs time and nothing else.
//   - Every round has one batch, of as many users as the ledger charges; the streams that are written once hold as many
//     messages as sequences, on every server the same.
//   - Publishers' sums agree with the batches: every row in one is counted, or may be, and none is in two.
//   - The ledger's chain is whole and the snapshot valid.
package cluster
