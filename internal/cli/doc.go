// Package cli holds the parts that the commands learner and ingest share: the running of a command and its
// exit code, flags for brokers, environment and logs, one JSON document on standard output, progress on a
// terminal.
//
// Flags win over the environment (PANLEARN_ and the flag's name in capitals, - as _), which wins over files.
// Standard output carries the result and nothing else; progress and logs go to standard error.
package cli
