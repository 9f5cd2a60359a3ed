// Package prequential scores a stream by test, then train: every row of a round of gradients by the model that stood
// before the round. A rehearsal has all models at hand; of a task that runs, or ran, those that it kept are read.
package prequential
