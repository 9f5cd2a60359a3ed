package leaderfile

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

var task = stream.Hash{1}

func attemptOf(round, number uint64) split.Attempt {
	return split.Attempt{Task: task, Round: round, Number: number, Open: split.Hash{byte(round), byte(number)}, Join: split.Hash{9}}
}

func preparedOf(x split.Attempt) split.Prepared {
	return split.Prepared{Finish: split.Finish{X: x, Requests: 2, Users: 3}, Note: split.Note{Cutoff: 4},
		Aggregate: bytes.Repeat([]byte{byte(x.Round*10 + x.Number)}, 32)}
}

var key = ed25519.PublicKey(bytes.Repeat([]byte{7}, ed25519.PublicKeySize))

func opened(t *testing.T, dir string) *Folder {
	t.Helper()
	must(t, Make(dir, key))
	f, err := Open(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// yes checks that a step was made.
func yes(t *testing.T, ok bool, err error) {
	t.Helper()
	if !ok || err != nil {
		t.Fatalf("%t, %v: want the step", ok, err)
	}
}

// TestLife: what is prepared and released is found again by another process; the next round forgets it.
func TestLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "leader")
	f, other := opened(t, dir), opened(t, dir)
	if _, err := f.Prepare(task, preparedOf(attemptOf(1, 1))); err == nil {
		t.Error("a step of a task that was not begun")
	}
	if found, err := f.Find(task); err != nil || found.Begun {
		t.Errorf("%+v, %v: want nothing", found, err)
	}
	must(t, f.Begin(task))
	must(t, other.Begin(task))
	x := attemptOf(1, 2)
	ok, err := f.Prepare(task, preparedOf(x))
	yes(t, ok, err)
	ok, err = other.Prepare(task, preparedOf(x))
	yes(t, ok, err)
	copied := preparedOf(x)
	copied.Aggregate = bytes.Repeat([]byte{99}, 32)
	if ok, err := other.Prepare(task, copied); ok || err != nil {
		t.Errorf("a second share of one attempt is prepared: %t, %v", ok, err)
	}
	found, err := other.Find(task)
	if err != nil || !found.Begun || found.Prepared == nil || !bytes.Equal(found.Prepared.Aggregate, preparedOf(x).Aggregate) ||
		found.Prepared.Finish != preparedOf(x).Finish || found.Signed != nil {
		t.Fatalf("%+v, %v", found, err)
	}
	if ok, err := other.Prepare(task, preparedOf(attemptOf(1, 1))); ok || err != nil {
		t.Errorf("an earlier attempt is prepared: %t, %v", ok, err)
	}
	if ok, err := other.Release(task, attemptOf(1, 1), []byte("share")); ok || err != nil {
		t.Errorf("another attempt is released: %t, %v", ok, err)
	}
	ok, err = other.Release(task, x, []byte("share"))
	yes(t, ok, err)
	ok, err = f.Release(task, x, []byte("share"))
	yes(t, ok, err)
	if ok, err := f.Release(task, x, []byte("other bytes")); ok || err != nil {
		t.Errorf("a second Share of one attempt is released: %t, %v", ok, err)
	}
	if ok, err := f.Drop(task, x); ok || err != nil {
		t.Errorf("a released attempt is dropped: %t, %v", ok, err)
	}
	if found, err := f.Find(task); err != nil || string(found.Signed) != "share" || found.Marks.Released != x || found.Prepared == nil {
		t.Errorf("%+v, %v", found, err)
	}
	y := attemptOf(2, 1)
	ok, err = f.Prepare(task, preparedOf(y))
	yes(t, ok, err)
	if found, err := f.Find(task); err != nil || found.Prepared.X() != y || string(found.Signed) != "share" {
		t.Errorf("%+v, %v", found, err)
	}
	ok, err = f.Release(task, y, []byte("second"))
	yes(t, ok, err)
	left, err := filepath.Glob(filepath.Join(dir, "*.1.2.*"))
	if err != nil || len(left) != 0 {
		t.Errorf("files of the round before are left: %v", left)
	}
}

// TestDroppedKeyIsGone: after Drop no file of the folder holds the key, and the share cannot be read.
func TestDroppedKeyIsGone(t *testing.T) {
	dir := t.TempDir()
	f := opened(t, dir)
	must(t, f.Begin(task))
	x := attemptOf(1, 1)
	ok, err := f.Prepare(task, preparedOf(x))
	yes(t, ok, err)
	key, err := os.ReadFile(f.of(x, keySuffix))
	must(t, err)
	// The file itself is kept open: what is overwritten is overwritten where it lies.
	kept, err := os.Open(f.of(x, keySuffix))
	must(t, err)
	defer kept.Close()
	ok, err = f.Drop(task, x)
	yes(t, ok, err)
	now := make([]byte, keySize)
	if _, err := kept.Read(now); err != nil || !bytes.Equal(now, make([]byte, keySize)) {
		t.Errorf("the key's own bytes are %x, %v", now, err)
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		must(t, err)
		if bytes.Contains(data, key) {
			t.Errorf("%s holds the key", file.Name())
		}
	}
	found, err := f.Find(task)
	if err != nil || found.Prepared != nil || found.Marks.Prepared != (split.Attempt{}) {
		t.Errorf("%+v, %v", found, err)
	}
	if ok, err := f.Drop(task, x); ok || err != nil {
		t.Errorf("dropped twice: %t, %v", ok, err)
	}
}

// TestShareIsSealed: the share is in no file in clear.
func TestShareIsSealed(t *testing.T) {
	dir := t.TempDir()
	f := opened(t, dir)
	must(t, f.Begin(task))
	p := preparedOf(attemptOf(1, 1))
	ok, err := f.Prepare(task, p)
	yes(t, ok, err)
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		must(t, err)
		if bytes.Contains(data, p.Aggregate[:16]) {
			t.Errorf("%s holds the share in clear", file.Name())
		}
		info, err := file.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", file.Name(), info.Mode())
		}
	}
}

// TestFailingDisk: if any sync fails, a step returns an error, and the folder is as it was or as it would be; the same
// step again ends as if nothing had failed.
func TestFailingDisk(t *testing.T) {
	full := &os.PathError{Op: "sync", Path: "leader", Err: syscall.ENOSPC}
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		f := opened(t, dir)
		calls := 0
		broken := func() error {
			if calls++; calls == fail {
				return full
			}
			return nil
		}
		f.fs.File = func(file *os.File) error { return errors.Join(broken(), file.Sync()) }
		f.fs.Folder = func(string) error { return broken() }
		x, y := attemptOf(1, 1), attemptOf(1, 2)
		failed := 0
		try := func(name string, step func() (bool, error)) {
			t.Helper()
			before, err := f.Find(task)
			must(t, err)
			ok, err := step()
			if err != nil {
				failed++
				if !errors.Is(err, syscall.ENOSPC) || ok {
					t.Fatalf("call %d, %s: %t, %v", fail, name, ok, err)
				}
				after, err := f.Find(task)
				if err != nil {
					t.Fatalf("call %d, %s: the folder cannot be read: %v", fail, name, err)
				}
				if after.Marks == before.Marks && before.Prepared != nil && after.Prepared == nil && name != "drop" {
					t.Errorf("call %d, %s: what was prepared is lost", fail, name)
				}
				ok, err = step()
				must(t, err)
			}
			if !ok {
				t.Fatalf("call %d, %s: not made", fail, name)
			}
		}
		try("begin", func() (bool, error) { err := f.Begin(task); return err == nil, err })
		try("prepare", func() (bool, error) { return f.Prepare(task, preparedOf(x)) })
		dropped := false
		try("drop", func() (bool, error) {
			ok, err := f.Drop(task, x)
			if found, _ := f.Find(task); !ok && err == nil && found.Marks.Prepared == (split.Attempt{}) {
				ok = true // the step before was made, though it told an error
			}
			dropped = ok
			return ok, err
		})
		try("prepare again", func() (bool, error) { return f.Prepare(task, preparedOf(y)) })
		try("release", func() (bool, error) { return f.Release(task, y, []byte("share")) })
		if found, err := f.Find(task); err != nil || found.Prepared == nil || string(found.Signed) != "share" || !dropped {
			t.Fatalf("call %d: %+v, %v", fail, found, err)
		}
		if calls < fail {
			if fail < 8 {
				t.Fatalf("only %d calls to fail", calls)
			}
			return
		}
		if failed == 0 {
			// Only a sweep may fail in silence: it is tried again.
			must(t, f.Begin(task))
		}
	}
}

// TestStrayKeys: what a crash left of an attempt that the marks do not name is overwritten and removed.
func TestStrayKeys(t *testing.T) {
	dir := t.TempDir()
	f := opened(t, dir)
	must(t, f.Begin(task))
	x := attemptOf(1, 1)
	ok, err := f.Prepare(task, preparedOf(x))
	yes(t, ok, err)
	stray := attemptOf(1, 2)
	must(t, os.WriteFile(f.of(stray, keySuffix), bytes.Repeat([]byte{7}, keySize), 0o600))
	must(t, os.WriteFile(f.of(stray, preparedSuffix), []byte("x"), 0o600))
	kept, err := os.Open(f.of(stray, keySuffix))
	must(t, err)
	defer kept.Close()
	must(t, f.Begin(task))
	for _, suffix := range suffixes {
		if _, err := os.Stat(f.of(stray, suffix)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of a stray attempt is left: %v", suffix, err)
		}
	}
	now := make([]byte, keySize)
	if _, err := kept.Read(now); err != nil || !bytes.Equal(now, make([]byte, keySize)) {
		t.Errorf("a stray key is %x, %v", now, err)
	}
	if found, err := f.Find(task); err != nil || found.Prepared == nil || found.Prepared.X() != x {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestDamage: files that were cut, changed, or belong to another task are errors, and never read as less than was
// stored.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	f := opened(t, dir)
	must(t, f.Begin(task))
	ok, err := f.Prepare(task, preparedOf(attemptOf(1, 1)))
	yes(t, ok, err)
	path := f.path(task, marksSuffix)
	good, err := os.ReadFile(path)
	must(t, err)
	flipped := bytes.Clone(good)
	flipped[40]++
	other := marks{}.encode(stream.Hash{2})
	for name, data := range map[string][]byte{"empty": {}, "cut": good[:len(good)-1], "flipped": flipped, "another task's": other,
		"doubled": append(bytes.Clone(good), good...)} {
		must(t, os.WriteFile(path, data, 0o600))
		if _, err := f.Find(task); !errors.Is(err, stage.ErrFolder) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if ok, err := f.Prepare(task, preparedOf(attemptOf(2, 1))); ok || err == nil {
			t.Errorf("%s: a step was made", name)
		}
	}
	must(t, os.WriteFile(path, good, 0o600))
	sealed := f.of(attemptOf(1, 1), preparedSuffix)
	data, err := os.ReadFile(sealed)
	must(t, err)
	data[len(data)-1]++
	must(t, os.WriteFile(sealed, data, 0o600))
	if _, err := f.Find(task); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a share that was changed: %v", err)
	}
}
