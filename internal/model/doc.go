// Package model provides a released model for use: the snapshot with its privacy statement, its file formats
// (JSON, NumPy, ONNX), scoring of raw events, and evaluation.
//
// A Snapshot holds everything that is needed to score: the weights in the units of the data, and the declared
// part of the task, which is how a raw event becomes features. A Predictor is a snapshot made ready: it
// treats an event as a device does, moving values into the declared bounds and scaling long feature vectors
// down. Every format carries the privacy statement.
//
// Events that are scored stay where they are: nothing here writes one anywhere, and errors name lines and
// columns, never contents.
package model
