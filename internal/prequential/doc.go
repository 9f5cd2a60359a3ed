// Package prequential scores a stream by test, then train: every row of a round of gradients by the model
// before the round. A rehearsal has all models at hand; of a task that runs, or ran, the kept models are read.
package prequential
