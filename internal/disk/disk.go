// Package disk provides what durable and private files need of the operating system, where systems differ: exclusive
// locks, the name of a new file on the disk, the owner of a file, and whether a disk is full.
//
// Linux and macOS do all of it. Windows has no permission bits, and the mode that Go returns instead shows only whether
// a file may be written: there no file is found open to others, and the operator has to set the folder's access list.
// It has no sync of a folder either, since NTFS keeps names in its own journal. Tests run on Linux; for the other two
// this package is built.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Lock waits for the exclusive lock of a file, created (mode 0600) if missing, against other processes and
// other callers in this one. The file is never removed: a process that then created it again would not
// exclude one that had it open. A process that dies releases its locks.
func Lock(path string) (unlock func() error, err error) {
	l := flock.New(path)
	for {
		err = l.Lock()
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return l.Unlock, nil
}

// ErrHeld is LockWithin's, of a lock that another holds.
var ErrHeld = errors.New("another process holds it")

// LockWithin is Lock with a limit on the time it waits: then it returns ErrHeld.
func LockWithin(path string, wait time.Duration) (unlock func() error, err error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	for pause, until := 100*time.Microsecond, time.Now().Add(wait); ; pause = min(2*pause, 10*time.Millisecond) {
		held, err := l.TryLock()
		switch {
		case held && err == nil:
			return l.Unlock, nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		case time.Now().After(until):
			return nil, errors.Join(fmt.Errorf("%w for %v", ErrHeld, wait), l.Close())
		}
		time.Sleep(pause)
	}
}

// MakeFolder makes a folder (mode 0700) with its missing parents, and syncs each folder that got a new entry.
func MakeFolder(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var changed []string
	for p := dir; p != filepath.Dir(p); p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		changed = append(changed, filepath.Dir(p))
	}
	err = os.MkdirAll(dir, 0o700)
	for _, p := range changed {
		err = errors.Join(err, SyncFolder(p))
	}
	return err
}
