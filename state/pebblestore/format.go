package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/build"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/state"
)

// FolderFormat is the version of a state folder as a whole that this build reads and writes. It is raised together with
// any part of the folder that another build could not read: the versions of checkpoint, ledger entry and algorithm
// state, the keys, or Pebble's own format.
const FolderFormat = 1

// formatName is a file of one line beside Pebble's, for builds and for people. It is written before the database, so
// that a database without it is damaged.
const (
	formatName   = "FORMAT"
	formatPrefix = "panlearn state folder, format "
	formatBy     = ", written by panlearn "
	maxFormat    = 256 // bytes of the file that are read
)

// unfinished is the content of FORMAT until a folder that WriteInto fills file by file is whole. No build reads it as
// a format.
const unfinished = "panlearn state folder, not whole"

var errUnfinished = errors.New(
	"a restore into this folder did not come to its end: empty the folder, and restore again")

// CheckFormat reads the format of a folder and changes nothing: nil if this build reads the folder or nothing is
// there, a *[state.VersionError] if it is of another format.
func CheckFormat(dir string) error { return checkFormat(vfs.Default, dir) }

func checkFormat(fsys vfs.FS, dir string) error {
	f, err := fsys.Open(fsys.PathJoin(dir, formatName))
	if errors.Is(err, fs.ErrNotExist) {
		if exists, err := holdsDatabase(fsys, dir); err != nil || !exists {
			return err
		}
		return fmt.Errorf("file %s is missing: damaged; restore a backup", formatName)
	}
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFormat))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return parseFormat(string(data))
}

// parseFormat reads the first line. Other versions may define more lines.
func parseFormat(line string) error {
	line, _, _ = strings.Cut(line, "\n")
	if line == unfinished {
		return errUnfinished
	}
	rest, ok := strings.CutPrefix(line, formatPrefix)
	number, by, _ := strings.Cut(rest, formatBy)
	v, err := strconv.ParseUint(number, 10, 16)
	switch {
	case !ok || err != nil:
		return fmt.Errorf("file %s: does not say %q and a number: damaged; restore a backup", formatName, formatPrefix)
	case v != FolderFormat:
		return &state.VersionError{What: "state folder", Got: uint16(v), Want: FolderFormat, By: by}
	}
	return nil
}

// writeFormat writes this build's format into the folder, if no format is there yet.
func writeFormat(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, formatName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := fsys.PathJoin(dir, formatName+".new")
	f, err := fsys.Create(partial, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = disk.Put(f, []byte(formatPrefix+strconv.Itoa(FolderFormat)+formatBy+build.This().Version+"\n"))
	if err == nil {
		err = fsys.Rename(partial, fsys.PathJoin(dir, formatName))
	}
	if err != nil {
		return err
	}
	return syncFolder(fsys, dir)
}
