// Package consent is what a device checks before it takes part: a [Policy] of its operator, and the [Agreement] that it comes to with an
// announced task. It believes nothing that it can compute: epsilon is its own, with its own assumption about the other users.
//
// What a caller owes, in this order:
//
//  1. [Policy.CheckTask], once, with the Task as the learner signed it.
//  2. [Policy.AffordTotal] with [Agreement.Cost], before an event is charged, where the policy bounds all tasks together.
//  3. [Agreement.CheckRound] and [Agreement.CheckOrder] for every announced round, before anybody joins it.
//
// What is refused is a [RefusedError] that names field, value and what would be accepted.
package consent
