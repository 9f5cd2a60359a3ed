// Package vectors is for the test vectors of docs/vectors that say what a device refuses. Each check of a device has a
// number in docs/reference/refusals.md; the table here has the words of an error by which a check is recognised.
package vectors
