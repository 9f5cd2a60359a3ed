// Package task declares a learning task: which events, which features and bounds, which model, at what privacy,
// on which schedule. A task file (YAML) is parsed strictly into a Spec; a Spec is compiled into a FeatureMap,
// which turns a row of data into the vector that the loss sees, and trained parameters back into weights in the
// units of the data.
//
// Promises. Everything that shapes a vector (dimension, scale, norm bound) comes from the public declaration alone:
// nothing here reads a statistic of the data, because a statistic without noise is a leak. A mapped vector has norm at
// most FeatureMap.Bound. Canonical is deterministic and has exactly one decoding, so its hash identifies the
// declaration.
//
// Refuses. Unknown and duplicate keys, NaN and infinities, YAML anchors, aliases and tags, values out of range: each
// with the dotted path of the field, the value found, and what would be accepted. An invalid row is refused with a
// RowError that names line and column but never the contents.
//
// The caller's steps, on a device:
//
//  1. Load the file (or ParseCanonical the bytes of the announced task).
//  2. Compile the feature map.
//  3. Read rows, see package source, and Map each into a convex.Example.
//  4. If Map returns a RowError, still report the zero vector, and log the error locally only: staying
//     away would reveal something about the event.
//
// A program in another language makes the same vectors from FeatureMap.Coordinates, where every coordinate describes
// how it follows from the fields of an event; docs/reference/tasks.md is the reference of the keys.
//
// The learner maps no rows. It works in the coordinates of the map's output, and calls FeatureMap.Undo when it releases
// a model.
package task
