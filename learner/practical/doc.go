// Package practical is the arithmetic of the practical plan: the number of rounds for a number of users, the first
// private cohort's report about features and label, the coordinates that follow from its noisy mean, and the steps of
// the other rounds in them. docs/reference/algorithms.md has the formulas and measurements.
//
// Promises. All functions are pure. Results depend on the declaration and on released numbers, never on an event. They
// are finite for every release, and approach the declared coordinates with one scale as noise grows. Permuting features
// permutes the result.
//
// Refuses. Released vectors of another length, or that are not finite. Constants were chosen by measurement on public
// data: nothing here bounds a risk. Privacy does not depend on this package, because a device bounds every report
// itself.
//
// The caller's steps:
//
//  1. Layout, with the noise of a released sum, returns the number of users of each look and of the gradient rounds.
//  2. The first cohort reports Moments, clipped to MomentsNorm; their mean goes to First.
//  3. If the layout has MatrixUsers, they report Matrix in First's frame; their mean goes to Second.
//  4. The method of the layout steps in the coordinates of Learned: devices get its Point, and its Gradient is made of
//     what they answer.
//  5. Learned.Model is the model in plain coordinates.
package practical
