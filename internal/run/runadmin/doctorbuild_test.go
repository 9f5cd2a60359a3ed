package runadmin

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestStateOfAnotherBuild: a folder whose optimizer state this build does not write for the plan is not called damaged,
// and what is said names the build that goes on and reads the model. No backup is asked for: it would hold the same.
func TestStateOfAnotherBuild(t *testing.T) {
	store, err := pebblestore.Open(filepath.Join(t.TempDir(), "state"), pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), store)
	at, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := at.Clone()
	other.Algorithm = bytes.Clone(at.Algorithm)
	other.Algorithm[1] ^= 1 // the method that it is of
	const want = "go on with the task in that version"
	if _, err := statedir.Of(other); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	said := func(at state.Checkpoint) string {
		v := &visit{Config: Config{Logger: runtest.Discard()}}
		v.committed(at, nil)
		if len(v.list) == 0 || v.list[0].Status != natsadmin.Failure {
			t.Fatalf("found %+v, want a failure", v.list)
		}
		return v.list[0].Text
	}
	if text := said(other); !strings.Contains(text, want) || strings.Contains(text, "put a backup in its place") {
		t.Errorf("doctor says %q", text)
	}
	broken := at.Clone()
	broken.Task = []byte("no task")
	if text := said(broken); !strings.Contains(text, "put a backup in its place") {
		t.Errorf("of a task that is none doctor says %q", text)
	}
}
