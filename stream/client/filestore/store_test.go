package filestore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/filestore"
	"github.com/panlearn/panlearn/stream/client/participation"
)

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nth is the attempt of a number whose Open has no hash to speak of.
func nth(n stream.Attempt) participation.Attempt { return participation.Attempt{Number: n} }

func open(t rapid.TB, path string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(path)
	must(t, err)
	return s
}

func encoded(t rapid.TB, p participation.Record) string {
	if p.State == participation.Fresh {
		return "fresh"
	}
	b, err := p.MarshalBinary()
	must(t, err)
	return string(p.Key[:]) + string(b)
}

// listed is what a store lists as charged, in the order of keys.
func listed(t rapid.TB, s participation.Store) string {
	var all []participation.Record
	for p, err := range s.Charged() {
		must(t, err)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b participation.Record) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	var out strings.Builder
	for _, p := range all {
		out.WriteString(encoded(t, p))
	}
	return out.String()
}

// Whatever is written, with the file closed and opened at any point, it answers as the store in memory does.
func TestAnswersAsMemory(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		path := filepath.Join(dir, strings.Repeat("x", runs), "churn.participation")
		model, s := participation.NewMemoryStore(), open(t, path)
		defer func() { must(t, s.Close()) }()
		keys := make([]participation.Key, 6)
		for i := range keys {
			keys[i] = participation.RowKey("source", int64(i))
		}
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			var c participation.Change
			if rapid.Bool().Draw(t, "pin") {
				c.Pin = &participation.Pin{Task: stream.Hash{rapid.Byte().Draw(t, "hash")}, Source: rapid.String().Draw(t, "source"), Order: [32]byte{rapid.Byte().Draw(t, "order"), 31: 7}}
			}
			round := stream.Round(rapid.Uint64Range(1, 1<<40).Draw(t, "round"))
			c.Rounds = map[stream.Round]stream.Hash{round: {1, rapid.Byte().Draw(t, "manifest")}}
			for i, k := range keys {
				if !rapid.Bool().Draw(t, "event") {
					continue
				}
				p := participation.Record{Key: k, State: participation.State(rapid.IntRange(1, 4).Draw(t, "state"))}
				p.Draw.Round, p.Refunds, p.Rounds = round, uint32(i), 1
				if p.State == participation.Charged {
					p.Draw.Counts = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "counts")
					p.Sends = []participation.Send{{Attempt: nth(1), Sent: 2, Acked: 1, Lowest: 5}}
				}
				c.Events = append(c.Events, p)
			}
			must(t, model.Write(c))
			must(t, s.Write(c))
			if rapid.Bool().Draw(t, "reopen") {
				must(t, s.Close())
				s = open(t, path)
			}
			want, err := model.Read(keys)
			must(t, err)
			got, err := s.Read(keys)
			must(t, err)
			for i := range keys {
				if encoded(t, got[i]) != encoded(t, want[i]) || got[i].Key != keys[i] {
					t.Fatalf("event %d is %v, want %v", i, got[i].State, want[i].State)
				}
			}
			if listed(t, s) != listed(t, model) {
				t.Fatal("lists other charged events")
			}
			wantPin, wantFound, _ := model.Pin()
			pin, found, err := s.Pin()
			must(t, err)
			if pin != wantPin || found != wantFound {
				t.Fatalf("pin %v, %t, want %v, %t", pin, found, wantPin, wantFound)
			}
			for _, r := range []stream.Round{round, round + 1} {
				wantHash, wantFound, _ := model.Manifest(r)
				hash, found, err := s.Manifest(r)
				must(t, err)
				if hash != wantHash || found != wantFound {
					t.Fatalf("manifest of round %d: %x, %t", r, hash, found)
				}
			}
		}
	})
}

// A write that returned is in the file whatever happens to the process: a copy of the file taken at that moment has it.
// So does the file of a process that was killed in the middle of the next write, which is bbolt's promise.
func TestDurableWhenWriteReturns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.participation")
	s := open(t, path)
	defer func() { must(t, s.Close()) }()
	for i := range 20 {
		p := participation.Record{Key: participation.RowKey("s", int64(i))}
		must(t, p.Join(participation.Draw{Round: 1, Step: 1, Counts: []byte{1, 2}}))
		p.Sending(nth(1), false)
		must(t, s.Write(participation.Change{Events: []participation.Record{p}}))
		data, err := os.ReadFile(path)
		must(t, err)
		killed := filepath.Join(dir, "killed.participation")
		must(t, os.WriteFile(killed, data, 0o600))
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
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	if _, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a file that is held: %v", err)
	}
	must(t, s.Close())
	must(t, os.Chmod(path, 0o644))
	if _, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("a file that others read: %v", err)
	}
	for name, data := range map[string][]byte{"noise": bytes.Repeat([]byte{7}, 1<<14), "short": {1, 2, 3}} {
		bad := filepath.Join(dir, name)
		must(t, os.WriteFile(bad, data, 0o600))
		if _, err := filestore.Open(bad); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if filestore.Path("a", "b") != filepath.Join("a", "b.participation") {
		t.Error("path differs")
	}
}
