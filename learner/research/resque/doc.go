// Package resque minimizes convex functions from noisy subgradients, in few rounds of many queries each, by the
// reweighted stochastic queries of Carmon, Jambulapati, Jin, Lee, Liu, Sidford, Tian, ReSQueing Parallel and Private
// Stochastic Convex Optimization, FOCS 2023.
//
// The function f is smoothed with a Gaussian of standard deviation rho. Weighted suitably, a query at a point drawn
// around a centre estimates the smoothed gradient at every point nearby (ReSQue), so all queries of a subproblem are
// made at once, before its solver runs. docs/proofs/resque.md has the proofs.
//
// Promises. Minimize returns a point whose gap is in expectation at most Config.Gap, for every oracle that keeps
// Problem.L, with every constant proved (algorithm FixedLambda). The result is a function of the problem, the
// configuration and its seed: the number of workers changes nothing in it. What it costs is counted: rounds (query
// depth), queries, and the queries of the largest round. This package provides no privacy: for private rows see package
// private.
//
// The caller's steps:
//
//  1. Make the oracle: NewRows of a task's loss and rows, or a type of their own.
//  2. res, err := resque.Minimize(ctx, resque.Problem{Oracle: o, Dim: d, L: l, R: radius}, resque.Config{Algorithm:
//     resque.FixedLambda, Gap: gap, Workers: w}), with the signature Minimize(ctx context.Context, of Problem, c
//     Config) (Result, error). A seed makes the run another one.
//  3. Take res.Model, and print res.Depth, res.Queries, res.Largest and res.Bound. The model may lie outside of the
//     ball of radius R by a little: f is defined on all of R^d, and its value is compared with the best in the ball.
//
// Goroutines are the workers of one call of the pool, which waits for them; they ask the oracle and nothing else.
// No clock, network or disk.
package resque
