package kills

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// seedFlag repeats the draws of a campaign; what processes do with their time is not a function of it.
var seedFlag = flag.Uint64("kills.seed", 0, "seed of the kills; 0: 1, or a new one with PANLEARN_DEEP")

var programs *procs.Programs

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withPrograms(m))
}

func withPrograms(m *testing.M) int {
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
