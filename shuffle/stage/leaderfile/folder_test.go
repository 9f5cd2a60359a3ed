package leaderfile

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// filesOf returns the content of all files of a folder but locks.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), lockSuffix) {
			out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
		}
	}
	return out
}

// folderOf writes a folder of these files.
func folderOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

// worked returns the files of a leader's folder: as it was made, with a task begun, and with a round released.
func worked(t *testing.T) (made, begun, released map[string][]byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "leader")
	key, drawn, err := Create(dir)
	must(t, err)
	if !drawn {
		t.Error("a new folder has a key already")
	}
	made = filesOf(t, dir)
	f, err := Open(dir, key)
	must(t, err)
	must(t, f.Begin(task))
	begun = filesOf(t, dir)
	ok, err := f.Prepare(task, preparedOf(attemptOf(1, 1)))
	yes(t, ok, err)
	ok, err = f.Release(task, attemptOf(1, 1), []byte("share"))
	yes(t, ok, err)
	return made, begun, filesOf(t, dir)
}

// TestCreate makes key and list together, once, and finds them again.
func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leader")
	key, made, err := Create(dir)
	if err != nil || !made {
		t.Fatalf("made %t, %v", made, err)
	}
	again, made, err := Create(dir)
	if err != nil || made || !again.Equal(key) {
		t.Errorf("%x, made %t, %v: want %x", again, made, err, key)
	}
	identity, err := seal.LoadIdentity(filepath.Join(dir, KeyFile))
	if err != nil || !identity.Public().Equal(key) {
		t.Errorf("the key file: %v, %v", identity, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestCrashOfCreate: where Create died, the next one makes the folder, under the key that was listed, if one was. A key
// that is left beside another's list, or beside the list of a folder that has worked, is refused.
func TestCrashOfCreate(t *testing.T) {
	begun := KeyFile + ".begun"
	for n := range 4 { // syncs of the list and its folder, each failing once; then none does
		dir := filepath.Join(t.TempDir(), "leader")
		f, err := at(dir)
		must(t, err)
		calls := 0
		fails := func() error {
			if calls++; calls == n {
				return errors.New("killed")
			}
			return nil
		}
		f.fs.File = func(file *os.File) error { return errors.Join(fails(), file.Sync()) }
		f.fs.Folder = func(string) error { return fails() }
		_, made, err := f.create()
		if killed := err != nil; killed != (n == 1 || n == 2) {
			t.Fatalf("sync %d: %v", n, err)
		}
		listed := filesOf(t, dir)[rosterFile]
		key, again, err := Create(dir)
		if err != nil || again == made {
			t.Fatalf("after sync %d: made %t, %v", n, again, err)
		}
		if now := filesOf(t, dir); listed != nil && string(now[rosterFile]) != string(listed) || now[begun] != nil {
			t.Errorf("after sync %d the list is another, or %s is left", n, begun)
		}
		must(t, step(dir))
		if _, err := Open(dir, key); err != nil {
			t.Error(err)
		}
	}
	for name, change := range map[string]func(now, made, other map[string][]byte){
		"another key": func(now, made, other map[string][]byte) {
			clear(now)
			now[rosterFile], now[begun] = made[rosterFile], other[KeyFile]
		},
		"a folder that has worked": func(now, _, _ map[string][]byte) { now[begun] = now[KeyFile]; delete(now, KeyFile) },
		"marks, without the list": func(now, _, _ map[string][]byte) {
			now[begun] = now[KeyFile]
			delete(now, KeyFile)
			delete(now, rosterFile)
		},
	} {
		made, _, now := worked(t)
		_, _, other := worked(t)
		change(now, made, other)
		if err := step(folderOf(t, now)); !errors.Is(err, stage.ErrFolder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPartsOfAFolder: a key without the folder that it worked in, and a folder whose parts are of different times or of
// another folder, are refused, whatever the broker says, and stay so. Nothing is asked of a broker here: it may have
// forgotten everything.
func TestPartsOfAFolder(t *testing.T) {
	markFile := (&Folder{}).path(task, marksSuffix)
	for name, change := range map[string]func(now, made, begun, other map[string][]byte){
		"the key alone": func(now, _, _, _ map[string][]byte) {
			maps.DeleteFunc(now, func(name string, _ []byte) bool { return name != KeyFile })
		},
		"key and list without marks": func(now, _, _, _ map[string][]byte) { delete(now, markFile) },
		"the list is lost":           func(now, _, _, _ map[string][]byte) { delete(now, rosterFile) },
		"the list is older":          func(now, made, _, _ map[string][]byte) { now[rosterFile] = made[rosterFile] },
		"another folder's key":       func(now, _, _, other map[string][]byte) { now[KeyFile] = other[KeyFile] },
		"another folder's list":      func(now, _, _, other map[string][]byte) { now[rosterFile] = other[rosterFile] },
		"another folder's marks":     func(now, _, _, other map[string][]byte) { now[markFile] = other[markFile] },
		"the key beside another folder": func(now, _, _, other map[string][]byte) {
			key := now[KeyFile]
			maps.Copy(now, other)
			now[KeyFile] = key
		},
		"a bit of the list":  func(now, _, _, _ map[string][]byte) { now[rosterFile][40] ^= 1 },
		"a bit of the marks": func(now, _, _, _ map[string][]byte) { now[markFile][3] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			made, begun, now := worked(t)
			_, _, other := worked(t)
			change(now, made, begun, other)
			dir := folderOf(t, now)
			for range 2 {
				if err := step(dir); !errors.Is(err, stage.ErrFolder) || !strings.Contains(err.Error(), "ingest keygen leader") {
					t.Errorf("not refused with a way out: %v", err)
				}
			}
		})
	}
}

// step does what the command and the stage do before a second release: make or find the folder, load its key, ask what it
// knows, begin, prepare.
func step(dir string) error {
	if _, _, err := Create(dir); err != nil {
		return err
	}
	identity, err := seal.LoadIdentity(filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	f, err := Open(dir, identity.Public())
	if err != nil {
		return err
	}
	if _, err := f.Find(task); err != nil {
		if made := f.refuses(); made != nil {
			return made
		}
		return err
	}
	if err := f.Begin(task); err != nil {
		return err
	}
	_, err = f.Prepare(task, preparedOf(attemptOf(1, 2)))
	return err
}

// refuses checks that no step is made where Find fails.
func (f *Folder) refuses() error {
	if err := f.Begin(task); !errors.Is(err, stage.ErrFolder) {
		return errors.New("begun")
	}
	if ok, err := f.Prepare(task, preparedOf(attemptOf(1, 2))); ok || !errors.Is(err, stage.ErrFolder) {
		return errors.New("prepared")
	}
	return nil
}

// TestCrashOfBegin: marks that a crash left before they were listed are taken, and what follows goes on with them.
func TestCrashOfBegin(t *testing.T) {
	made, begun, _ := worked(t)
	begun[rosterFile] = made[rosterFile]
	if err := step(folderOf(t, begun)); err != nil {
		t.Error(err)
	}
}

// TestTwoTasks begin at a time, from processes of their own: both are listed.
func TestTwoTasks(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	var group sync.WaitGroup
	for i := range byte(8) {
		group.Go(func() {
			f, err := Open(dir, key)
			if err == nil {
				err = f.Begin(stream.Hash{i})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range byte(8) {
		if found, err := opened(t, dir).Find(stream.Hash{i}); err != nil || !found.Begun {
			t.Errorf("task %d: %+v, %v", i, found, err)
		}
	}
}
