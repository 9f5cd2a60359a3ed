//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLockExcludes callers that each open the file themselves, and lets the next one in when it is given back.
func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	inside := 0 // guarded by the lock alone
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				unlock, err := Lock(path)
				if err != nil {
					t.Error(err)
					return
				}
				if inside++; inside != 1 {
					t.Errorf("%d hold the lock", inside)
				}
				inside--
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if info, err := os.Stat(path); err != nil || Shared(info) {
		t.Errorf("the lock's file: %v, %v, want one of its owner alone", info, err)
	}
	if _, err := Lock(filepath.Join(path, "below")); err == nil {
		t.Error("a lock below a file is held")
	}
}

// TestLockWithin gives up where another holds the lock, and has it when that one lets go.
func TestLockWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockWithin(path, time.Millisecond); !errors.Is(err, ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	done := make(chan error)
	go func() {
		unlock, err := LockWithin(path, time.Minute)
		if err == nil {
			err = unlock()
		}
		done <- err
	}()
	if err := errors.Join(unlock(), <-done); err != nil {
		t.Error(err)
	}
	if _, err := LockWithin(filepath.Join(path, "below"), time.Minute); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a lock below a file: %v", err)
	}
}

// TestShared by the bits of group and others.
func TestShared(t *testing.T) {
	for mode, want := range map[fs.FileMode]bool{0o600: false, 0o700: false, 0o640: true, 0o604: true, 0o620: true} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || Shared(info) != want {
			t.Errorf("mode %v: shared %v, %v, want %v", mode, !want, err, want)
		}
	}
}

// TestFull: a full disk, however deep in an error, is distinguished from a broken one.
func TestFull(t *testing.T) {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if !Full(fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: "x", Err: no})) {
			t.Errorf("%v is not seen as a full disk", no)
		}
	}
	if Full(syscall.EIO) || Full(nil) {
		t.Error("a disk is full of something else")
	}
}
