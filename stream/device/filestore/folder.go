package filestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
)

// A folder is all that this package needs of a file system: one folder of small files. Tests use one that loses
// unsynced writes, and fails where they choose.
type folder interface {
	Names() ([]string, error)         // of its files
	Create(name string) (file, error) // a new one, for reading and writing; an error where there is one
	Open(name string) (file, error)   // one that is there, for reading and writing
	Rename(from, to string) error     // replaces to
	Remove(name string) error
	Sync() error // makes names durable: what was created, renamed, removed
	// one holder at a time; waits as long, and then it is disk.ErrHeld
	Lock(d time.Duration) (unlock func() error, err error)
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// lockName names the file that is locked: it is empty.
const lockName = "lock"

// An osFolder is a folder of the operating system: mode 0700, its files 0600.
type osFolder struct {
	dir  string
	lock string // name of the lock's file
}

// openFolder opens a folder, or makes it and those above it, durably. It refuses one that others may read.
func openFolder(dir string) (osFolder, error) {
	d := osFolder{dir, lockName}
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return d, disk.MakeFolder(dir)
	}
	if err != nil {
		return d, err
	}
	if !info.IsDir() {
		return d,
			errors.New(
				"is a file, and no folder: an earlier format, or of another program; it may know who took part, so keep it " +
					"and end its task with the program that wrote it, or start an empty state folder for other users")
	}
	return d, private(info, 0o700)
}

// private refuses a file that other users of the machine may read, where file modes tell.
func private(info os.FileInfo, want os.FileMode) error {
	if disk.Shared(info) {
		return fmt.Errorf("%s: mode %#o: want %#o", info.Name(), info.Mode().Perm(), want)
	}
	return nil
}

func (d osFolder) Names() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d osFolder) Create(name string) (file, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}
func (d osFolder) Open(name string) (file, error) { return d.open(name, os.O_RDWR) }

func (d osFolder) open(name string, flags int) (file, error) {
	f, err := os.OpenFile(filepath.Join(d.dir, name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = private(info, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (d osFolder) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))
}

func (d osFolder) Remove(name string) error { return os.Remove(filepath.Join(d.dir, name)) }

func (d osFolder) Sync() error { return disk.SyncFolder(d.dir) }

func (d osFolder) Lock(wait time.Duration) (func() error, error) {
	return disk.LockWithin(filepath.Join(d.dir, d.lock), wait)
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// numbered returns the numbers n of the files that are named n.suffix, in 8 hexadecimal digits.
func numbered(names []string, suffix string) (numbers []uint32) {
	for _, name := range names {
		var n uint32
		base, found := strings.CutSuffix(name, suffix)
		if _, err := fmt.Sscanf(base, "%08x", &n); found && err == nil && name == fmt.Sprintf("%08x%s", n, suffix) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
