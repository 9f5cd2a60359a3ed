// Package client is the device: it turns events into sealed reports, sends each in one phase at most, and knows
// afterwards whether it was counted. A device with one event and a gateway with a million rows are the same code.
//
// It has two halves. The sans-IO half decides and can be stepped through in a test: [Policy] says which tasks and
// rounds a device agrees to, [Participation] is the automaton of one event. The other half, [Client], owns one
// goroutine, reads what learner and stage put, and performs the effects.
//
// # Promises
//
//   - An event takes part in one round, or in the rounds of one interactive phase, each once. It takes part in another
//     only if every publish that was made for it was acknowledged with a sequence above the cutoff of the attempt that
//     closed; in doubt it was counted.
//   - Participation is durable before the first publish, and so is every further attempt before its first publish. A
//     process that dies at any moment and comes back never draws again for an event that may have been sent.
//   - One draw for a round manifest: retries and new attempts send the same counts sealed anew. Another round gets a
//     new draw. A draw is deleted from the store when its outcome is known.
//   - A device that joins always sends, and always the same number of bytes: an invalid event is the zero vector.
//   - The device computes epsilon itself, with its own assumption about the other users, and compares it with its own
//     limit ([Policy]).
//
// # Refuses
//
// A task other than the pinned one, a round that contradicts its task or costs more than the policy allows, a suite
// without encryption unless the policy allows it: a [RefusedError] that names field, value and what would be accepted.
// Messages that nobody pinned has signed are not refused but ignored, and logged once.
//
// # What a caller owes
//
//  1. Give every user's event a key of its own, the same after a restart: [RowKey] and [EventKey]. The promise
//     of one phase is kept for keys; several rows of one person are several users to it.
//  2. Keep the store ([Store], package filestore) as long as the task lives. Losing it forgets who took part.
//  3. Publish, and believe the [Outcome]: never offer an event again under another key.
//  4. Keep outcomes, logs and counts of invalid rows at the gateway: they depend on the events.
package client
