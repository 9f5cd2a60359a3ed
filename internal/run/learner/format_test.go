package learner

import (
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runtest"
	"github.com/panlearn/panlearn/internal/run/statedir"

	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/memory"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var keepFormat = flag.Bool("keep-format", false, "write the kept folders of this build's format that are not there yet")

// kept are the tasks of which a folder of every format is kept: one for each kind of optimizer state.
var kept = map[string][]string{
	"psgd":     {"schedule.algorithm=psgd", "schedule.rounds.max=4"},
	"pagd":     {"schedule.algorithm=pagd", "schedule.rounds.max=4"},
	"restarts": {"schedule.algorithm=pagd-restarts", "model.ridge=0.1", "schedule.rounds.max=5"},
	"epochs":   {"schedule.continuous=epochs", "schedule.rounds.max=4"},
	"scores":   {"schedule.rounds.max=4"}, // the others began before there were scores
	"moments":  {"features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.rounds.max=4"},
}

// keptRounds are committed in a kept folder; the task goes on to lastRound.
const (
	keptRounds = 2
	lastRound  = 4
)

// A keptRun is what is kept beside a folder: all that stood on the broker, and the learner's state, after lastRound.
type keptRun struct {
	Records []keptRecord   `json:"records"`
	End     statedir.Image `json:"end"`
}

type keptRecord struct {
	Subject string `json:"subject"`
	Data    []byte `json:"data"`
}

// imageOf is what a store holds, which it closes.
func imageOf(t *testing.T, store state.Store) statedir.Image {
	t.Helper()
	view, err := statedir.Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	at, err := view.Image()
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return at
}

// keep makes the folder of a task at keptRounds, and what its run to lastRound leaves.
func keep(t *testing.T, dir string, spec []string) {
	t.Helper()
	job := runtest.Job(t, runtest.Small(t, spec...))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	broker, err := memory.New(memory.Config{MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	mixer := runtest.Identity(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	learner, _, err := seal.LoadOrCreateIdentity(filepath.Join(dir, "learner.key"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "state")
	upToRound := func(round uint64) statedir.Image {
		store, err := pebblestore.Open(folder, pebblestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runtest.LearnedOn(t, broker, stream.Task(job.Spec.Name), body, learner, mixer, runtest.UpTo{Store: store, Round: round})
		return imageOf(t, store)
	}
	upToRound(keptRounds)
	if err := os.CopyFS(filepath.Join(dir, "state"), os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	run := keptRun{End: upToRound(lastRound)}
	for _, m := range broker.Dump() {
		run.Records = append(run.Records, keptRecord{m.Subject, m.Data})
	}
	doc, err := json.MarshalIndent(run, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "run.json"), append(doc, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeptFormats: a folder of every format that there was is read by this build, and goes on to the bytes to which the build
// that wrote it went on: the same rounds announced, the same model, cursor and ledger. Folders of past formats are never
// written again; a new format adds its own, with -keep-format.
func TestKeptFormats(t *testing.T) {
	for format := 1; format <= pebblestore.FolderFormat; format++ {
		for method, spec := range kept {
			dir := filepath.Join("testdata", fmt.Sprintf("format%d", format), method)
			if _, err := os.Stat(dir); err != nil && *keepFormat && format == pebblestore.FolderFormat {
				keep(t, dir, spec)
			}
			t.Run(fmt.Sprintf("%d/%s", format, method), func(t *testing.T) { goesOn(t, dir, spec) })
		}
	}
}

func goesOn(t *testing.T, dir string, spec []string) {
	folder, key := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "learner.key")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(dir, "state"))); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "learner.key"))
	if err == nil {
		err = os.WriteFile(key, pem, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var want keptRun
	doc, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(doc, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := statedir.StatusOf(t.Context(), folder)
	if err != nil || s.Round != keptRounds || s.EpsilonSpent <= 0 {
		t.Fatalf("the kept folder: %+v, %v", s, err)
	}
	if runtime.GOARCH != "amd64" {
		t.Log("NOT RUN: going on to the same bytes: they were written on amd64, and other machines round products and sums together")
		return
	}
	learner, err := seal.LoadIdentity(key)
	if err != nil {
		t.Fatal(err)
	}
	broker, err := memory.New(memory.Config{MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Task(s.Task)
	batches, left := map[string][]byte{}, map[string][]byte{}
	for _, r := range want.Records {
		at, err := stream.ParseSubject(r.Subject)
		if err != nil {
			t.Fatal(err)
		}
		if at.Verb == "end" || at.Round > keptRounds {
			if at.Verb == "batch" {
				batches[r.Subject] = r.Data
			}
			left[r.Subject] = r.Data
			continue
		}
		if _, err := broker.PutOnce(t.Context(), r.Subject, r.Data); err != nil {
			t.Fatal(err)
		}
	}
	store, err := pebblestore.Open(folder, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taskOf(t.Context(), store, runtest.Small(t, spec...)); err != nil {
		t.Errorf("the task file as it is read now: %v", err)
	}
	learning, err := service.New(service.Config{Task: name, Records: broker, Store: runtest.UpTo{Store: store, Round: lastRound}, Identity: learner, Build: run.BuildAlgorithm,
		Prepare: func() (*wire.Task, error) { return nil, errors.New("planned anew") },
		Observer: runtest.Stage(func(r stream.Round) {
			if _, err := broker.PutOnce(t.Context(), name.Batch(r), batches[name.Batch(r)]); err != nil {
				t.Error(err)
			}
		})})
	if err != nil {
		t.Fatal(err)
	}
	if err := learning.Run(t.Context()); err != nil && !errors.Is(err, runtest.ErrEnough) {
		t.Fatal(err)
	}
	got := imageOf(t, store)
	if !bytes.Equal(got.Checkpoint, want.End.Checkpoint) {
		t.Errorf("the checkpoint of round %d is another one", lastRound)
	}
	if len(got.Ledger) != len(want.End.Ledger) {
		t.Fatalf("%d ledger entries, want %d", len(got.Ledger), len(want.End.Ledger))
	}
	for i, e := range got.Ledger {
		if !bytes.Equal(e, want.End.Ledger[i]) {
			t.Errorf("ledger entry %d is another one", i+1)
		}
	}
	for subject, data := range left {
		if m, err := broker.Get(t.Context(), subject); err != nil || !bytes.Equal(m.Data, data) {
			t.Errorf("%s: %v, or other bytes", subject, err)
		}
	}
}
