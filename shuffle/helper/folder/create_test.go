package folder

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/internal/disk"
)

// TestCreateRefusesParts: no second identity is made where a first one's files are.
func TestCreateRefusesParts(t *testing.T) {
	for _, keep := range []string{keyFile, markName(task)} {
		dir := created(t)
		joined(t, opened(t, dir))
		all := copyOf(t, dir)
		restore(t, dir, map[string][]byte{keep: all[keep]})
		if _, _, err := Create(dir); err == nil || !strings.Contains(err.Error(), "new identity") {
			t.Errorf("with %s: %v", keep, err)
		}
	}
}

// TestCrashOfCreate: where Create died before any of its operations, the next one makes the folder, under the key that
// was listed, if one was. Without its list a key under its own name stays refused, and so do a key beside another key's
// list, a copy of a key, and a list alone.
func TestCrashOfCreate(t *testing.T) {
	for n := 0; ; n++ {
		dir := filepath.Join(t.TempDir(), "helper")
		if err := disk.MakeFolder(dir); err != nil {
			t.Fatal(err)
		}
		count := 0
		listed, _, err := files{dir: dir, before: func(string) error {
			if count++; count > n {
				return errKilled
			}
			return nil
		}}.create()
		if err == nil {
			if n < 5 {
				t.Errorf("%d operations alone", n)
			}
			break
		}
		if r, err := (files{dir: dir}).readRoster(); err == nil {
			listed = r.Key
		}
		key, made, err := Create(dir)
		if err != nil || !made || listed != nil && !key.Equal(listed) {
			t.Fatalf("killed before operation %d: %x, made %t, %v: want %x", n, []byte(key), made, err, []byte(listed))
		}
		f := opened(t, dir)
		if joined(t, f); !f.Identity().Public().Equal(key) {
			t.Error("another key")
		}
		_ = f.Close()
	}
	begun := keyFile + ".begun"
	for name, change := range map[string]func(dir string, all map[string][]byte){
		"a list alone":            func(_ string, all map[string][]byte) { delete(all, keyFile) },
		"a copy of what was left": func(_ string, all map[string][]byte) { all[begun] = all[keyFile]; delete(all, keyFile) },
	} {
		dir := created(t)
		all := copyOf(t, dir)
		change(dir, all)
		restore(t, dir, all)
		if _, _, err := Create(dir); !errors.Is(err, ErrOlder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, other := created(t), created(t)
	if err := os.Rename(filepath.Join(other, keyFile), filepath.Join(dir, begun)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Create(dir); !errors.Is(err, ErrOlder) {
		t.Errorf("another folder's key: %v", err)
	}
}

// TestCreateAtOnce: of several who make one folder at a time all get its key.
func TestCreateAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "helper")
	var keys [8]ed25519.PublicKey
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() {
			var err error
			if keys[i], _, err = Create(dir); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, key := range keys {
		if !key.Equal(keys[0]) {
			t.Errorf("%x and %x", []byte(key), []byte(keys[0]))
		}
	}
}
