// Package obs makes the roles visible: Prometheus metrics and the HTTP endpoints /metrics, /healthz and /readyz.
//
// Each role has one struct of metrics, built from a Registerer, with the task as a constant label. No label has a value
// that a user can choose, and no metric is about one user.
package obs
