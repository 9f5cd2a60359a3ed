// Package scorer serves released models over HTTP: the newest model of each task scores events that applications post.
//
// Promises. All scores of a response come from one model, which its ETag names. If a new model cannot be read, the
// previous one stays in use, and the process logs it. Nothing of an event is logged, measured or kept, and errors name
// places and columns, never contents. Scores depend on single events and have no privacy guarantee: they are for the
// poster.
//
// Refuses. Two sources of one task; a body that is compressed, above maxBody or of more than maxEvents; bodies and
// responses beyond maxRoom at one time.
//
// The caller's steps: New with a source for each task, which reads every model once; Follow, which reads again; the
// Scorer is the http.Handler meanwhile. openapi.json describes the interface.
package scorer
