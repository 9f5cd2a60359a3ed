// Package relayhttp holds what a relay and its clients agree on: the names of records in paths, and the layouts of
// bodies. A layout is fixed: numbers are big endian, and a reader takes what the writer wrote and nothing else.
//
// The interface, below a relay's address:
//
//	GET  /v1/tasks/{task}/{name}                    a record by its name; see Name
//	GET  /v1/tasks/{task}/records/{sha256}?name=    a record by the hash of its bytes, which never changes
//	GET  /v1/tasks/{task}/rounds/latest             State; with wait=SECONDS&seen=TAG when it is another one
//	GET  /v1/tasks/{task}/opens/{round}/latest      State, of the attempts at a round
//	POST /v1/tasks/{task}/reports                   Report, answered with Answer
//	POST /v1/tasks/{task}/places                    Place, answered with the stage's bytes
//
// A body of a request is text/plain, so that a page's browser sends it without asking first.
package relayhttp
