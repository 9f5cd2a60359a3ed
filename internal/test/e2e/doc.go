// Package e2e tests the commands learner and ingest as their users run them: as processes, by scripts, over real NATS
// servers and real state folders. It has no code of its own.
//
// Each file of testdata/script is one behaviour; testdata/sets needs public data sets, which PANLEARN_DATA names
// and which lie beside the repository by default. What was not run for lack of data, or because PANLEARN_DEEP is
// not set, is said loudly. Servers take free loopback ports and end by themselves; nothing sleeps, waitfor polls
// with a deadline.
//
// Beside the commands of testscript, scripts have:
//
//	port NAME...                   put a free port into each environment variable
//	natsd ADDR DIR                 (exec) a NATS server with JetStream, until it is interrupted
//	json DOC CONDITION...          DOC (a file, stdout) is exactly one JSON document, its numbers are finite, conditions hold
//	report DOC EXPRESSION          print a figure
//	waitfor CONDITION PROGRAM ...  run a program until its JSON fulfils the condition
//	waitport PORT                  until something listens
//	waitmetric CONDITION URL       the same of a Prometheus endpoint; labels are passed over
//	refuses CODE PATTERN PROGRAM.. the program exits with the code and says one line, which matches, and nothing on stdout
//	refusesall ...                 refuses, of a publisher: its summary may be printed, and says that nothing was sent
//	head N FROM TO, tail N FROM TO  the first N lines; what follows them
//
// A CONDITION is a Go expression over the document: 'counted + uncounted <= events && privacy.epsilon > 0'. It knows
// len(x), has(x), abs(x), sum(list, "field", "where", "equals"), sorted(list, "field") and file("other.json").
package e2e
