// Package fleet has one test: thousands of devices, each a client with a connection of its own over loopback,
// against one broker in another process, for both need a file descriptor a device. It counts what they ask of the
// broker while they have nothing to do, in a round of a hundred of them, and after the broker was started again,
// and prints what docs/measured/capacity.md computes larger fleets from.
//
//	PANLEARN_DEEP=1 go test -v -timeout 15m ./internal/test/fleet
//
// The short form has 500 devices, which look after seconds where others look after minutes.
package fleet
