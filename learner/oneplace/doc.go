// Package oneplace defines the interface of methods that need all rows at once: one process has the rows, reads them
// repeatedly, and releases one model. The methods are in packages of learner/research; internal/run/curated lists them.
//
// Each method's package documents its promises. A plan is a function of the Problem alone, which is public. A fit that
// fails half-way has already drawn its noise, and nothing of a Release may leave the process before Fit returns.
//
// The caller's steps: Method.Plan; show the Plan; charge Plan.Spent, durably; Plan.Check, before anything is drawn;
// Plan.Fit, once.
//
// This package computes nothing but Problem.Trivial.
package oneplace
