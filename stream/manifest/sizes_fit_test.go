package manifest_test

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestTaskThatIsTooLarge: a public model makes the task as much larger, and the error about a broker that takes less
// has both numbers and names what can be made smaller.
func TestTaskThatIsTooLarge(t *testing.T) {
	task := goodTask()
	plain, err := manifest.SizesOf(task, nil)
	if err != nil {
		t.Fatal(err)
	}
	task.Public = make([]byte, 256<<10)
	sizes, err := manifest.SizesOf(task, nil)
	if err != nil || sizes.Task < plain.Task+len(task.Public) {
		t.Fatalf("a task of %d bytes, %d without a public model: %v", sizes.Task, plain.Task, err)
	}
	if err := sizes.Fit(stream.Limits{MaxPayload: sizes.Task}); err != nil {
		t.Error(err)
	}
	err = sizes.Fit(stream.Limits{MaxPayload: sizes.Task - 1})
	if err == nil || !strings.Contains(err.Error(), "a smaller public model or start") {
		t.Errorf("error %v", err)
	}
}
