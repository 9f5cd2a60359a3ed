package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// SyncFolder does nothing: a folder's handle cannot be flushed.
func SyncFolder(string) error { return nil }

// Shared says false: the mode of a file on Windows is 0666, or 0444 where it may not be written, whoever may read it.
func Shared(fs.FileInfo) bool { return false }

// Full says whether an error is of a disk, or a quota, that has no room.
func Full(err error) bool {
	for _, no := range []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Held says whether an error is of a lock that another process holds, however it was asked for.
func Held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
