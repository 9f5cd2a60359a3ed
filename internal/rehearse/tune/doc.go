// Package tune compares a short list of settings of a task by simulation: the default first, then one key
// changed at a time, then those that were better together. Each setting is planned as a run would be, and
// simulated with the same seeds, the same users and the same rows to score on, so that differences are
// paired.
//
// It chooses by data, and an epsilon covers no choice: the data must be public, or paid for elsewhere. A
// caller without data takes rows of the declaration, sim.Schema, which are a rough guide.
//
// The noise of a release depends on the number of users, so a setting is simulated with the users of its
// task: rows are repeated where there are fewer of them. Where a task has more users than Config.Most, every
// cohort is represented by a sample, and the estimate gets the Gaussian noise of the whole cohort instead of
// the randomizer's; privacy's noise is then the task's, and the sampling error, which is larger, the
// sample's.
//
// The caller's steps: New, tell the cost, Run, and take Report.Best.
package tune
