// Package disk is what durable and private files need of the operating system, where systems differ: an exclusive lock, the name
// of a new file on the disk, whose a file is, and whether a disk is full.
//
// Linux and macOS do all of it. Windows has no permission bits, and what Go shows in their place says only whether a file may be
// written: there nothing is found open to others, and the folder's access list is the operator's to set. It has no sync of a folder
// either, since NTFS keeps names in its own journal. Tests run on Linux; for the other two this package is built.
package disk

import (
	"errors"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// Lock waits for the exclusive lock of a file, created (mode 0600) if missing, against other processes and other callers in this one.
// The file is never removed: who then made it anew would not exclude who had it open. A process that dies gives its locks back.
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
