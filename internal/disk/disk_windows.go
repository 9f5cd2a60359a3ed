package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// SyncFolder does nothing: a folder's handle cannot be flushed.
func SyncFolder(string) error { return nil }

// Shared returns false: the mode of a file on Windows is 0666, or 0444 where it may not be written, and does
// not show who may read it.
func Shared(fs.FileInfo) bool { return false }

// Full reports whether an error means that a disk, or a quota, has no room.
func Full(err error) bool {
	for _, no := range []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL,
		windows.ERROR_DISK_QUOTA_EXCEEDED} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Held reports whether an error means that another process holds a lock, by whichever call it was asked for.
func Held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
