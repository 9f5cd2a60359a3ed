// Package permissions holds the tests of who may do what: every attack runs twice, first on a broker where it
// works, so that the test can fail, then on a broker with the shipped configuration (deploy/nats), which must
// refuse it.
package permissions
