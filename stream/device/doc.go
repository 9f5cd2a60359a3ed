// Package device turns a device's events into sealed reports, sends each in one phase at most, and knows afterwards
// whether it was counted. A device with one event and one with the million rows of its users run the same code.
//
// An application opens a [Device] with [Open], beside a transport, and hands over its users' events with Submit.
// Commands make one with [New]: Run publishes rows, and Publish what a program has made vectors of itself.
//
// # The machines
//
// A few machines decide what a device does. The loop, one goroutine that owns all of them, does it (loop.go). A machine
// returns an effect for what it needs, such as a record, a write or a publish, and goes on with the result (effect.go);
// time and random choices come from outside, too. So a test can record what was decided, in which order and when:
// testdata/traces has such records of some situations.
//
//	machine     owns                                            decides
//	contract    the task that was agreed to, and the pin        whether to take part                  contract.go
//	rounds      rounds, attempts, Closes and the End            what to read, what a record changes   rounds.go, pairing.go
//	setback     rounds that the broker lacks or has replaced    whether the broker was put back       setback.go
//	core        events, the queue, outcomes passed to callers   how many may wait, and for what       core.go, queue.go
//	rules                                                       what an event may still do            rules.go
//	admission                                                   which events of the inbox wait        admit.go
//	usher       the line for places                             who asks for a place, who has one     places.go
//	sender      bundles that are to be sent, or sent again      who joins, what is sent               sender.go
//	settler                                                     what became of an event               settler.go
//	uplink      how the broker answers                          how much may be sent now              uplink.go
//	times       the time of the next poll, and of another try   when the loop acts by itself          times.go
//	beats       the grid of ticks                               when events join and reports leave    beat.go
//	clock       by how much this machine's clock is ahead       whether anybody may be charged        clock.go
//
// The loop performs effects with parts that decide nothing (perform.go): records reads and verifies, courier publishes
// and asks for places in goroutines of its own, accounts charge the ledger, reports draw; the store is the caller's.
//
// Two parts are packages of their own, which the machines rely on: consent, which tasks and rounds the device agrees to,
// by its own accounting; and participation, the automaton of one event, and the store that remembers it. ledger has what
// all tasks together cost whom.
//
// # The way of an event
//
// Three names say where an event is: the machine that holds it, its place in the queue while it waits
// (queue.go), and its participation.State, which alone outlives the process.
//
//	                 held by                          participation.State
//	Submit, Publish, Run
//	     │
//	  offered        inbox.go, bounded                Fresh
//	     │ a round has room: admission
//	  waiting ◀───┐  queue.go: waiting, drawn,        Fresh, or Uncounted from an earlier round
//	     │        │  or reserve
//	     │ join in sender.go: charged in the ledger (accounts.go), then in the store
//	  in flight   │  a bundle of its round (round.go)  Charged
//	     │   ▲    │
//	     │   └ sent again, newly sealed: no answer came, it was refused (refusals.go), or there is another attempt (sendOwed in sender.go)
//	     │        │
//	  acknowledged│  the same bundle                  Charged, until the Close of its round
//	     │ Close: settler
//	  settled ────┘  nobody, or the queue again:      Counted, Uncounted, Unknown
//	     │           uncounted and able to pay for another round, or a later round of its interactive phase
//	  told           to the caller, as an Outcome: Counted, Uncounted, Unknown, or Refused, which was never sent
//
// # What is read
//
// A client acts on wakes (takeWake in poll.go), which bring records whole, and reads little (readNew in rounds.go):
// where wakes were missed, before the first event after a pause joins, and on a timer that backs off (times.go).
// Records from wakes and records that are read pass the same checks (records.go) and the same steps (takeRound,
// takeOpen, takeClose).
//
// # Promises
//
//   - An event takes part in one round, or in the rounds of one interactive phase, each once. It takes part in
//     another only if every publish that was made for it was refused, or acknowledged with a sequence above the
//     cutoff of the attempt that closed; in doubt it was counted. All that is the broker's word, so the other round
//     is charged on top, and has to be within the policy's limits: a broker that lies gets no more than the ledger
//     says.
//   - Participation is durable before the first publish, and so is every further attempt before its first publish. A
//     process that dies at any moment and restarts never draws again for an event that may have been sent.
//   - One draw for a round manifest: retries and new attempts send the same counts sealed again. Another round gets
//     a new draw. A draw is deleted from the store when its outcome is known.
//   - Under trust split the counts are split into shares for each attempt, when they leave, and no share is stored
//     (shares.go). Nobody is charged before Open and Join of one attempt are there, both under the keys that the policy
//     pins.
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
// A task other than the pinned one, a task of trust split whose operators the policy does not name, a round that
// contradicts its task or costs more than the policy allows, a suite without encryption unless the policy allows it: a
// consent.RefusedError that names field, value and what would be accepted. Messages under a key that is not pinned are
// not refused but ignored, and logged once.
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
