// Package curator has the methods of a trusted curator: one holder has the rows of all people, and releases a model that protects each person wholly.
// It is data in, data out: no network, disk, clock or goroutine.
package curator
