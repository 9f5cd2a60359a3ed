package stage

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSplitIsNotMixed: a stage that works without a helper does not enlist in a task of two operators, whose floor would
// be one of two.
func TestSplitIsNotMixed(t *testing.T) {
	data, err := os.ReadFile("../../docs/vectors/consent.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tasks []struct{ Name, Task string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	identity, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, v := range file.Tasks {
		if v.Name != "two operators" && v.Name != "pan" {
			continue
		}
		looked++
		body, err := hex.DecodeString(v.Task)
		if err != nil {
			t.Fatal(err)
		}
		var task wire.Task
		if err := stream.Unmarshal(body, &task); err != nil {
			t.Fatal(err)
		}
		task.StageKey = identity.Public()
		e := &environment{Config: Config{Task: stream.Task(task.Name), Identity: identity}}
		_, err = e.suits(&task, task.LearnerKey)
		if split := v.Name != "pan"; split != (err != nil && strings.Contains(err.Error(), "not built yet")) {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	if looked != 2 {
		t.Errorf("%d vectors, want 2", looked)
	}
}
