// Package isrl computes the constants of the theorems of Lowy and Razaviyayn, "Private Federated Learning Without a
// Trusted Server: Optimal Algorithms for Convex Losses" (ICLR 2023, arXiv 2106.09779), and tight accountants for
// comparison. No task runs with them: plans print the paper's prescription and its cost, and
// learner/research/experiments measures it.
//
// The setting: M of N silos answer a round; each holds n records and sends the mean gradient over K of them,
// clipped to norm L each, with Gaussian noise of standard deviation sigma in every coordinate. Two data sets
// of a silo are neighbours if one record of n is replaced (n is fixed and public), so one record moves a mean
// by at most 2L/K. The whole transcript of each silo is (epsilon, delta)-private, whatever the server and the
// other silos do (ISRL-DP).
//
// Numbers named Noise are sigma. Logarithms are natural. A note ("Doubt") at a formula names an ambiguity, error or
// omission of the paper.
package isrl
