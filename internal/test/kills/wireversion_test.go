package kills

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// laterPrograms builds the commands of this module with the next wire version.
func laterPrograms(t *testing.T) *procs.Programs {
	t.Helper()
	dir := t.TempDir()
	codec, err := filepath.Abs("../../../stream/codec.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(codec)
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(text, []byte("\nconst Version = 1\n"), []byte("\nconst Version = 2\n"), 1)
	if bytes.Equal(later, text) {
		t.Fatal("stream/codec.go does not say that the wire version is 1")
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {codec: filepath.Join(dir, "codec.go")}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "codec.go"), later, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir+"/", "./cmd/learner",
		"./cmd/ingest")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build programs of the next wire version: %v\n%s", err, out)
	}
	return &procs.Programs{Learner: filepath.Join(dir, "learner"), Ingest: filepath.Join(dir, "ingest")}
}

// TestOtherWireVersion: on a broker with a task of the next wire version no program of this one takes part. Each names
// both versions and the way out: a publisher waits and sends nothing, since nobody signed the number; stage and learner
// end.
func TestOtherWireVersion(t *testing.T) {
	if !longtest.Run(t, "programs of two wire versions on one broker") {
		return
	}
	later := laterPrograms(t)
	f := newFleet(t, plan{rounds: 2, cohort: 12, publishers: 1, rows: 30, lease: patience / 10})
	for _, name := range []string{"learner", "stage0"} {
		f.role(name).Use(f.role(name).program(later))
	}
	said := func(r *role) bool {
		log, err := os.ReadFile(r.Log())
		return err == nil && strings.Contains(string(log),
			"wire version 2, this program speaks 1: use builds of one wire version, which their command version prints") &&
			strings.Contains(string(log), "docs/how-to/upgrades.md")
	}
	w := watch(t, f.broker.URL())
	f.start("learner", "stage0")
	f.until("the first round", func() bool { return w.newestRound() == 1 })
	publisher, stage, learner := f.role("publisher0"), f.role("stage1"), f.role("learner")
	f.start("publisher0", "stage1")
	if exit, err := stage.Wait(t.Context()); err != nil || exit != (procs.Exit{Code: 1}) || !said(stage) {
		t.Errorf("the stage ended with %v, %v: want exit code 1, and both versions with the way out", exit, err)
	}
	f.until("a publisher that says why it waits", func() bool { return said(publisher) })
	if n := f.reports(); n > 0 || !publisher.Running() {
		t.Errorf("the publisher sent %d reports, runs: %v", n, publisher.Running())
	}
	// The learner's folder has the task of the other version.
	if err := learner.Terminate(); err != nil {
		t.Fatal(err)
	}
	if _, err := learner.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	learner.Use(programs.Learner)
	f.start("learner")
	if exit, err := learner.Wait(t.Context()); err != nil || exit != (procs.Exit{Code: 1}) || !said(learner) {
		t.Errorf("the learner ended with %v, %v: want exit code 1, and both versions with the way out", exit, err)
	}
	w.close()
}
