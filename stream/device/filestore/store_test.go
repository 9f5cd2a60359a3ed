package filestore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nth returns the attempt of a number whose Open has no hash to speak of.
func nth(n stream.Attempt) participation.Attempt { return participation.Attempt{Number: n} }

func open(t rapid.TB, path string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(path)
	must(t, err)
	return s
}

// A write that returned is in the file whatever happens to the process: a copy of the file taken at that moment has it.
func TestDurableWhenWriteReturns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.participation")
	s := open(t, path)
	defer func() { must(t, s.Close()) }()
	for i := range 20 {
		p := participation.Record{Key: participation.RowKey("s", int64(i))}
		must(t, p.Join(participation.Draw{Round: 1, Step: 1, Counts: []byte{1, 2}}))
		p.Sending(nth(1), participation.Attempts{Most: 1})
		must(t, s.Write(participation.Change{Events: []participation.Record{p}}))
		killed := filepath.Join(dir, fmt.Sprint("killed", i))
		must(t, os.Mkdir(killed, 0o700))
		entries, err := os.ReadDir(path)
		must(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(path, e.Name()))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(killed, e.Name()), data, 0o600))
		}
		again := open(t, killed)
		for k := range 20 {
			got, err := again.Read([]participation.Key{participation.RowKey("s", int64(k))})
			must(t, err)
			want := participation.Fresh
			if k <= i {
				want = participation.Charged
			}
			if got[0].State != want {
				t.Errorf("after write %d event %d is %v, want %v", i, k, got[0].State, want)
			}
		}
		must(t, again.Close())
	}
}

// TestTornTail checks that a log that ends in the middle of a frame, at any byte, equals the log before that frame
// was written.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.participation")
	s := open(t, path)
	keys := []participation.Key{{1}, {2}}
	for _, k := range keys {
		must(t, s.Write(participation.Change{Events: []participation.Record{charged(t, k, 1)}}))
	}
	must(t, s.Close())
	log := logOf(t, path)
	data, err := os.ReadFile(log)
	must(t, err)
	for n := len(data) - 1; ; n-- {
		must(t, os.WriteFile(log, data[:n], 0o600))
		s := open(t, path)
		got, err := s.Read(keys)
		must(t, err)
		must(t, s.Close())
		if got[1].State != participation.Fresh {
			t.Fatalf("cut at byte %d the second event is %v", n, got[1].State)
		}
		if info, err := os.Stat(log); err != nil || int(info.Size()) > n || info.Size() < 36 {
			t.Fatalf("cut at byte %d it has %d bytes, %v", n, info.Size(), err)
		}
		if got[0].State != participation.Charged {
			if len(data)-n < 100 {
				t.Fatalf("cut at byte %d the first event is %v", n, got[0].State)
			}
			break
		}
	}
}

// TestDamage: a byte that changed anywhere in what was written is an error with advice, and nothing is guessed.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.participation")
	s := open(t, path)
	for i := range 3 {
		must(t, s.Write(participation.Change{Rounds: map[stream.Round]stream.Hash{1: {2}},
			Events: []participation.Record{charged(t, participation.Key{byte(i + 1)}, 1)}}))
	}
	must(t, s.Close())
	log := logOf(t, path)
	data, err := os.ReadFile(log)
	must(t, err)
	guessed := 0
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x41
		must(t, os.WriteFile(log, bad, 0o600))
		s, err := filestore.Open(path)
		if err == nil {
			guessed++ // the length of the last frame, which says then that it is longer
			must(t, s.Close())
			continue
		}
		if i > 60 && !strings.Contains(err.Error(), "keep these users out of the task") {
			t.Fatalf("byte %d: %v: want advice", i, err)
		}
	}
	if guessed > 4 {
		t.Errorf("%d of %d damaged bytes were not seen", guessed, len(data))
	}
}

// TestLostKey: events that are charged and whose key is gone are not taken for fresh ones.
func TestLostKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.participation")
	s := open(t, path)
	must(t, s.Write(participation.Change{Events: []participation.Record{charged(t, participation.Key{1}, 1)}}))
	must(t, s.Close())
	keys, err := filepath.Glob(filepath.Join(path, "*.key"))
	must(t, err)
	if len(keys) != 1 {
		t.Fatalf("%d keys, want 1", len(keys))
	}
	must(t, os.Truncate(keys[0], 20))
	for range 2 {
		if s, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), "key of 1 charged events is gone") {
			t.Errorf("%v, %v", s, err)
		}
	}
	must(t, os.Remove(logOf(t, path)))
	if _, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), "without a log") {
		t.Errorf("keys alone: %v", err)
	}
}

// charged returns an event that was sent once.
func charged(t rapid.TB, k participation.Key, round stream.Round) participation.Record {
	p := participation.Record{Key: k}
	must(t, p.Join(participation.Draw{Round: round, Step: 1, Counts: []byte{1, 2, 3}}))
	p.Sending(nth(1), participation.Attempts{Most: 1})
	return p
}

// logOf returns the file of a folder's log.
func logOf(t *testing.T, path string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(path, "*.log"))
	must(t, err)
	if len(logs) != 1 {
		t.Fatalf("logs %v, want one", logs)
	}
	return logs[0]
}

func TestAllOrNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "a.participation"))
	defer func() { must(t, s.Close()) }()
	good := participation.Record{Key: participation.Key{1}}
	must(t, good.Join(participation.Draw{Round: 1}))
	err := s.Write(participation.Change{
		Pin: &participation.Pin{Source: "x"}, Rounds: map[stream.Round]stream.Hash{1: {}},
		Events: []participation.Record{good, {Key: participation.Key{2}}}, // a fresh event has no record
	})
	if err == nil {
		t.Fatal("a fresh event was written")
	}
	got, err := s.Read([]participation.Key{good.Key})
	must(t, err)
	_, pinned, _ := s.Pin()
	_, joined, _ := s.Manifest(1)
	if got[0].State != participation.Fresh || pinned || joined {
		t.Errorf("half a change was written: %v, %t, %t", got[0].State, pinned, joined)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filestore.Path(dir, "churn")
	s := open(t, path)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", info.Mode().Perm())
	}
	if info, err := os.Stat(logOf(t, path)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode().Perm(), err)
	}
	if _, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a file that is held: %v", err)
	}
	must(t, s.Close())
	for path, c := range map[string]struct {
		mode os.FileMode
		want string
	}{path: {0o750, "want 0700"}, logOf(t, path): {0o640, "want 0600"}} {
		good, err := os.Stat(path)
		must(t, err)
		must(t, os.Chmod(path, c.mode))
		if _, err := filestore.Open(filestore.Path(dir, "churn")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("what others may read: %v: want %s", err, c.want)
		}
		must(t, os.Chmod(path, good.Mode()))
	}
	for name, data := range map[string][]byte{"noise": bytes.Repeat([]byte{7}, 1<<14), "short": {1, 2, 3}} {
		bad := filepath.Join(dir, name)
		must(t, os.WriteFile(bad, data, 0o600))
		if _, err := filestore.Open(bad); err == nil || !strings.Contains(err.Error(), "an earlier format") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if filestore.Path("a", "b") != filepath.Join("a", "b.participation") {
		t.Error("path differs")
	}
}
