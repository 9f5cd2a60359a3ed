//go:build !windows

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// SyncFolder makes names of files that were made, renamed or removed in a folder durable.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Shared reports whether others than its owner may read or write a file.
func Shared(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// Full reports whether an error means that a disk, or a quota, has no room.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Held reports whether an error means that another process holds a lock, by whichever call it was asked for.
func Held(err error) bool { return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) }
