// Package accounting proves what a release of binomially noised sums costs, and
// finds the cheapest release for a target.
//
// A user's vector, clipped to norm L, becomes one position per coordinate on a grid
// of g steps over [-L, L], stochastically rounded, plus Bin(b, p) noise. An adversary who
// sees the totals of a cohort sees, about one target user, at most the rounded
// position plus Bin(N, p), with N the honest trials in that view
// (docs/proofs/theorem-a.md, Proposition 1). Theorem A there dominates this by a Gaussian
// mechanism whose parameter is computed from the binomial table itself, plus a tiny
// additive slack: within a few percent of the truth, for every dimension, every
// input and any number of adaptive rounds.
//
// A trusted curator's release, which may come or not as a secret score says, has a
// Curve of the same noise, and a DeletionProfile, ScoreTest or SharedTest over it
// (docs/proofs/curator.md).
//
// The package promises: every delta and epsilon it returns is an upper bound,
// floating point included; results of validated input are finite or +Inf (no
// guarantee), never NaN; the same input gives the same result.
//
// It refuses: NaN, infinities, zero and negative parameters; a p that is not a
// multiple of 2^-24 (such a p is sampled exactly, and N p is exact in the
// arithmetic); an honest fraction nobody stated.
//
// What a caller owes, for the numbers to be true of a running system:
//
//  1. Clip to L and keep the effective positions in the ball of radius g/2 around
//     the centre g/2, verified in integers.
//  2. Draw noise that is exactly binomial, and give all reports one shape.
//  3. Describe the release by what was planned (Release): planned users, floors,
//     honest fraction. Top-up keeps the noise at or above the honest share.
//  4. Ask for all T rounds of one user together; do not add up single rounds.
//  5. Across tasks add (epsilon, delta) pairs.
package accounting
