package procs

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Main builds the programs into p, runs the tests of a package, and removes the programs. It returns the exit
// code; it is not 0 if goroutines are left: func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs))
// }.
func Main(m interface{ Run() int }, p **Programs) int {
	built, err := Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer built.Remove()
	*p = built
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
