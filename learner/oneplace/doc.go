// Package oneplace is the seam of methods that need all rows at once: one process has the rows, asks for them again and
// again, and releases one model. The methods are in packages of learner/research; internal/run/curated lists them.
//
// A method promises what its package does. What a plan says follows from the Problem alone, which is public. A fit has
// drawn its noise when it fails half-way, and nothing of a Release may leave the process before it returns.
//
// The caller's steps: Method.Plan; show the Plan; charge Plan.Spent, durably; Plan.Check, before anything is drawn;
// Plan.Fit, once.
//
// This package computes nothing but Problem.Trivial.
package oneplace
