package natsjs

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
	if os.Getenv("PANLEARN_DEEP") == "1" {
		return true
	}
	fmt.Printf("NOT RUN: %s: %s; set PANLEARN_DEEP=1\n", t.Name(), what)
	t.Logf("NOT RUN: %s; set PANLEARN_DEEP=1", what)
	return false
}
