// Package publicmodel trains what a task may begin with from public rows: boosted trees, a linear model, their blend,
// and directions in which the blend can be corrected. It is numerics alone: it knows neither files nor tasks.
//
// Promises. The same rows in the same order give the same numbers on one kind of processor, on any number of cores:
// folds and forests are drawn with fixed seeds. Thresholds of trees are float32 and lie between values of the rows.
// No leaf holds fewer than the asked number of rows.
//
// Scores are log odds of two classes, log probabilities up to a constant of more, and the label itself of numbers.
package publicmodel
