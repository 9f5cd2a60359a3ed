//go:build !linux

package main

import "time"

// cpuTime is how long f takes by the clock on the wall: on a machine that others use, they make it longer.
func cpuTime(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}
