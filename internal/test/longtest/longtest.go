// Package longtest marks long tests, and prints one line for each that does not run.
package longtest

import (
	"fmt"
	"os"
	"testing"
)

// On reports whether PANLEARN_DEEP is set, so that long tests run. It prints nothing: use it where the short form is
// whole.
func On() bool { return os.Getenv("PANLEARN_DEEP") != "" }

// Run reports whether the long test runs. Where it does not, it prints what was left out, on standard output
// too: the log of a test that passes is not shown.
func Run(t testing.TB, what string) bool {
	t.Helper()
	if On() {
		return true
	}
	t.Logf("NOT RUN: %s; set PANLEARN_DEEP=1", what)
	fmt.Printf("NOT RUN: %s: %s; set PANLEARN_DEEP=1\n", t.Name(), what)
	return false
}

// Seeds returns how many of n cases a test plays: all of them, or a quarter, rounded up, where the race detector
// watches, and then it prints what was left out: make test plays the same cases without it.
func Seeds[N int | uint64](t testing.TB, n N) N {
	t.Helper()
	if !raced || On() {
		return n
	}
	some := (n + 3) / 4
	fmt.Printf("NOT RUN: %s: with the race detector, all but the first %d of %d, which make test plays\n", t.Name(), some,
		n)
	return some
}

// Sequential skips a test that starts no goroutine where the race detector watches: it would find nothing, and make
// test runs the test without it.
func Sequential(t testing.TB) {
	t.Helper()
	unraced(t, "as it starts no goroutine")
}

// Goroutines skips a test where the race detector watches, because another test, which it names, runs the same
// goroutines in less time. Make test runs both.
func Goroutines(t testing.TB, other string) {
	t.Helper()
	unraced(t, "as "+other+" runs the same goroutines")
}

func unraced(t testing.TB, why string) {
	t.Helper()
	if !raced || On() {
		return
	}
	fmt.Printf("NOT RUN: %s: with the race detector, %s\n", t.Name(), why)
	t.SkipNow()
}
