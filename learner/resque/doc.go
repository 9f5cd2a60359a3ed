// Package resque minimizes convex functions that are known by noisy subgradients alone, in few rounds of many queries each, by the
// reweighted stochastic queries of Carmon, Jambulapati, Jin, Lee, Liu, Sidford, Tian, ReSQueing Parallel and Private Stochastic Convex
// Optimization, FOCS 2023.
//
// The function f is smoothed with a Gaussian of standard deviation rho. A query at a point drawn around a centre then tells the smoothed
// gradient at every point nearby, by its weight there (ReSQue), so the queries of a whole subproblem are asked at once, before its solver
// knows where it will go. docs/resque.md has the proofs.
package resque
