// Package stream defines what panlearn sends over a broker: messages, subjects and ports.
//
// Messages are protobuf (package wire) under a canonical codec: [Marshal] and [Unmarshal]. [Check] checks that a
// decoded body is well formed; package seal verifies who signed it. Subjects name one thing each: [Task].
//
// Ports are the operations that the three roles need of a broker, as interfaces with a written contract: [Records] for
// things that are put once and read by name, [ReportWriter] for devices, [ReportReader] for the shuffle stage. Two
// adapters implement them, natsjs (JetStream) and memory, and one contract suite, streamtest, holds both to it.
//
// Where it is: subject.go names what is put where, check.go and checkplan.go are [Check], codec.go the canonical
// encoding, readreport.go reads a report in one pass, port.go has the ports, joining.go decides when a device joins a
// round that has fewer places than devices wait, trouble.go which failures are logged as warnings. Package manifest checks whether a
// round follows its plan.
//
// What every caller owes:
//
//  1. Put once, then believe what is there: [PutOnce] reports whether the broker has our bytes, and only that decides.
//  2. Never let a not-found read decide anything; a lagging replica may have answered.
//  3. Treat an acknowledgement that did not come as unknown, never as "not stored".
//  4. Check version, task hash and subject of all that is read: [CheckSubject].
//  5. Commit before announcing; claim before releasing.
package stream

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) -I. --go_out=. --go_opt=paths=source_relative wire/panlearn.proto"
