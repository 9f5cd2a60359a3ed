package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/state"
)

// FolderFormat is the version of a state folder as a whole, which this build writes; it reads this one and all before it. It is raised
// together with anything in the folder that an older build would not read: the versions of checkpoint, ledger entry and
// optimizer state, the keys, or Pebble's own format.
//
//	format  checkpoint  ledger entry  optimizer state  Pebble
//	1       1           1             2                FormatTableFormatV6
//
// What is older is read where it lies, by the reader of its version, and written anew with the next commit; ledger entries are
// hashed as they were written and stay so for ever.
const FolderFormat = 1

// formatName is a file of one line beside Pebble's, for builds and for people. A folder without it has format 1: the first
// builds wrote none.
const (
	formatName   = "FORMAT"
	formatPrefix = "panlearn state folder, format "
	formatBy     = ", written by panlearn "
	maxFormat    = 256 // bytes of the file that are read
)

// errUnfinished is of a folder that WriteInto was filling when it died.
var errUnfinished = errors.New("a restore into this folder did not come to its end: empty the folder, and restore again")

// A FormatRecord is what FORMAT says.
type FormatRecord struct {
	Version uint16
	Build   string // that first wrote this format here; empty where there is no file
}

// ReadFormat reads the format of a folder and changes nothing. A version that this build does not read is no error here.
func ReadFormat(dir string) (FormatRecord, error) { return readFormat(vfs.Default, dir) }

func readFormat(fsys vfs.FS, dir string) (FormatRecord, error) {
	f, err := fsys.Open(fsys.PathJoin(dir, formatName))
	if errors.Is(err, fs.ErrNotExist) {
		return FormatRecord{Version: 1}, nil
	}
	if err != nil {
		return FormatRecord{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFormat))
	if err = errors.Join(err, f.Close()); err != nil {
		return FormatRecord{}, err
	}
	return parseFormat(string(data))
}

// parseFormat reads the first line of any version; what follows in a later one is its own.
func parseFormat(line string) (FormatRecord, error) {
	line, _, _ = strings.Cut(line, "\n")
	if line == unfinished {
		return FormatRecord{}, errUnfinished
	}
	rest, ok := strings.CutPrefix(line, formatPrefix)
	number, by, _ := strings.Cut(rest, formatBy)
	v, err := strconv.ParseUint(number, 10, 16)
	if !ok || err != nil || v == 0 {
		return FormatRecord{}, fmt.Errorf("file %s: does not say %q and a number: damaged; restore a backup", formatName, formatPrefix)
	}
	return FormatRecord{Version: uint16(v), Build: by}, nil
}

// readable refuses a folder of a format that this build does not know.
func (r FormatRecord) readable() error {
	if r.Version > FolderFormat {
		return &state.VersionError{What: "state folder", Got: r.Version, Want: FolderFormat, By: r.Build}
	}
	return nil
}

// raiseFormat has the folder say this build's format, before anything of that format is written: should a crash come between,
// older builds refuse a folder that they could have read, and none reads what it does not know.
func raiseFormat(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, formatName)); err == nil {
		have, err := readFormat(fsys, dir)
		if err != nil || have.Version >= FolderFormat {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := fsys.PathJoin(dir, formatName+".new")
	f, err := fsys.Create(partial, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, formatPrefix+strconv.Itoa(FolderFormat)+formatBy+build()+"\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(partial, fsys.PathJoin(dir, formatName))
	}
	if err != nil {
		return err
	}
	return syncFolder(fsys, dir)
}

// build is the version of the module, as `learner version` prints it.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
