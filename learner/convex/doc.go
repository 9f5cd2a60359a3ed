// Package convex holds the convex half of a task: losses, their Moreau envelopes, constraint sets and the clipping of
// gradients. A device uses it to compute what it reports, the learner to project and to plan; both must see the same
// numbers, so the package knows nothing of randomization, rounds or transport.
//
// Promises. Every loss is convex in theta for every admissible label; Gradient is its gradient, a subgradient where
// there is none; Lipschitz and Smoothness are suprema over all theta and all labels, so a plan made from them never
// understates. Prox is the exact minimizer up to rounding. Project is the exact Euclidean projection up to rounding,
// and is the identity inside the set. Nothing here panics on data: an example that passes Example.Validate is safe for
// every loss of the same dimension.
//
// Refuses. Labels outside the domain of a loss (CheckLabel), examples with non-finite values or unordered indices
// (Validate), unknown names and parameters that are out of range or that a loss or a set does not take (Declaration,
// SetDeclaration; losses.go holds the table of losses, set.go that of sets), envelopes of losses without a prox
// (NewEnvelope).
//
// The caller's steps, on a device:
//
//  1. Validate the example for the feature dimension, and CheckLabel its label.
//  2. Gradient at the round's point, of length Parameters(features): of the loss, or of its envelope if the round
//     announces one. If the round has a Frame: of the row in its coordinates, whitened.
//  3. Clip to the round's clip norm. Only the clipped vector may be encoded.
//
// Vectors are dense slices of length Parameters(features); a loss with several outputs (one weight vector a class)
// lays them out one after another. Argument lengths are the caller's contract: a mismatch is a bug and panics.
//
// A task's own loss is a type with the methods of Loss, and of Proximal for methods for losses that are not smooth. It
// can be used wherever a Loss is accepted.
package convex
