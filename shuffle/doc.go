// Package shuffle mixes the reports of one cohort into totals. It is the trusted step of the shuffle model, in memory
// only: reports go in, and once the cohort is complete a [Release] comes out, the histogram of the cohort's messages.
//
// In P_VEC (Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022, Algorithms 1 and 2)
// the messages are labelled bits. A uniformly permuted sequence of messages from a finite alphabet reveals its
// histogram and nothing else, so totals lose nothing and reveal nothing more: a test makes the permuted
// messages from released totals. A user's own count is the sum of that user's bits and not a message: no function of
// this package returns one.
//
// # Promises
//
//   - A report id is counted once. A report or a bundle is added whole or not at all, and only after all of it was
//     checked.
//   - Under the trusts with floors, Bin(N, p) is in every total before the first report and another one is added
//     after the last (Algorithm 6, pan-privacy): an intruder who reads this process's memory once, between two
//     reports, sees totals with a floor under them. Not covered: the report being added, sealed reports elsewhere,
//     and a second look.
//   - Missing users' noise is topped up to the planned cohort's. Reports with a window carry all their noise, and
//     get none.
//   - Every floor and top-up has a generator of its own, made when needed and erased after; no seed
//     and no single floor is kept.
//   - Nothing is released below the minimum cohort, and nothing twice.
//
// # Refusals
//
// [NewMixer] refuses cohorts whose totals could overflow. Whatever is passed to [Mixer.Add] ends in an [Outcome],
// never in a panic or an error that quotes it. There is no clock, no goroutine and no network in this package, and a
// Mixer is not for concurrent use.
//
// # What a caller owes
//
//  1. Make one Mixer for each attempt of a round, before its key is published. Never restore one from a copy.
//  2. Open each sealed report into one buffer, authenticate its ids and the number of users in it, Add, and
//     overwrite the buffer.
//  3. Acknowledge after Add whatever the outcome, or a bad report comes back for ever.
//  4. At Full, or at the deadline if CanClose, take the right to publish, and Close. Otherwise Erase.
//  5. Publish the Release once, and the same bytes in every retry.
//  6. If an attempt with floors dies, its users must not be counted again: their noise was looked at once already.
package shuffle
