// Package device turns a device's events into sealed reports, sends each in one phase at most, and knows afterwards
// whether it was counted. A device with one event and one with the million rows of its users run the same code.
//
// An application opens a [Device] with [Open], beside a transport, and hands over its users' events with Submit.
// Commands make one with [New]: Run publishes rows, and Publish what a program has made vectors of itself. Behind them
// one goroutine, the loop, owns everything; it
// reads what learner and stage put, and performs what the parts below decide. Each of them can be stepped through in a
// test:
//
//   - consent: which tasks and rounds the device agrees to, by its own accounting;
//   - participation: the automaton of one event, and the store that remembers it;
//   - ledger: what all tasks together cost whom.
//
// # The way of an event
//
// Three names say where an event is: the part of the loop that holds it, its place in the queue while it waits
// (queue.go), and its participation.State, which alone outlives the process.
//
//	                 held by                          participation.State
//	Submit, Publish, Run
//	     │
//	  offered        inbox.go, bounded                Fresh
//	     │ a round has room: admit.go
//	  waiting ◀───┐  queue.go: waiting, drawn,        Fresh, or Uncounted from an earlier round
//	     │        │  or reserve
//	     │ join in publish.go: charged in the ledger (accounts.go), then in the store
//	  in flight   │  a bundle of its round (round.go)  Charged
//	     │   ▲    │
//	     │   └ sent again, newly sealed: no answer came, it was refused (refusals.go), or there is another attempt (resend in publish.go)
//	     │        │
//	  acknowledged│  the same bundle                  Charged, until the Close of its round
//	     │ Close: settle.go
//	  settled ────┘  nobody, or the queue again:      Counted, Uncounted, Unknown
//	     │           uncounted and able to pay for another round, or a later round of its interactive phase
//	  told           to the caller, as an Outcome: Counted, Uncounted, Unknown, or Refused, which was never sent
//
// # What is read
//
// A client acts on wakes (hear.go), which bring records whole, and reads little (poll in follow.go): where wakes were
// missed, before the first event after a pause joins, and on a timer that backs off (pace.go). What is heard and what
// is read pass the same checks (records.go) and the same steps (takeRound, takeOpen, takeClose).
//
// # Promises
//
//   - An event takes part in one round, or in the rounds of one interactive phase, each once. It takes part in
//     another only if every publish that was made for it was refused, or acknowledged with a sequence above the
//     cutoff of the attempt that closed; in doubt it was counted. All that is the broker's word, so the other round
//     is charged on top, and has to be within the policy's limits: a broker that lies gets no more than the ledger
//     says.
//   - Participation is durable before the first publish, and so is every further attempt before its first publish.
//     A process that dies at any moment and comes back never draws again for an event that may have been sent.
//   - One draw for a round manifest: retries and new attempts send the same counts sealed again. Another round gets
//     a new draw. A draw is deleted from the store when its outcome is known.
//   - A silo whose rows answer several rounds reports about as many in each, in whatever life of the process, under
//     one key, and with the same trials of noise: both are in the store before the first draw.
//   - A device that joins always sends, and always the same number of bytes: an invalid event is the zero vector.
//   - Events join, and reports leave, on the ticks of a grid of time (beat.go): when depends on when events came,
//     not on what they hold, as long as the work for them fits a tick.
//   - The device computes epsilon itself, with its own assumption about the other users, and compares it with its
//     own limit.
//
// # Refuses
//
// A task other than the pinned one, a round that contradicts its task or costs more than the policy allows, a suite
// without encryption unless the policy allows it: a consent.RefusedError that names field, value and what would be
// accepted. Messages that nobody pinned has signed are not refused but ignored, and logged once.
//
// # What a caller owes
//
//  1. Give every user's event a key of its own, the same after a restart: the user's id to Submit, else
//     participation.RowKey and participation.EventKey. The promise of one phase is kept for keys, so several
//     rows of one person are several users to it. In a task that protects people, all rows of one are published
//     together instead, under the person's key.
//  2. Keep the store (Config.Folder, package filestore) as long as the task lives. Losing it forgets who took part.
//  3. Publish, and believe the [Outcome]: never publish an event again under another key.
//  4. Keep outcomes, logs and counts of invalid rows to the device's operator: they depend on the events.
package device
