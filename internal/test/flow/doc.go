// Package flow has benchmarks of a whole deployment, each beside the raw broker or one of its records, measured in
// turns with it: reports that were made before, the events of one gateway, and rounds so small that they only wait.
//
//	go test -run '^$' -bench . -benchtime 6x -timeout 1h ./internal/test/flow
//
// An operation is a round. The broker is a process of its own, as deployed; learner, stage and gateway have connections
// of their own over loopback, and keep their state on disk. The first round warms up and is not counted. A ratio is the
// median of the ratios of neighbours in time: other load on the machine affects both alike. -short makes small rounds,
// which show that all of it runs and no more.
package flow
