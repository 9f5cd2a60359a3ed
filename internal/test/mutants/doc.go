// Package mutants breaks one promise at a time and asks the tests whether they see it. It has tests only.
//
// A mutant is a change of one file that a careless hand could make: a floor left out, a claim not put, a report id that
// nothing authenticates. The file is replaced by an overlay of the go command, nothing on disk changes, and the tests
// that docs/reference/claims.md names for the promise are run. They must fail: a test that cannot fail proves nothing.
// This package covers the promises on which the guarantee itself rests; code that refuses or orders something has a
// test that breaks it directly.
//
// Every run checks that each mutant still applies to the code and that the tests it names exist. Running them all
// takes some minutes and is for make test-deep; every other run takes the quick ones.
package mutants
