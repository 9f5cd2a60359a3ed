package stage

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// noFolder is a folder that nothing is asked of.
type noFolder struct{ Folder }

// TestSplitIsPinned: a stage does not enlist in a task of two operators without its folder, the learner's and the other
// operator's pinned keys, and a way to it; nor where the task names another helper.
func TestSplitIsPinned(t *testing.T) {
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
		all := Config{Task: stream.Task(task.Name), Identity: identity, LearnerKey: task.LearnerKey,
			Leader: Leader{HelperKey: task.HelperKey, Exchange: new(memory.Broker), Folder: noFolder{}}}
		for name, take := range map[string]func(*Config){
			"everything":     func(*Config) {},
			"--state":        func(c *Config) { c.Leader.Folder = nil },
			"--helper-key":   func(c *Config) { c.Leader.HelperKey = nil },
			"--learner-key":  func(c *Config) { c.LearnerKey = nil },
			"no way":         func(c *Config) { c.Leader.Exchange = nil },
			"may not choose": func(c *Config) { c.Leader.HelperKey = identity.Public() },
		} {
			c := all
			take(&c)
			e := &environment{Config: c}
			_, err = e.suits(&task, task.LearnerKey)
			refused := v.Name != "pan" && name != "everything"
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", v.Name, name, err)
			}
			if name == "--learner-key" && refused && (strings.Contains(err.Error(), "pin its learner, ") ||
				!strings.Contains(err.Error(), "may have chosen")) {
				t.Errorf("an unverified key is told to be pinned: %v", err)
			}
		}
	}
	if looked != 2 {
		t.Errorf("%d vectors, want 2", looked)
	}
}
