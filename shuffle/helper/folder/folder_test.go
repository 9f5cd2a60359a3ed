package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/roster"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

var (
	task    = stream.Hash{1}
	process = split.Instance{7}
)

// created returns a folder with a new identity.
func created(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "helper")
	if _, made, err := Create(dir); err != nil || !made {
		t.Fatalf("made %t, %v", made, err)
	}
	return dir
}

func opened(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// attempt returns an attempt of a round, which differs from others in a byte.
func attempt(round uint64, which byte) split.Attempt {
	return split.Attempt{Task: task, Round: round, Number: 1, Open: split.Hash{which}, Join: split.Hash{2}}
}

func share(round uint64, which byte) []byte { return []byte{byte(round), which, 'x'} }

func joined(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.Join(task, process); err != nil {
		t.Fatal(err)
	}
}

// release releases an attempt and checks the mark afterwards.
func release(t *testing.T, f *Folder, round uint64, which byte, standsRound uint64, stands byte) {
	t.Helper()
	m, err := f.Release(attempt(round, which), share(round, which))
	if err != nil {
		t.Fatal(err)
	}
	wantMark(t, m, standsRound, stands)
}

func wantMark(t *testing.T, m split.HelperMark, round uint64, which byte) {
	t.Helper()
	if m.X != attempt(round, which) || !bytes.Equal(m.Signed, share(round, which)) {
		t.Errorf("the mark is of round %d, attempt %x, %q: want round %d, %x", m.X.Round, m.X.Open[:1], m.Signed, round, which)
	}
}

// TestMarks: of a round one attempt alone is ever marked, no mark falls, and all stay over processes.
func TestMarks(t *testing.T) {
	dir := created(t)
	f := opened(t, dir)
	if m, joined, err := f.Mark(task); err != nil || joined || m.Signed != nil {
		t.Errorf("a new folder: %v, joined %t, %v", m, joined, err)
	}
	if _, err := f.Release(attempt(1, 1), share(1, 1)); !errors.Is(err, ErrOlder) {
		t.Errorf("a release without a Join: %v", err)
	}
	joined(t, f)
	joined(t, f)
	release(t, f, 3, 1, 3, 1)
	release(t, f, 3, 2, 3, 1)
	release(t, f, 2, 1, 3, 1)
	release(t, f, 3, 1, 3, 1)
	release(t, f, 5, 1, 5, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = opened(t, dir)
	m, is, err := f.Mark(task)
	if err != nil || !is {
		t.Fatalf("joined %t, %v", is, err)
	}
	wantMark(t, m, 5, 1)
	release(t, f, 5, 2, 5, 1)
	if m, is, err := f.Mark(stream.Hash{9}); err != nil || is || m.Signed != nil {
		t.Errorf("another task: %v, joined %t, %v", m, is, err)
	}
}

// TestOneProcess has the folder at a time, and the folder is its owner's alone.
func TestOneProcess(t *testing.T) {
	dir := created(t)
	f := opened(t, dir)
	if _, err := Open(dir, 0); !errors.Is(err, disk.ErrHeld) || !strings.Contains(err.Error(), "another helper") {
		t.Errorf("a second process: %v", err)
	}
	if key, made, err := Create(dir); err != nil || made || !key.Equal(f.Identity().Public()) {
		t.Errorf("the key of a folder that is held: %x, made %t, %v", key, made, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if info, _ := d.Info(); err == nil && disk.Shared(info) {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := created(t)
	for name, test := range map[string]struct {
		dir  string
		want string
	}{
		"no folder":    {filepath.Join(dir, "none"), "ingest keygen helper"},
		"an empty one": {t.TempDir(), "chmod 700"},
		"a file":       {filepath.Join(dir, rosterFile), "folder of its owner"},
	} {
		if _, err := Open(test.dir, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	empty := t.TempDir()
	if err := os.Chmod(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(empty, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, _, err := Create(""); err == nil {
		t.Error("a folder without a name")
	}
}

// TestCopiedFolder: a folder that was copied, file by file, is refused, before anything is sent, and the one that it was
// copied from goes on; so is one that was moved away and copied back. One that was moved on its disk, or whose files were
// put back where they lie, has its place: it is for others to refuse.
func TestCopiedFolder(t *testing.T) {
	dir := created(t)
	f := opened(t, dir)
	joined(t, f)
	release(t, f, 1, 1, 1, 1)
	_ = f.Close()
	copyTo := func(from, to string) {
		if err := disk.MakeFolder(to); err != nil {
			t.Fatal(err)
		}
		restore(t, to, copyOf(t, from))
	}
	copied := filepath.Join(t.TempDir(), "copy")
	copyTo(dir, copied)
	for range 2 {
		if _, err := Open(copied, 0); !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), "is a copy") {
			t.Errorf("a copy: %v", err)
		}
		_ = opened(t, dir).Close()
	}
	moved := dir + "-moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	_ = opened(t, moved).Close()
	copyTo(moved, dir)
	if _, err := Open(dir, 0); !errors.Is(err, ErrOlder) {
		t.Errorf("copied back: %v", err)
	}
	restore(t, moved, copyOf(t, moved))
	_ = opened(t, moved).Close()
}

// copyOf returns the content of all files.
func copyOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// restore puts files back as they were, and removes those that were not.
func restore(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name := range copyOf(t, dir) {
		if _, was := files[name]; !was {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartsOfDifferentTimes: whatever is lost, put back or taken from another folder is refused where the rest shows
// it, and stays refused.
func TestPartsOfDifferentTimes(t *testing.T) {
	markFile := markName(task)
	for name, change := range map[string]func(t *testing.T, dir string, empty, early, other map[string][]byte, now map[string][]byte){
		"the mark is lost": func(_ *testing.T, _ string, _, _, _, now map[string][]byte) { delete(now, markFile) },
		"the list is older": func(_ *testing.T, _ string, empty, _, _, now map[string][]byte) {
			now[rosterFile] = empty[rosterFile]
		},
		"the mark is of another folder": func(_ *testing.T, _ string, _, _, other, now map[string][]byte) {
			now[markFile] = other[markFile]
		},
		"the list is of another folder": func(_ *testing.T, _ string, _, _, other, now map[string][]byte) {
			now[rosterFile] = other[rosterFile]
		},
		"the key is of another folder": func(_ *testing.T, _ string, _, _, other, now map[string][]byte) {
			now[keyFile] = other[keyFile]
		},
		"a bit of the mark": func(_ *testing.T, _ string, _, _, _, now map[string][]byte) { now[markFile][70] ^= 1 },
		"a bit of the list": func(_ *testing.T, _ string, _, _, _, now map[string][]byte) { now[rosterFile][40] ^= 1 },
		"half of the mark": func(_ *testing.T, _ string, _, _, _, now map[string][]byte) {
			now[markFile] = now[markFile][:len(now[markFile])/2]
		},
		"a mark that is empty": func(_ *testing.T, _ string, _, _, _, now map[string][]byte) { now[markFile] = nil },
		"the mark of another time it was made": func(t *testing.T, dir string, empty, _, _, now map[string][]byte) {
			restore(t, dir, empty)
			f := opened(t, dir)
			joined(t, f)
			now[markFile] = copyOf(t, dir)[markFile]
			_ = f.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := created(t)
			empty := copyOf(t, dir)
			f := opened(t, dir)
			joined(t, f)
			early := copyOf(t, dir)
			release(t, f, 1, 1, 1, 1)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			elsewhere := created(t)
			g := opened(t, elsewhere)
			joined(t, g)
			release(t, g, 1, 1, 1, 1)
			now := copyOf(t, dir)
			change(t, dir, empty, early, copyOf(t, elsewhere), now)
			restore(t, dir, now)
			for range 2 {
				f, err := Open(dir, 0)
				if err == nil {
					_, _, markErr := f.Mark(task)
					joinErr := f.Join(task, process)
					_, err = f.Release(attempt(2, 1), share(2, 1))
					for _, e := range []error{markErr, joinErr} {
						if !errors.Is(e, ErrOlder) {
							t.Errorf("not refused: %v", e)
						}
					}
					_ = f.Close()
				}
				if !errors.Is(err, ErrOlder) {
					t.Errorf("not refused: %v", err)
				}
			}
		})
	}
}

// errKilled represents the end of the process.
var errKilled = errors.New("killed")

// script runs a helper's life after the round told: it joins, and releases rounds up to 2. told is the highest round
// whose release was confirmed.
func script(f *Folder, told uint64) (uint64, error) {
	if err := f.Join(task, process); err != nil {
		return told, err
	}
	for round := told + 1; round <= 2; round++ {
		m, err := f.Release(attempt(round, 1), share(round, 1))
		if err != nil {
			return told, err
		}
		if m.X != attempt(round, 1) {
			return told, fmt.Errorf("round %d: another mark stands", round)
		}
		told = round
	}
	return told, nil
}

// TestKilledBetweenAnyTwoOperations: confirmed writes are there after it, also if the disk did not keep an unsynced
// name; the next process goes on, and releases the same attempts or none.
func TestKilledBetweenAnyTwoOperations(t *testing.T) {
	kills := 0
	for n := 0; ; n++ {
		for _, forgets := range []bool{false, true} {
			dir := created(t)
			f := opened(t, dir)
			count, dead := 0, false
			var durable map[string][]byte
			f.before = func(operation string) error {
				if operation == "create" && !dead {
					durable = copyOf(t, dir)
				}
				if dead = dead || count == n; dead {
					return errKilled
				}
				count++
				return nil
			}
			told, err := script(f, 0)
			_ = f.Close()
			if err == nil {
				if kills < 15 {
					t.Fatalf("%d operations alone", kills)
				}
				return
			}
			kills++
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if forgets && durable != nil {
				restore(t, dir, durable)
			}
			g := opened(t, dir)
			m, _, err := g.Mark(task)
			if err != nil || m.X.Round < told {
				t.Fatalf("killed before operation %d (%t): the mark is of round %d, %d was told: %v", n, forgets, m.X.Round,
					told, err)
			}
			// Another attempt of the round that may have been released: the mark decides, once.
			if m.X.Round > 0 {
				release(t, g, m.X.Round, 7, m.X.Round, 1)
			}
			if _, err := g.Release(attempt(2, 1), share(2, 1)); err != nil && m.X.Round > 0 {
				t.Error(err)
			}
			for name := range copyOf(t, dir) {
				if strings.HasSuffix(name, temporary) {
					t.Errorf("killed before operation %d: %s is left", n, name)
				}
			}
			_ = g.Close()
		}
	}
}

// TestFullDisk: each operation fails once, and nothing is returned; the next call returns the same release.
func TestFullDisk(t *testing.T) {
	for n := 0; ; n++ {
		f := opened(t, created(t))
		count := 0
		f.before = func(string) error {
			count++
			if count-1 == n {
				return syscall.ENOSPC
			}
			return nil
		}
		failed, told := 0, uint64(0)
		for {
			var err error
			told, err = script(f, told)
			if err == nil {
				break
			}
			if failed++; failed > 1 || !disk.Full(err) {
				t.Fatalf("operation %d: %v", n, err)
			}
		}
		m, joined, err := f.Mark(task)
		if err != nil || !joined {
			t.Fatalf("operation %d: joined %t, %v", n, joined, err)
		}
		wantMark(t, m, 2, 1)
		if failed == 0 {
			return
		}
		_ = f.Close()
	}
}

// TestGoroutines: of many that release attempts of one round at once, all get the one that is stored.
func TestGoroutines(t *testing.T) {
	f := opened(t, created(t))
	joined(t, f)
	stand := make([]split.HelperMark, 8)
	var group sync.WaitGroup
	for i := range stand {
		group.Go(func() {
			var err error
			if stand[i], err = f.Release(attempt(1, byte(i)), share(1, byte(i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, m := range stand {
		if m.X != stand[0].X {
			t.Errorf("two attempts of one round are released: %x, %x", m.X.Open[:1], stand[0].X.Open[:1])
		}
	}
}

func FuzzDecode(f *testing.F) {
	m := mark{folder: roster.ID{1}, own: roster.ID{2}, task: task, HelperMark: split.HelperMark{X: attempt(1, 1), Signed: share(1, 1)}}
	f.Add(m.encode())
	f.Add(mark{folder: roster.ID{1}, own: roster.ID{2}, task: task}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, ok := decodeMark(data); ok && !bytes.Equal(m.encode(), data) {
			t.Error("two encodings of one mark")
		}
	})
}
