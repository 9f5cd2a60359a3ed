package quickstart

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs is how often a test runs its task. That a seed makes the same model again is TestQuickstart's promise; the long form holds it of
// every kind of task.
func runs() int {
	if longtest.On() {
		return 2
	}
	return 1
}
