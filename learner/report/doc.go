// Package report computes one report: a block of units in, lattice counts out. Devices and simulations use the same
// code.
//
// A row goes through four steps, each in one place:
//
//  1. Its statistic, in the round's frame if there is one: the gradient of the loss at the announced point, or
//     moments of features and label ([Statistic]).
//  2. Clipping to ClipNorm, in [Exact.Unit], statistic.go; of a frame, first divided by its Clip. The mean over a
//     unit's rows is clipped to Config.Norm. Nothing else is clipped, and the proofs need no other clip. The lattice
//     snaps every vector into its ball, and finds nothing to clip.
//  3. The scores of the point on the row, or their mean over the unit's rows, after the clipped statistic and within a
//     norm of their own ([NewScorer]). With a [Prox] there is one vector of all rows instead: steps 1 and 2 are in its
//     solver, prox.go, with the slope of a row's loss cut.
//  4. The lattice ([randomizer.VectorSum]): each unit is snapped into a ball of its own, in integers; the sum is
//     rounded once, with noise, packed.
//
// # Promises
//
//   - Every block gives a report, of the same length. An invalid row, or one whose statistic does not exist, is the
//     zero vector, counts, and takes the same path and work as a valid row.
//   - The vector of every unit has norm at most Params.ClipNorm, for all rows.
//   - Nothing of a row is kept after its report.
//
// # What a caller owes
//
//  1. New with the parameters of a phase, and with nil entropy wherever users are served.
//  2. At with the point and the frame of a round, as announced and checked.
//  3. Reseed before each chunk of reports.
//  4. Report, once for each user and round.
package report
