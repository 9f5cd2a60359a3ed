package typescript

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

const people = `
version: 1
name: typescript
events: {format: csv, header: true}
features: {columns: [{column: x0, kind: numeric, min: -1, max: 1}, {column: x1, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["-1"]}
user: {column: who, items: 3}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: pan, unit: user}
schedule: {users: 40, cohort: 20, minimum_cohort: 20, rounds: {max: 2}, deadline: 60s, plan: proved}
`

const kinds = `
version: 1
name: typescript
events: {format: jsonl}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, missing: {indicator: true}}
    - {column: job, kind: categorical, vocabulary: [clerk, baker], unknown: other}
    - {column: town, kind: hashed, buckets: 3}
    - {column: hour, field: at, part: hour, kind: hats, knots: [0, 6, 24]}
    - {column: words, kind: text, buckets: 4}
  crosses: [{columns: [job, town], buckets: 3}]
  fourier: {columns: [age], dimension: 2, gamma: 1}
label: {column: y, classes: [red, green, blue]}
model: {loss: softmax, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle+pan, suite: mlkem768x25519}
schedule: {users: 40, cohort: 20, minimum_cohort: 20, rounds: {max: 2}, deadline: 60s, plan: proved}
`

// TestKinds: devices take part in tasks of all trusts that they know, of people, of suite 3, with features of many
// kinds, and without an end, and each gets the outcome that the batches show.
func TestKinds(t *testing.T) {
	person := func(i int) any {
		rows := []map[string]any{}
		for j := range 1 + i%5 { // of some more rows than enter a report
			rows = append(rows, map[string]any{"who": "ignored", "x0": float64(j) / 5, "x1": float64(i%3) / 3, "y": fmt.Sprint(2*(i%2) - 1)})
		}
		return rows
	}
	t.Run("people, under floors", func(t *testing.T) {
		d := deployDeclared(t, people)
		fleet := d.fleetOf(40, 20, 0, person)
		d.start(fleet)
		if lost := d.audit(); lost != 0 {
			t.Errorf("%d were charged and not counted", lost)
		}
	})
	t.Run("many kinds of features, several classes and suite 3", func(t *testing.T) {
		d := deployDeclared(t, kinds)
		fleet := d.fleetOf(40, 20, 0, func(i int) any {
			return map[string]any{"age": i, "job": []string{"clerk", "miner"}[i%2], "town": i, "at": "2024-02-29T13:30:00Z",
				"words": "The cat sat", "y": []string{"red", "green", "blue", "none"}[i%4]}
		})
		d.start(fleet)
		if lost := d.audit(); lost != 0 {
			t.Errorf("%d were charged and not counted", lost)
		}
	})
	if !longtest.Run(t, "trust local, and a task without an end") {
		return
	}
	t.Run("trust local", func(t *testing.T) {
		d := deployDeclared(t, strings.NewReplacer("trust: pan, unit: user", "trust: local", "user: {column: who, items: 3}\n", "").Replace(people))
		fleet := d.fleet(40, 20, 0.02)
		d.start(fleet)
		d.audit()
	})
	t.Run("without an end", func(t *testing.T) {
		d := deployDeclared(t, strings.NewReplacer("trust: pan, unit: user", "trust: shuffle", "user: {column: who, items: 3}\n", "", "deadline: 60s",
			"deadline: 60s, continuous: constant").Replace(people))
		fleet := d.fleet(100, 20, 0.02)
		d.start(fleet)
		d.until("devices are counted", func() bool {
			_, outcomes := d.said(fleet)
			return len(outcomes) >= 60
		})
		if _, ended := d.look(name.End()); ended {
			t.Error("the task has ended")
		}
		_, outcomes := d.said(fleet)
		for i, o := range outcomes {
			if o.State != "counted" && o.State != "unknown" && o.State != "uncounted" || o.Failed != "" {
				t.Errorf("device %d was told %+v", i, o)
			}
		}
		fleet.Kill()
	})
}

// TestCommand: panlearn-device takes part with the events of a file, is interrupted, goes on with its folder, and says what
// became of each event; its ledger is what that cost.
func TestCommand(t *testing.T) {
	d := deploy(t, 20, 20, 20, 1, "60s", "proved")
	file, state := filepath.Join(d.dir, "events.jsonl"), filepath.Join(d.dir, "command")
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, "{\"id\": \"user-%d\", \"x0\": 0.1, \"x1\": %v, \"y\": 1}\n", i, float64(i)/20)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(d.compiled, "src", "cli.js")
	run := []string{cli, "run", "--relay", d.relay, "--task", string(name), "--pin", fmt.Sprintf("%x", d.hash), "--events", file, "--key", "id",
		"--state", state}
	first := programs.Process(t, "command", d.node, run...)
	d.start(first)
	d.until("somebody is charged", func() bool {
		text, _ := os.ReadFile(filepath.Join(state, "journal"))
		return strings.Contains(string(text), "charged")
	})
	if err := first.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if exit, err := first.Wait(d.ctx); err != nil || exit.Code != 0 {
		t.Fatalf("interrupted: %v, %v", exit, err)
	}
	second := programs.Process(t, "again", d.node, run...)
	d.start(second)
	if exit, err := second.Wait(d.ctx); err != nil || exit.Code != 0 {
		t.Fatalf("the command: %v, %v", exit, err)
	}
	out, err := second.Stdout()
	if err != nil || strings.Count(string(out), `"state":"counted","round":1`) != 20 {
		t.Errorf("the command says %s, %v", out, err)
	}
	text, err := exec.Command(d.node, cli, "ledger", "--state", state).Output()
	var said struct {
		Epsilon float64
		Tasks   []struct {
			Events uint64
			Task   string
		}
	}
	if err != nil || json.Unmarshal(text, &said) != nil || len(said.Tasks) != 1 || said.Tasks[0].Events != 20 || said.Epsilon <= 0 {
		t.Errorf("the ledger: %s, %v", text, err)
	}
}
