// Package participation is the durable memory of who took part in what: for each user's event a [Record], an automaton without
// clock, network or disk, and a [Store] that keeps it.
//
// It promises that an event takes part in one round, or in the rounds of one interactive phase, each once, and in another only
// if no batch can hold it; in doubt it was counted. It promises that for keys, not for people: several rows of one person are
// several users to it.
//
// # What a caller owes
//
//  1. [Record.Join] with a draw of its own for every round, then [Record.Sending] for every publish; both durable
//     ([Store.Write]) before the publish is made.
//  2. [Record.Acked] for every answer, and [Record.Decide] when a verified Close is there and no answer is on its way.
//  3. The store as long as the task lives. It must not be restored from a backup: an older copy has forgotten who took part.
package participation
