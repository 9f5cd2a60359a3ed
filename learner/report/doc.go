// Package report computes what one report says: a row in, lattice counts out. Devices and simulations call it, so that what
// is tried out is what runs.
//
// A row goes through four steps, each in one place:
//
//  1. Its statistic, in the round's frame where there is one: the gradient of the loss at the announced point, or moments of features
//     and label ([Statistic]).
//  2. Clipping to ClipNorm, in [Exact.Vector], statistic.go; of a frame, first divided by its Clip. This is the only place where what a user says is clipped; the proofs need
//     nothing else of a row. The lattice snaps into its ball whatever it is given, and finds nothing to clip.
//  3. The scores of the point on the row, after the clipped statistic and within a norm of their own ([Scorer]).
//  4. The lattice ([randomizer.VectorSum]): snapped into the ball of Params, rounded, with noise, packed.
//
// # Promises
//
//   - Every row gives a report, of the same length. One that is none of the task's, or whose statistic does not exist,
//     is the zero vector, and takes the same path and a row's work.
//   - The vector that is encoded has norm at most Params.ClipNorm, whatever the row is.
//   - Nothing of a row is kept after its report.
//
// # What a caller owes
//
//  1. New with the parameters of a phase, and with nil entropy wherever users are served.
//  2. At with the point and the frame of a round, as announced and checked.
//  3. Reseed before each chunk of reports.
//  4. Report, once for each user and round.
package report
