// Package longtest says which tests are long, so that each prints the same line where it does not run.
package longtest

import (
	"fmt"
	"os"
	"testing"
)

// On reports whether PANLEARN_DEEP asks for the long tests. It prints nothing: use it where the short form is
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
