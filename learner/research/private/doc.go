// Package private learns a point of the ball B(R) from records that are all in one place, under central differential
// privacy: projected noisy stochastic gradient descent, which is recommended, and private ReSQue (Carmon et al. 2023),
// for comparison and for few rounds, on all records or, for a population, on blocks of them.
//
// Promises. Every epsilon and delta follows from docs/proofs/resque.md, "Private". They are for neighbours
// one of which has one record more than the other (add/remove), at a public number n of records that neither
// exceeds; beside them are given those for one record replaced by another. Noise is drawn in integers,
// exactly, by randomizer.Binomial; gradients are clipped and placed in integers, so that no record
// contributes more than it is charged for. Numbers of rounds, steps and expected samples are fixed by public
// numbers; a plan is a pure function of them.
//
// Refuses. A release that would take the ledger beyond its target is not started. A plan whose proved bound
// is not below L R, what the origin has without any data, is refused with the smallest n for which it is.
//
// Not covered. Which records a step sampled, how many, and the Gaussian draws of ReSQue are secrets of the
// proof: they are in memory alone. An observer of the time of each step learns the number of its samples.
//
// Steps of a caller: NewPlan of the public numbers; show its Bound, Cost and Baseline; Fit with the records
// and an entropy source.
package private
