// Package audit tries to refute a privacy claim by running what the claim is about: a device's encoder, the real
// randomizer and the real mixer for one round, with one user on two inputs that are far apart in the ball, in one
// coordinate or spread over several, and everybody else at zero.
//
// Fewer users report than were planned, so the stage has to top up: the smallest cohort, and, where nearly all of the
// noise is to be the stage's, none but those who change and the dishonest. A stage that counts the top-up and does not
// add it fails, and so does an encoder that cuts a vector coordinate by coordinate instead of clipping it.
//
// It promises one direction only. A failed audit refutes the claim at the stated confidence: code, parameters or
// arithmetic are wrong. A passed audit proves nothing; the proof is the accountant's. Its power is stated by the
// numbers: at delta = 1e-6 no affordable number of trials sees half of the noise missing, so the whole claimed curve
// is tested, where its values are large. With the default number of trials a cohort of 1000 at epsilon = 1 (delta(0) =
// 0.094) with half of its noise (0.133) fails. Report.RefutableShare says for each audit how much of the noise would
// have to be missing.
//
// A user who reports in T rounds leaves so little in each that one user in one round cannot be seen. k users who
// change together in one round can: Theorem A claims for them what it claims for one user in k^2 rounds
// (docs/proofs/theorem-a.md, section 4), so Config.Together near sqrt(T) has the power that the audit of a user of one
// round has.
//
// How: for each pair of neighbours the pipeline runs Trials times on each input, and a scalar of the released totals
// is kept. An eighth of the runs chooses events {scalar >= t} and {scalar <= t}, one for each epsilon tested and each
// order of the pair; on the others, Clopper-Pearson intervals with a union bound over all events give P(E) >= p and
// Q(E) <= q at once, and so delta(epsilon) >= p - e^epsilon q for each.
//
// The intruder of the trusts with floors has a view of its own: the totals in the mixer's memory at one moment and the
// release, joined. The target reports before the look or after it, nobody else adds noise, and the scalars are the
// state, the release without the state, and the two against each other, in which one draw used for both floors would
// cancel. Which moment is looked at makes no other difference; package shuffle tests that for every position.
//
// An operator of trust split has taken its own share and floor away from the sum, in every round: of both floors the
// other's is left. Nobody else adds noise.
//
// Under trust local a report hides what it is about by itself, and is seen by itself: the view of one report has no
// mixer. Of a report about K units one changes, or as many as would be users who change together: K of them are in the
// ball where one unit of a report of one is.
//
// What a caller owes:
//
//  1. State the claim for what runs, one round, and for the view and the users who change together: it relies upon
//     all of Config.Users but Config.Dishonest. Audit every adversary that the trust knows, and every mechanism of
//     a plan.
//  2. Give a claim that is an upper bound for every epsilon >= 0, nonincreasing, such as an accountant's curve.
//  3. Give the pairs of the client's encoder, in every statistic of a plan; the bare randomizer's are
//     for tests of this package, and for a statistic whose rows come nowhere near the poles.
//  4. Report Pass together with the confidence, the trials, claimed and empirical epsilon at the audit delta, and
//     the refutable share of the noise.
package audit
