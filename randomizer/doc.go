// Package randomizer makes the counts that leave a device: it turns a vector into noisy integer counts whose sum over a
// cohort is a private estimate of a sum.
//
// It implements the scalar and vector sum protocols P_1D and P_VEC of Cheu, Joseph, Mao, Peng, Shuffle Private
// Stochastic Convex Optimization, ICLR 2022, Algorithms 1 and 2. A vector x is snapped into the ball of radius L, every
// coordinate is moved to the lattice {0, ..., g} by unbiased stochastic rounding, and Bin(b, p) is added. The paper's
// g+b labelled bits of one coordinate travel as their number of ones; only sums over a whole cohort may be released. A
// report may be about several units, such as the rows of a silo: each is snapped into a ball of its own by
// [VectorSum.Add], and the report is the mean of all, rounded once. Gradients were clipped before, in learner/report:
// snapping makes the norm exact in integers, and clips vectors that were not clipped.
//
// # Where it is
//
// The noise of a device: [VectorSum.Draw], vectorsum.go, with [Binomial]. Floors and top-ups are drawn from the same
// [Binomial], in shuffle/mixer.go. How many trials a total holds is counted in one place for devices, stage, learner
// and accountant: [Noise] and [Params.NoiseTrials], params.go. Totals are read by [Params.Decode].
//
// # Promises
//
//   - Integers from [VectorSum.Add] to the tally. The binomial noise is exactly binomial: [Binomial] compares
//     uniform bits with integers and never rounds.
//   - The point that is rounded lies in the ball of radius g/2 around (g/2, ..., g/2). This is checked in integers,
//     so the sensitivity that the accountant uses holds for the code and not just for real arithmetic. So does that
//     of one unit of K: g/K.
//   - Every finite or non-finite input gives a report, and the size of a packed report depends on [Params] alone.
//   - Entropy is a parameter; nil means ChaCha8 seeded from the operating system.
//
// # Refusals
//
// [Params.Validate] refuses what would overflow or has no meaning. [Params.Unpack] and [Adder.ValidateReport] refuse
// any byte string that [Params.Pack] cannot produce. The latter also refuses reports whose counts together lie farther
// from the centre than any device's can, for all vectors and coins: so it never refuses an honest report, and a refusal
// reveals nothing about one. [Params.Decode] refuses totals that no cohort of that size can have. The time to draw
// noise depends on the value drawn; there is no defence against a process that shares a core with the device.
//
// # What a caller owes
//
//  1. Take [Params] from a round that was checked against the caller's privacy policy, and Validate them.
//  2. Encode, or Draw, once for every round; keep the counts and send the same ones in every retry. Two draws for
//     one round halve the noise.
//  3. Pack, seal, and send; never log, store or send the counts in any other way.
//  4. Sum the reports of a cohort in one place that forgets them (package shuffle), and release only the totals
//     with the number of users and of binomial trials in them.
//  5. Decode the totals.
package randomizer
