// Package sim runs the protocol in memory, without streams: the devices' randomizer, the stage's mixer and
// the learner's estimator and method are the real ones, only their entropy comes from a seed. Commands that
// try a task before it is run for real are built on it, and so are plots of risk against the number of users.
//
// It is the only place in production code where a seed becomes entropy, so nothing that serves users may
// import it. The same configuration gives the same bytes of model; it promises nothing about privacy, since
// the seed reveals the noise.
//
// The caller's steps:
//
//  1. Plan with planning.MakePlan, and load or generate at least Plan.Users examples.
//  2. Run, once a seed; Exact gives the same method without noise to compare with.
//  3. Score the model with MeanLoss or Accuracy, or with Synthetic.ExcessRisk where the optimum is known.
package sim
