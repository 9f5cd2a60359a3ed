// Package learner is the sans-IO core of the learner: released totals in, query points and a model out. It knows no
// clock, goroutine, network or disk; learner/service performs the effects.
//
// Every round asks a cohort for the mean gradient at one point and takes one step. Algorithm is the interface of the
// methods, which are in package learner/method; package learner/planning chooses among them and plans their rounds; New
// builds the planned method. Methods add the gradient of a ridge themselves: it is public and costs no privacy.
//
// Promises. An Algorithm's state is a pure function of its plan and of the estimates it has consumed, see package
// learner/method. Everything an Algorithm holds is post-processing of released batches, so its bytes may be stored and
// shown.
//
// The caller's steps:
//
//  1. Plan once a task (package learner/planning), store the Plan with the state, and build the Algorithm with New from
//     the stored plan. A newer version may plan differently; a running task keeps its plan.
//  2. Announce a round at Query().Point, in the coordinates of its Frame, or for moments. Query is a function of the
//     state.
//  3. Turn the round's released totals into an Estimate with method.EstimateMean.
//  4. Step, MarshalBinary, and commit the bytes together with the cursor in one durable write, before announcing
//     the next round.
//  5. A void round (a batch that never came to be) is no step: leave the Algorithm alone and announce the next round at
//     the same Query().Point. The caller's cursor counts rounds; an Algorithm counts steps. Where the users of a
//     phase answer all its rounds, a void one is used up: call Skip.
//  6. Repeat until Done (never, in a continuous plan), then release Model, which is in the declared coordinates.
//     Model may be released earlier too, and must be where void rounds have used up the users; the plan's risk bound is
//     then not reached.
package learner
