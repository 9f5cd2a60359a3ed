// Package lint holds the rules of this repository as Go tests: who may import whom, where entropy may be seeded,
// what must not be in a file. It has no code of its own.
package lint
