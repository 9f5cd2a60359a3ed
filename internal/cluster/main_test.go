package cluster

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/procs"
)

var programs *procs.Programs

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if programs, err = procs.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer programs.Remove()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// deep says whether the long tests run, and says loudly what does not.
func deep(t testing.TB, what string) bool {
	t.Helper()
	if os.Getenv("PANLEARN_DEEP") == "1" {
		return true
	}
	fmt.Printf("NOT RUN: %s: %s; set PANLEARN_DEEP=1\n", t.Name(), what)
	t.Logf("NOT RUN: %s; set PANLEARN_DEEP=1", what)
	return false
}
