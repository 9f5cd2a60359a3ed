// Package learner is the sans-IO core of the learner: released totals in, query points and a model out. It knows no
// clock, goroutine, network or disk; learner/service performs the effects.
//
// The methods are those of Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022, as state
// machines behind Algorithm: every round asks a cohort for the mean gradient at one point and takes one step. PSGD and PAGD
// (Algorithms 3 and 4) ask new users in each round; on the Moreau envelope of the loss PAGD is the method of Theorem 4.7,
// the devices sending the envelope's gradient; Restarts runs either in phases on disjoint users (Theorem 4.8); PGD
// (Algorithm 5, Theorem 4.9) is PSGD's recursion with the same users in every round of a phase. Stream and epochs of PAGD
// have no end. Precondition runs any of them in coordinates that a first cohort's second moments scale. A ridge, which is known to
// all, is added here and costs no privacy. Later papers plug in behind Algorithm.
//
// Promises. An Algorithm's state is a pure function of its configuration and of the estimates it has consumed:
// k steps, MarshalBinary, UnmarshalBinary and m more steps give the bytes of k+m steps. Sums run in a fixed order
// and no product is fused, so this holds across architectures. A Step that returns an error has changed nothing.
// Everything an Algorithm holds is post-processing of released batches, so its bytes may be stored and shown.
//
// Refuses. Estimates that are not finite or of another dimension, states of another method, dimension or
// configuration, totals that the declared users cannot have produced, plans whose numbers do not fit.
//
// The caller's steps:
//
//  1. MakePlan once a task, store the Plan with the state, and build the Algorithm with New from the stored plan. A
//     newer version may plan differently; a running task keeps its plan.
//  2. Announce a round at Query().Point, in the coordinates of its Scales, or for moments. Query is a function of the state.
//  3. Turn the round's released totals into an Estimate with EstimateMean.
//  4. Step, MarshalBinary, and commit the bytes together with the cursor in one durable write, before announcing
//     the next round.
//  5. A void round (a batch that never came to be) is no step: leave the Algorithm alone and announce the next
//     round at the same Query().Point. Counting rounds is the caller's cursor; an Algorithm counts steps. Where the users
//     of a phase answer all its rounds a void one is used up: Skip.
//  6. Repeat until Done, which a continuous plan never is, then release Model, with ScalesOf. Model may be released earlier too, and
//     must be where void rounds have used up the users; the plan's risk bound is then not reached.
package learner
