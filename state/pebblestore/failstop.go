package pebblestore

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStopFS breaks the store at errors at which Pebble panics: when a folder cannot be synced, and when the log cannot
// be written while it is replaced by a new one. Those panics occur on goroutines where they cannot be recovered, or
// with a mutex in a state that crashes the runtime. Here the failure stops the work first, and Pebble never sees the
// error. It also orders the names of new files on disk, see Create.
type failStopFS struct {
	vfs.FS
	failure *failure
}

// stop does not return if err is not nil.
func (fs failStopFS) stop(err error, what, name string) {
	if err != nil {
		fs.failure.Fatalf("%s %q: %w", what, name, err)
	}
}

// Unwrap implements vfs.FS.
func (fs failStopFS) Unwrap() vfs.FS { return fs.FS }

// OpenDir implements vfs.FS.
func (fs failStopFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return failStopFile{f, name, fs}, nil
}

// Create implements vfs.FS. Pebble writes a manifest, then a marker that names it, and syncs the folder once; a
// file system that keeps new names in any order could keep the marker alone, and the store would not open. So the
// folder is synced before a marker appears.
func (fs failStopFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		if err := syncFolder(fs, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.Create(name, category)
	return fs.file(f, err, name)
}

// ReuseForWrite implements vfs.FS.
func (fs failStopFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.file(f, err, newname)
}

func (fs failStopFS) file(f vfs.File, err error, name string) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	fs.stop(err, "create log", name)
	return failStopFile{f, name, fs}, nil
}

// failStopFile is a folder or a log that is written to. Preallocation may fail: Pebble does without it.
type failStopFile struct {
	vfs.File
	name string
	fs   failStopFS
}

// Write implements vfs.File.
func (f failStopFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.fs.stop(err, "write", f.name)
	return n, nil
}

// Stat implements vfs.File.
func (f failStopFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	f.fs.stop(err, "stat", f.name)
	return info, nil
}

// Sync implements vfs.File.
func (f failStopFile) Sync() error {
	f.fs.stop(f.File.Sync(), "sync", f.name)
	return nil
}

// SyncData implements vfs.File.
func (f failStopFile) SyncData() error {
	f.fs.stop(f.File.SyncData(), "sync", f.name)
	return nil
}

// SyncTo implements vfs.File.
func (f failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	f.fs.stop(err, "sync", f.name)
	return full, nil
}
