package intrusion

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deep says whether the long tests run, and says loudly what does not.
func deep(t testing.TB, what string) bool {
	t.Helper()
	if os.Getenv("PANLEARN_DEEP") != "" {
		return true
	}
	fmt.Printf("NOT RUN: %s: %s; set PANLEARN_DEEP=1\n", t.Name(), what)
	t.Logf("NOT RUN: %s; set PANLEARN_DEEP=1", what)
	return false
}

// must is for the test's own mistakes, on whatever goroutine.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
