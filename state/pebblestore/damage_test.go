package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// put replaces a file of the folder, or removes it where b is nil.
func put(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	path := fs.PathJoin(folder, name)
	if b == nil {
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// damages holds the changes that a disk, a copy that was broken off, or an editor makes to a file at an offset.
var damages = map[string]func(b []byte, at int) []byte{
	"flipped bit": func(b []byte, at int) []byte { b[at] ^= 1 << (at % 8); return b },
	"other byte":  func(b []byte, at int) []byte { b[at] = ^b[at]; return b },
	"cut":         func(b []byte, at int) []byte { return b[:at] },
	"zeroed page": func(b []byte, at int) []byte { clear(b[at:min(len(b), at+512)]); return b },
	"zeroed rest": func(b []byte, at int) []byte { clear(b[at:]); return b },
	"lost bytes":  func(b []byte, at int) []byte { return append(b[:at:at], b[min(len(b), at+7):]...) },
	"repeated":    func(b []byte, at int) []byte { return append(bytes.Clone(b[:at]), b[at/2:]...) },
	"longer":      func(b []byte, at int) []byte { return append(b, b[:at+1]...) },
}

// TestDamagedFiles damages every file in every way at many offsets, and takes each file away. The folder then shows the
// whole state, or an error. Where a crash left the last commits in the log alone, damage of the log may also show an
// earlier commit, as the end that a crash leaves does; the learner then finds newer rounds at the broker and refuses.
func TestDamagedFiles(t *testing.T) {
	const commits = 5
	script := storetest.Script{Rounds: 8}
	points := 16
	if longtest.Run(t, "damage at most offsets, more than a minute") {
		points = 600
	}
	for _, test := range []struct {
		name    string
		fs      *vfs.MemFS
		earlier string // suffix of the files whose damage may look like a crash
	}{
		{"closed", filled(t, script, commits, shortTail), "never"},
		{"crashed", crashed(t, script, commits), ".log"},
	} {
		t.Run(test.name, func(t *testing.T) {
			outcomes, tried := map[string]int{}, 0
			look := func(name, damage string, at int, fs vfs.FS) {
				tried++
				n, err := reread(script, fs)
				switch {
				case err != nil && strings.Contains(err.Error(), "not the one that was committed"):
					t.Errorf("%s at %d of %s: %v", damage, at, name, err)
				case errors.Is(err, state.ErrFailed) && strings.Contains(err.Error(), "panic"):
					t.Errorf("%s at %d of %s: %v", damage, at, name, err)
				case err != nil:
					outcomes["error"]++
				case n == commits:
					outcomes["whole"]++
				case n < commits && strings.HasSuffix(name, test.earlier):
					outcomes["earlier"]++
				default:
					t.Errorf("%s at %d of %s: %d commits, want %d or an error", damage, at, name, n, commits)
				}
			}
			for _, name := range files(t, test.fs) {
				fs := test.fs.CrashClone(vfs.CrashCloneCfg{})
				put(t, fs, name, nil)
				look(name, "removed", 0, fs)
				b := contents(t, test.fs, name)
				for damage, apply := range damages {
					for at := 0; at < len(b); at += 1 + len(b)/points {
						fs := test.fs.CrashClone(vfs.CrashCloneCfg{})
						put(t, fs, name, apply(bytes.Clone(b), at))
						look(name, damage, at, fs)
					}
				}
			}
			t.Log(outcomes)
			fmt.Printf("MEASURED pebblestore, %s folder: %d damaged files, %v\n", test.name, tried, outcomes)
			if outcomes["error"] < 50 {
				t.Errorf("only %d errors: the damage does not reach what is read", outcomes["error"])
			}
		})
	}
}

// crashed returns a folder after the given number of commits, as a power cut leaves it.
func crashed(t *testing.T, script storetest.Script, commits int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s, err := Open(folder, Options{fs: fs, Tail: shortTail})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range commits {
		if err := script.Advance(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return fs.CrashClone(vfs.CrashCloneCfg{})
}
