// Package rehearse runs a task in memory on rows that one may look at: the real randomizer, mixer, estimator and
// method, with a seed for their entropy (package sim), and scores what comes of it. `learner simulate` is a
// rehearsal; packages tune and compare below rehearse many variants of a task on the same rows.
//
// It defines once what they share: how rows are read, held out, made up and grouped into the units and silos that
// reports are about; in which order they take part; by which score models are compared; and which other ways there
// are to spend the same budget.
//
// It promises nothing about privacy: who knows the seed knows the noise, and every figure is of the rows
// themselves. It refuses data that the plan cannot run on, and says what would do.
//
// The caller's steps: Load reads the rows, Run runs the task on them once a seed, and Print and Draw of the report show
// the result. Sweep needs no data.
package rehearse
