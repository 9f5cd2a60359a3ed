// Package campaign runs the whole system against itself: the real learner service, shuffle stages and device
// clients on the broker in memory, in a fake clock, driven by lists of operations that rapid draws and
// shrinks. It has tests only.
//
// # What is run
//
// A [testing/synctest] bubble holds one learner, two stage processes of one identity, and several publishers.
// A campaign is a list of operations, each some time after the last; then all faults end, everybody is
// started again, and the task runs to its end, or until too few users are left. The operations:
//
//	pass                     time goes on
//	start, stop, crash       a process; a crash takes effect between any two of its calls
//	trap                     a process dies or is cut off at its next call of a kind, which is done or not: the learner at
//	                         task, round and end; a stage at lease, open, fetch, ack, claim, batch, close and purge; a
//	                         publisher at publish, at a request for a place, and at the write of its store
//	disk                     the learner's next commit fails, made or not
//	cut, outage              a partition: of one process, of all
//	slow, fast               replies come late, writes happen after their callers gave up
//	lossy, clean             the broker drops, doubles, forgets to answer, answers from the past
//	redeliver, forget        deliveries come again; message ids are forgotten
//	reboot                   the broker was killed: gone for a while, and both of these
//	lie                      the broker replies falsely to the publishes of one gateway
//	suspend                  a process is suspended between two calls, for longer than its lease
//	full                     the broker refuses all reports for a while
//	flood                    somebody sends strange reports: noise, copies of what others sent, to attempts that are open, over or not there;
//	                         and requests places that nobody uses, or replies for the stage
//	roll back, lose          a stream is what it was some operations ago, or empty, and its sequences are given again; one record is gone
//	marks                    a folder of the stage's marks is emptied, or its last mark put back
//	restore                  the learner's disk is what it was some operations ago
//	sweep                    records of old rounds are removed, all, or some before the broker is gone
//	age                      so much time passes that all records are old
//	old disk, old marks      the disk or marks of the first rounds, after years
//	old round                a Round is put where it was removed, by a learner who was away since
//	wake                     a stage that was suspended since the first rounds goes on
//	return, advance          a device that went away in a removed round comes back; a round has to end
//
// The last six come after years: more rounds than the broker keeps, of a crowd that shares a coordinate, are
// played without a fault first.
//
// The stages have marks of their own, a folder each, or one together. A learner that finds its disk older
// ends, and is started again with leave to apply the broker's records, or is not. Plans without an end are ended
// when nothing happens any more.
//
// Deliveries come in order or in any, as the plan says; the broker makes them as they are fetched. In some
// plans it keeps a few messages and refuses more. A publisher runs rows, or publishes one user after the other
// and notes the outcome that each gets, in all its lives; its policy buys one participation or a few.
//
// # How users are seen
//
// Only totals leave the stage, and they are noisy. Here the entropy of devices and stages, which is a
// parameter, is a constant: every coin falls on zero and rounding moves no vector. User i is an event with
// feature i alone, so that the gradient is clipped to the norm L in coordinate i, and with two levels
//
//	total_i - users = how often user i is in the batch
//
// holds exactly. Who was counted twice, or not at all, is read off the batch. Production never sees such a
// source.
//
// # What must hold
//
//   - Nobody is in the totals of real batches twice, whatever bytes were ever visible; a record never changes.
//   - A real batch has a claim of the same attempt, and had it before it was visible; its Close says the same.
//   - A counted event is in one batch of its phase, or a copy of it lies below the cutoff and a fault that is known by
//     name met stages or broker between the round's first Open and its Close: where none did, counted is in the batch.
//     An uncounted one is in no batch, and every copy lies above; an unknown one has a reason. Summaries add up.
//   - The outcomes that a user ever got agree: a user with the outcome counted never gets another one, and the store
//     has the same; a user with the outcome uncounted is in no batch up to the round that was named; a user who was
//     never sent, by its outcome, was not charged.
//   - Where an attempt announces places, nobody is charged to it without a place that was asked for less than half of
//     its lease ago, no matter who answered.
//   - What the learner puts is on its disk first, a round with its reservation. Its disk is, byte for byte, what
//     another learner computes from the batches on the broker.
//   - The ledger's chain is whole, and charges each round at least what the accountant says.
//   - After End there is no further round; after the faults the task ends unless it waits for users.
//
// # What must hold though the broker lies
//
// A lie is a reply to a publish: a sequence beyond every cutoff or below all, another message's sequence,
// the refusal of a stored report, the acknowledgement of one that was not stored. It can cost users their place, and
// give them false outcomes; the two items above are not checked for users who got a lie. For every user, with every
// broker:
//
//   - Nobody is twice in one batch.
//   - What all batches that hold a user cost together, as the accountant composes them, is within what the user's
//     ledger says, and within the policy.
//   - A device believes what it was shown: counted if a reply's sequence is at or below the cutoff of the attempt
//     that closed; uncounted if every reply's sequence is above it, or is a refusal.
//   - All of the above that is not about single users: records, disks, the learner's ledger.
//
// # What must hold though the broker loses what it acknowledged
//
// All of the above where leases, reports, or records that decide nothing are lost. Otherwise these promises
// have conditions:
//
//   - One release of a round, and so nobody in two batches: its claim and its batch are kept, or the stages share
//     marks, which are kept. For users of other rounds only what holds within one batch is checked, and that
//     their devices agree with themselves. With such marks the batch after the loss of a real one is void.
//   - The learner's disk and what it announces follow from the batches that its ledger names. One whose disk went back
//     does not know what it announced later, and reports it, unless that Round was lost as well: then no record shows
//     it.
//   - An outcome: the Close and its Open are kept until devices have read them; else it comes with the end of the task,
//     as unknown.
//   - A place: who was acknowledged a report that is lost with all others, or sent to an attempt whose number is given
//     again, keeps it, as who vanishes does.
//   - Uncounted is in no batch: others send no copies while sequences of reports start again.
//
// # What must hold though old records are removed
//
// All of the above, and:
//
//   - A sweep that is cut short removes the batch of a round after its other records. One that comes to its end leaves
//     none that are old and far behind, but what was put again.
//   - A device of a removed round reports at once that the event is unknown, and goes on with others. One that knows no
//     round finds the newest, also where an old one was put again and the lease was lost.
//   - Records on the subjects of a removed round decide nothing: no second real batch of it is seen, and no stage
//     waits there.
//   - A learner whose folder is so old that the batches after it are gone reports it, whatever it is allowed.
//   - Of the crowd as many are in the batches as are counted, and in none more than were sent.
//
// After the faults either the task goes on, or the learner or a stage has ended with a sentence that names
// what was lost.
//
// # Organisations
//
// In plans of silos a user is a block of rows, each of which has a coordinate of its own: all that is said of
// users holds of blocks, all rows of a block are in a batch or none, and an organisation has one block in a
// round at most. Under trust local, where noise is as wide as the window and so all zero, a block is drawn
// once, or once in each round of its stint, whatever happens; it is charged for every draw, sent or not; and
// never uncounted.
//
// # What must hold though broker, learner and stage lie together
//
// Under trust local, with the plans that are made for silos: they hold one report about a block at most, or
// one for each round of its stint, and all of them cost no more than the plan says, whatever they announce,
// open, close and answer.
//
// Wrappers that break one promise each show that these checks can fail.
package campaign
