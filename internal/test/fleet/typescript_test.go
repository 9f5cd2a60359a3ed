package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
)

// processes bounds how many devices in TypeScript share a core: outside of tests each has one of its own.
const processes = 2

// told holds the output of a device in TypeScript.
type told struct {
	Ready, Accepted bool
	State, Failed   string
	Round           uint64
	Twice           bool // two messages of one attempt differ
}

// script starts so many devices in TypeScript that are 300 ms away, and returns what waits for their end and adds up
// their outcomes.
func (f *fleet) script(relay string, devices int, dying float64) func(c *crowd) {
	if devices == 0 {
		return func(*crowd) {}
	}
	_, node := nodejs.Client(f.t)
	compiled := nodejs.Compile(f.t)
	var ready sync.WaitGroup // each has agreed to the task
	ready.Add(devices)
	said := make([][]told, processes)
	ended := make(chan error, processes)
	for p := range processes {
		events := map[int]any{}
		for i := p; i < devices; i += processes {
			events[i] = map[string]any{"index": []int{i % 10}, "value": []float64{0.5}, "label": "1"}
		}
		text, err := json.Marshal(map[string]any{"relay": relay, "task": name, "events": events, "latencyMs": 300,
			"memory": true,
			"dying":  dying, "seed": p + 1, "pin": fmt.Sprintf("%x", f.hash)})
		must(f.t, err)
		file := filepath.Join(f.t.TempDir(), "fleet.json")
		must(f.t, os.WriteFile(file, text, 0o600))
		command := exec.CommandContext(f.t.Context(), node, filepath.Join(compiled, "test", "fleet.js"), file)
		var failed bytes.Buffer
		out, err := command.StdoutPipe()
		must(f.t, err)
		command.Stderr = &failed
		must(f.t, command.Start())
		go func() { // all the time: Node stops if nobody reads its output
			missing := len(events)
			for decoder := json.NewDecoder(out); ; {
				var one told
				if err := decoder.Decode(&one); err != nil {
					break
				}
				if one.Ready {
					missing--
					ready.Done()
				}
				said[p] = append(said[p], one)
			}
			err := command.Wait()
			if err != nil || missing > 0 {
				err = fmt.Errorf("the devices in TypeScript: %d did not agree: %w\n%s", missing, err, failed.Bytes())
			}
			ready.Add(-missing)
			ended <- err
		}()
	}
	ready.Wait()
	return func(c *crowd) {
		for range processes {
			must(f.t, <-ended)
		}
		states, before := map[string]int{}, c.vain
		for _, told := range slices.Concat(said...) {
			switch {
			case told.Ready || told.Accepted:
				continue
			case told.Failed != "":
				must(f.t, errors.New(told.Failed))
			}
			if told.Twice {
				c.twice++
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
		f.t.Logf("in TypeScript: %v, %d charged and not counted", states, c.vain-before)
		if states["counted"] == 0 {
			f.t.Error("nobody was counted")
		}
	}
}

// TestCrowdInTypeScript: devices in TypeScript and in Go that are 300 ms away, over a relay, beside a gateway, of whose
// connections some die: all rounds fill, hardly anybody pays in vain, and nobody is counted twice.
func TestCrowdInTypeScript(t *testing.T) {
	nodejs.Client(t) // before others take part: a skip stops them, and they would fail the test
	scripted, single, rows := 60, 60, 160
	deadline := 2 * time.Minute
	if longtest.Run(t, "3,000 devices in TypeScript, 3,000 in Go and a gateway of 100,000 rows") {
		scripted, single, rows = 3000, 3000, 100_000
		deadline = 5 * time.Minute // two cores are all of these machines
	}
	const rounds = 4
	users := (scripted + single + rows) * 9 / 10 // some die
	cohort := users / rounds
	f := newFleet(t, users, cohort, deadline, true)
	c := f.play(single, single, scripted, rows, rounds, cohort, 0.05)
	c.judge(t, true)
	// Who died may be in a batch, and who cannot know is among those who paid in vain.
	if c.released > c.counted+c.vain+c.died {
		t.Errorf("%d users in batches, %d were told that they may be: somebody was counted twice", c.released,
			c.counted+c.vain+c.died)
	}
	if c.counted > c.released {
		t.Errorf("%d users were told that they are counted, the batches have %d", c.counted, c.released)
	}
}
