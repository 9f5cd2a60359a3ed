// Package source reads the events of a task from files and streams: LIBSVM, CSV, JSON lines, IDX and Parquet, one event
// at a time in bounded memory. The files of a pattern are one stream, in lexical order. All but Parquet may be compressed
// with gzip or zstd, which is recognised by the first bytes.
//
// Promises. A row is known by its file and its position there, which are the same on every reading and whatever files
// are added to a pattern, so that a publisher can resume. A malformed row is a *task.RowError and reading goes on; any
// other error ends the reading. No error shows contents of the data. Nothing of them is written to a disk.
//
// Refuses. Data that do not match the task are refused by Open with a *SchemaError, before the caller has seen a row: a
// missing column, a wrong dimension, or a beginning in which no event fits (2 to 16 events). A single event that does
// not fit is an invalid row like any other, even if it is the only one: who sends must not depend on content.
//
// The caller's steps:
//
//  1. Open the data with the task's compiled feature map.
//  2. Call Next until io.EOF, or range over All. A row is valid until the next call.
//  3. On a *task.RowError, here or from FeatureMap.Map, count the row as an event that is invalid and go on.
//  4. Close.
package source
