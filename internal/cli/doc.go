// Package cli is what the commands learner and ingest share: how a command is run and what its exit code says, flags
// for brokers, environment and logs, one JSON document on standard output, progress on a terminal.
//
// Flags win over the environment (PANLEARN_ and the flag's name in capitals, - as _), which wins over files. Standard
// output carries the result and nothing else; progress and logs go to standard error.
package cli
