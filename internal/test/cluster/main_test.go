package cluster

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/procs"
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
