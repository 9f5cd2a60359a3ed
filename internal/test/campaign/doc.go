// Package campaign runs the whole system against itself: the real learner service, shuffle stages and device clients on
// the broker in memory, in a fake clock, driven by lists of operations that rapid draws and shrinks. It has tests only.
//
// # What is run
//
// A [testing/synctest] bubble holds one learner, two stage processes of one identity, and several publishers. A campaign
// is a list of operations, each some time after the last; then all faults end, everybody is started again, and the task
// runs to its end, or until too few users are left. The operations:
//
//	pass                     time goes on
//	start, stop, crash       a process; a crash takes effect between any two of its calls
//	trap                     a process dies or is cut off at its next call of a kind, which is done or not: the learner at
//	                         task, round and end; a stage at lease, open, fetch, ack, claim, batch, close and purge; a
//	                         publisher at publish and at the write of its store
//	disk                     the learner's next commit fails, made or not
//	cut, outage              a partition: of one process, of all
//	slow, fast               answers come late, writes happen after their callers gave up
//	lossy, clean             the broker drops, doubles, forgets to answer, answers from the past
//	redeliver, forget        deliveries come again; message ids are forgotten
//	reboot                   the broker was killed: gone for a while, and both of these
//
// Deliveries come in order or in any, as the plan says; the broker makes them as they are fetched.
//
// # How users are seen
//
// Only totals leave the stage, and they are noisy. Here the entropy of devices and stages, which is a parameter, is a
// constant: every coin falls on zero and rounding moves no vector. User i is an event with feature i alone, so that
// the gradient is clipped to the norm L in coordinate i, and with two levels
//
//	total_i - users = how often user i is in the batch
//
// holds exactly. Who was counted twice, or not at all, is read off the batch. Production never sees such a source.
//
// # What must hold
//
//   - Nobody is in the totals of real batches twice, whatever bytes were ever visible; what stands once never changes.
//   - A real batch has a claim of the same attempt, and had it before it was visible; its Close says the same.
//   - A counted event is in the batch of its round, or a copy of it lies below the cutoff; an uncounted one is in no
//     batch, and every copy lies above; an unknown one has a reason. Summaries add up.
//   - What the learner puts is on its disk first, a round with its reservation. Its disk is, byte for byte, what another
//     learner computes from the batches on the broker.
//   - The ledger's chain is whole, and charges each round at least what the accountant says.
//   - After End there is no further round; without faults the task ends unless it waits for users.
//
// Wrappers that break one promise each show that these checks can fail.
package campaign
