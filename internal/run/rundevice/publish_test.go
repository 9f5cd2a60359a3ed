package rundevice

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestPublishRefusesFirst: a file that is not what the task declares is refused before anybody is asked for anything.
func TestPublishRefusesFirst(t *testing.T) {
	dir := t.TempDir()
	csv := runtest.Parsed(t, strings.Replace(runtest.Words, "columns: [age, kind, income]", "header: true", 1))
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("age,weight\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: "nats://127.0.0.1:1"}} // connecting would be the error
	for what, test := range map[string]struct {
		spec *task.Spec
		data string
		as   task.Format
		want string
	}{
		"a missing column":  {csv, bad, "", "kind"},
		"a missing file":    {runtest.Small(t), filepath.Join(dir, "missing"), "", "missing"},
		"an unknown format": {runtest.Small(t), bad, "feather", "--format"},
		"another format":    {runtest.Small(t), bad, task.Parquet, "not a Parquet file"},
	} {
		state := filepath.Join(dir, "state")
		_, err := Publish(t.Context(), Config{Settings: device.Settings{Task: "words", Spec: test.spec,
			Logger: runtest.Discard()},
			Data: test.data, Format: test.as, StateDir: state, Broker: nowhere})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
		if _, err := os.Stat(state); err == nil {
			t.Errorf("%s: a store was made", what)
		}
	}
}

// A silo without a folder would draw about the same rows again in another run, and with noise for another number of
// them: it reaches no broker.
func TestSiloNeedsState(t *testing.T) {
	data := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(data, []byte("1 1:1\n-1 1:0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := runtest.Parsed(t, `
version: 1
name: clinics
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6, trust: local}
silo: {count: 2, units: 2}
`)
	for state, want := range map[string]string{"": "--state", t.TempDir(): "127.0.0.1"} {
		_, err := Publish(t.Context(), Config{Settings: device.Settings{Task: "clinics", Spec: spec, Source: data,
			Logger: runtest.Discard()}, Data: data, StateDir: state,
			Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: "nats://127.0.0.1:1"}}})
		if err == nil || !strings.Contains(err.Error(), want) || (state == "") != errors.Is(err, ErrNoState) {
			t.Errorf("state %q: %v, want %q", state, err, want)
		}
	}
}
