// Package streamtest is the contract of the ports of package stream as a test suite. Every adapter runs it on a fresh
// broker for each test:
//
//	func TestContract(t *testing.T) {
//		streamtest.Run(t, func(t *testing.T) streamtest.Broker { ... })
//	}
//
// What the suite asserts is what callers may rely on; what it leaves open (order of delivery, number of wakes) they
// may not.
package streamtest
