package statefolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// takePart lets n new events of a task, from number first on, take part, in the ledger and in the participations.
func takePart(t *testing.T, task stream.Task, s participation.Store, l ledger.Ledger, first, n int) {
	t.Helper()
	hash := stream.Hash{1}
	change := participation.Change{Pin: &participation.Pin{Task: hash, Source: "http"},
		Rounds: map[stream.Round]stream.Hash{1: {2}}}
	for i := range n {
		e := participation.Record{Key: participation.RowKey("http", int64(first+i)), State: participation.Counted, Rounds: 1,
			Draw: participation.Draw{Round: 1, Phase: 1, Most: 1, Manifest: stream.Hash{2}}}
		change.Events = append(change.Events, e)
	}
	err := l.Update(time.Unix(1000, 0), []participation.Key{ledger.Everyone},
		func(now time.Time, charges [][]ledger.Charge) error {
			charges[0] = ledger.Add(charges[0], ledger.Charge{Task: hash, Name: task, Epsilon: 0.99, Delta: 1e-6, Rounds: 1,
				Most: 1, At: now}, uint64(n), uint64(n), 1<<62)
			return nil
		})
	if err == nil {
		err = s.Write(change)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A ledger that is put back from a copy, or an empty one in its place, does not make what other tasks cost vanish
// from the totals of a policy, and neither does an older one beside the task's own participations.
func TestLedgerIsOlder(t *testing.T) {
	for name, forget := range map[string]func(path string, copied []byte) error{
		"an empty one":   func(path string, _ []byte) error { return os.Remove(path) },
		"an older copy":  func(path string, copied []byte) error { return os.WriteFile(path, copied, 0o600) },
		"the newest one": func(string, []byte) error { return nil },
	} {
		for _, own := range []bool{false, true} {
			c := Config{Dir: t.TempDir()}
			c.Task, c.Policy.MaxTotalEpsilon = "first", 1.5
			f, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			takePart(t, c.Task, f.Store, f.Ledger, 0, 2)
			copied, err := os.ReadFile(filepath.Join(c.Dir, filestore.LedgerName))
			if err != nil {
				t.Fatal(err)
			}
			takePart(t, c.Task, f.Store, f.Ledger, 2, 3)
			if err := errors.Join(f.Close(), forget(filepath.Join(c.Dir, filestore.LedgerName), copied)); err != nil {
				t.Fatal(err)
			}
			if !own {
				c.Task = "second"
			}
			opened := func() error {
				f, err := Open(c)
				if err != nil {
					return err
				}
				return f.Close()
			}
			err = opened()
			var refused *consent.RefusedError
			want := name == "an older copy" || name == "an empty one" && !own // the client charges its own task if none is known
			if errors.As(err, &refused) != want || !want && err != nil {
				t.Errorf("%s, the task's own %v: %v", name, own, err)
			}
			c.Policy.MaxTotalEpsilon = 0
			if err := opened(); errors.As(err, &refused) {
				t.Errorf("%s: a policy without totals is refused: %v", name, err)
			}
		}
	}
}

// A state folder that is put back from a copy of its own running self is refused on the machine that wrote it, before
// anybody takes part again. A folder of before marks, one that was moved here, and one that stopped in the middle go
// on.
func TestFolderIsPutBack(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "devices"), Marks: filepath.Join(t.TempDir(), "marks")}
	c.Task = "first"
	plain := c
	plain.Marks = ""
	write := func(c Config, first, n int, between func()) error {
		f, err := Open(c)
		if err != nil {
			return err
		}
		takePart(t, c.Task, f.Store, memory.NewLedger(), first, n)
		if between != nil {
			between()
			takePart(t, c.Task, f.Store, memory.NewLedger(), first+n, 1)
		}
		return f.Close()
	}
	if err := write(plain, 0, 2, nil); err != nil { // before there were marks
		t.Fatal(err)
	}
	before, running := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "running")
	copyTo := func(from, to string) {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []string{".", "*", "*/*"} { // copies have modes of their own
			paths, err := filepath.Glob(filepath.Join(to, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				mode := fs.FileMode(0o600)
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					mode = 0o700
				}
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := write(c, 2, 2, nil); err != nil {
		t.Fatalf("a folder of before marks: %v", err)
	}
	copyTo(c.Dir, before)
	if err := write(c, 4, 2, func() { copyTo(c.Dir, running) }); err != nil {
		t.Fatalf("again: %v", err)
	}
	for name, copied := range map[string]string{"stopped": before, "running": running} {
		older := c
		older.Dir = copied
		err := write(older, 10, 1, nil)
		var refused *consent.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.Marks) {
			t.Errorf("a copy of the folder while it was %s: %v, want a refusal that says which file knows better", name, err)
		}
		elsewhere := older
		elsewhere.Marks = t.TempDir()
		if err := write(elsewhere, 10, 1, nil); err != nil {
			t.Errorf("a copy on another machine: %v", err)
		}
	}
	if err := write(c, 20, 1, nil); err != nil {
		t.Errorf("the newest: %v", err)
	}
}

// A ledger that was deleted does not make what other tasks cost vanish from the totals of a policy.
func TestLedgerIsLost(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	c.Task, c.Policy.MaxTotalEpsilon = "new", 1
	if err := os.MkdirAll(filestore.Path(c.Dir, c.Task), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.ledgerLost(); err != nil {
		t.Errorf("the task's own folder: %v", err)
	}
	if err := os.MkdirAll(filestore.Path(c.Dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	var refused *consent.RefusedError
	if err := c.ledgerLost(); !errors.As(err, &refused) {
		t.Errorf("another task's folder without a ledger: %v", err)
	}
	if _, err := filestore.OpenLedger(c.Dir); err != nil {
		t.Fatal(err)
	}
	if err := c.ledgerLost(); err != nil {
		t.Errorf("with the ledger: %v", err)
	}
}
