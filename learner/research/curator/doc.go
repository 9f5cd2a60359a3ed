// Package curator holds the methods of one trusted curator, who has all people's rows in one place and releases a model
// that protects each person.
//
// Promises. A plan follows from public numbers alone (Public); its Spent is an upper bound on (epsilon,
// delta) for neighbours that differ in all rows of one person, at a fixed number of people
// (docs/proofs/curator.md has the arguments). Noise is drawn on the lattice (docs/proofs/theorem-a.md), in
// integers. The number and kind of steps never depend on rows; the time of a pass over the rows follows from
// their number and their number of features, as with any program that reads them. A method that halts does
// the work of one that does not, and returns the last released point.
//
// Refuses. Fewer people than a method needs (*TooFewError); losses that are not known to stay convex when their slope
// is cut, if a proof needs convexity; sets without a known bound on the rounding of their projections.
//
// The caller's steps:
//
//  1. Select a method by its name, plan for the public numbers, and read Bound and Notes.
//  2. Charge the plan's Spent, durably, before Fit: a fit that fails half-way has drawn its noise.
//  3. Fit, once, with the system's entropy (randomizer.NewEntropy). Publish nothing but Result; keep the rows, the time
//     and the memory to yourself.
//
// Data in, data out: no network, disk, clock or goroutine here.
package curator
