// Package vectors is for the test vectors of docs/vectors that say what a device refuses. Each check of a device has a
// number in docs/reference/refusals.md; the table here says by which words of an error it is known.
package vectors
