package device

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSplitIsNotJoined: a policy may agree to a task of two operators, and this device, which does not share reports
// between them, takes no part in it.
func TestSplitIsNotJoined(t *testing.T) {
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
	found := false
	for _, v := range file.Tasks {
		if v.Name != "two operators" && v.Name != "pan" {
			continue
		}
		body, err := hex.DecodeString(v.Task)
		if err != nil {
			t.Fatal(err)
		}
		var task wire.Task
		if err := stream.Unmarshal(body, &task); err != nil {
			t.Fatal(err)
		}
		c := &Settings{Bundle: 1, Logger: slog.New(slog.DiscardHandler)}
		_, err = c.propose(&task, stream.HashOf(body), nil, 0, nil)
		var refused *consent.RefusedError
		if split := v.Name != "pan"; split != (errors.As(err, &refused) && refused.Field == "plan.trust") {
			t.Errorf("%s: %v", v.Name, err)
		}
		found = found || v.Name == "two operators"
	}
	if !found {
		t.Error("no vector of two operators")
	}
}
