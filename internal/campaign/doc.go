// Package campaign runs the whole system against itself: the real learner service, shuffle stages and device clients on
// the broker in memory, in a fake clock, driven by lists of operations that rapid draws and shrinks. It has tests only.
//
// # What is run
//
// A [testing/synctest] bubble holds one learner, two stage processes of one identity, and several publishers. An
// operation lets time pass and then crashes, stops, starts, cuts off or delays one of them, breaks its disk, lays a trap
// at its next write of a kind, or has the broker lose, double, reorder, lag or redeliver. Then all faults end,
// everybody is started again, and the task runs to its end, or until too few users are left.
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
