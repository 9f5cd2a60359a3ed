// Package draft drafts a task file from a sample of data: it finds how they are written, what the columns are,
// bounds, vocabularies and a label, and writes YAML with a comment for each choice. Where the caller has room for more
// files it makes a public model of the sample and its labels, and the task begins with that (begin.go).
//
// The sample has to be public, or paid for elsewhere. Everything that is drafted is computed from it exactly
// and without noise, and a task file is seen by every device. Never draft from the data that are to be learned
// from privately.
//
// Promises. A draft is accepted by task.Parse and Compile as it is; the same sample gives the same draft. A
// column that makes no feature is named in a comment with the reason. No file is read but the sample. Memory is bounded
// by the number of columns and does not grow with the rows, except a bit for each cell of columns of zeros and ones; a
// public model is made of at most 5,000 rows.
//
// Refuses. Samples that nothing can be learned from: no rows, one column, a label of one value. What this
// program would read otherwise than its writer meant: decimal commas, text that is not UTF-8 in a label.
package draft
