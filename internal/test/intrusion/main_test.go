package intrusion

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must panics on the test's own mistakes, on whatever goroutine.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
