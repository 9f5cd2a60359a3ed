// Package practical is the arithmetic of the practical plan: how few rounds a number of users is worth, what a first
// private cohort reports about features and label, what coordinates follow from the noisy answer, and with which steps
// the rest learns in them. docs/reference/algorithms.md has the formulas and what was measured.
//
// Promises. All functions are pure. What comes out depends on the declaration and on released numbers, never on an
// event; it is finite whatever was released, and with more and more noise it becomes the declared coordinates with one
// scale. Renaming features renames the result.
//
// Refuses. Released vectors of another length, or that are not finite. Constants were chosen by measurement on public
// data: nothing here bounds a risk. Privacy does not depend on it, for a device bounds whatever is asked.
//
// The caller's steps:
//
//  1. Layout, with the noise of a released sum, says how many users each of the looks and the gradient rounds have.
//  2. The first cohort reports Moments, clipped to MomentsNorm; their mean goes to First.
//  3. Where the layout has MatrixUsers, these report Matrix in First's frame; their mean goes to Second.
//  4. The method of the layout steps in the coordinates of Learned: devices get its Point, and its Gradient is made of
//     what they answer.
//  5. Learned.Model is the model in plain coordinates.
package practical
