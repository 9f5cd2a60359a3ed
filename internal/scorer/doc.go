// Package scorer serves released models over HTTP: the newest model of each task scores events that applications post.
//
// Promises. An answer is by one model, whole: that whose ETag it names. A model that cannot be read leaves the one before
// in its place, and the process says so. Nothing of an event is logged, measured or kept, and errors name places and
// columns, never contents. Scores depend on single events and have no privacy guarantee: who may post may see them.
//
// Refuses. Two sources of one task; a body that is packed, above MaxBody or of more than MaxEvents; bodies and answers
// beyond MaxRoom at one time.
//
// The caller's steps: New with a source for each task, which reads every model once; Follow, which reads again; the
// Scorer is the http.Handler meanwhile. openapi.json describes the interface.
package scorer
