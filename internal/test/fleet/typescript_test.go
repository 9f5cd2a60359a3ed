package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
)

// script starts so many devices in TypeScript that are 300 ms away, in one process, and returns what waits for its end and
// adds up what they were told.
func (f *fleet) script(relay string, devices int, dying float64) func(c *crowd) {
	if devices == 0 {
		return func(*crowd) {}
	}
	folder, node := nodejs.Client(f.t)
	nodejs.Run(f.t, folder, "build:test")
	events := map[int]any{}
	for i := range devices {
		events[i] = map[string]any{"index": []int{i % 10}, "value": []float64{0.5}, "label": "1"}
	}
	text, err := json.Marshal(map[string]any{"relay": relay, "task": name, "events": events, "latencyMs": 300, "memory": true, "dying": dying,
		"pin": fmt.Sprintf("%x", f.hash)})
	must(f.t, err)
	file := filepath.Join(f.t.TempDir(), "fleet.json")
	must(f.t, os.WriteFile(file, text, 0o600))
	command := exec.CommandContext(f.t.Context(), node, filepath.Join(folder, "build", "test", "fleet.js"), file)
	var failed bytes.Buffer
	said, err := command.StdoutPipe()
	must(f.t, err)
	command.Stderr = &failed
	must(f.t, command.Start())
	decoder := json.NewDecoder(said)
	type told struct {
		Ready, Accepted bool
		State, Failed   string
		Round           uint64
	}
	for ready := 0; ready < devices; { // each has agreed to the task
		var one told
		if err := decoder.Decode(&one); err != nil {
			f.t.Fatalf("the devices in TypeScript: %v\n%s", errors.Join(err, command.Wait()), failed.Bytes())
		}
		if one.Ready {
			ready++
		}
	}
	return func(c *crowd) {
		states := map[string]int{}
		for decoder.More() {
			var told told
			must(f.t, decoder.Decode(&told))
			switch {
			case told.Ready || told.Accepted:
				continue
			case told.Failed != "":
				must(f.t, errors.New(told.Failed))
			}
			switch states[told.State]++; {
			case told.State == "died":
				c.died++
			case told.State == "counted":
				c.counted++
			case told.Round > 0: // charged
				c.vain++
			}
		}
		if err := command.Wait(); err != nil {
			f.t.Fatalf("the devices in TypeScript: %v\n%s", err, failed.Bytes())
		}
		f.t.Logf("in TypeScript: %v", states)
		if states["counted"] == 0 {
			f.t.Error("nobody was counted")
		}
	}
}

// TestCrowdInTypeScript: devices in TypeScript and in Go that are 300 ms away, over a relay, beside a gateway, of whose
// connections some die: all rounds fill, hardly anybody pays in vain, and nobody is counted twice.
func TestCrowdInTypeScript(t *testing.T) {
	scripted, single, rows := 60, 60, 160
	if longtest.Run(t, "1,000 devices in TypeScript, 1,000 in Go and a gateway of 3,000 rows") {
		scripted, single, rows = 1000, 1000, 3000
	}
	const rounds = 4
	users := (scripted + single + rows) * 9 / 10 // some die
	cohort := users / rounds
	f := newFleet(t, users, cohort, 2*time.Minute, true)
	c := f.play(single, single, scripted, rows, rounds, cohort, 0.05)
	c.judge(t, true)
	// Who died may be in a batch, and who cannot know is among those who paid in vain.
	if c.released > c.counted+c.vain+c.died {
		t.Errorf("%d users in batches, %d were told that they may be: somebody was counted twice", c.released, c.counted+c.vain+c.died)
	}
	if c.counted > c.released {
		t.Errorf("%d users were told that they are counted, the batches have %d", c.counted, c.released)
	}
}
