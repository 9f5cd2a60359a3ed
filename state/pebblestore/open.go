package pebblestore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/state"
)

// formatVersion is Pebble's on-disk format, raised on purpose only: an older Pebble refuses a newer folder. This
// one has synced offsets in the log, which tell a damaged log from one that was cut by a crash, and checksums in
// table footers.
const formatVersion = pebble.FormatTableFormatV6

const (
	memTableBytes = 256 << 10 // a checkpoint above half of it takes Pebble's path for large batches
	cacheBytes    = 1 << 20   // the store is read once, at the start
)

// Options configures the opening of a folder. The zero value is for use in production.
type Options struct {
	// fs is the file system; nil means the operating system's.
	fs vfs.FS
	// Logger takes Pebble's messages: its information at debug level, errors at error level. nil discards them;
	// failures are reported by the store's methods all the same.
	Logger *slog.Logger
	// Tail is the number of ledger entries that Pebble holds before older ones are archived; 0 means 1024. Opening a
	// folder reads them.
	Tail uint64
	// ReadOnly opens an existing folder without changing its state; Commit returns state.ErrReadOnly. Pebble
	// still takes the lock, so the folder must be writable and not open elsewhere.
	ReadOnly bool
}

func (o Options) pebble(fs vfs.FS, lock *pebble.Lock, f *failure) *pebble.Options {
	opts := &pebble.Options{
		FS:                 fs,
		Lock:               lock,
		ReadOnly:           o.ReadOnly,
		FormatMajorVersion: formatVersion,
		MemTableSize:       memTableBytes,
		CacheSize:          cacheBytes,
		Logger:             f,
		// DataCorruption is left to its default, which calls Fatalf of the logger.
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { f.Fatalf("background work: %v", err) },
		},
	}
	// Without the ticker that looks at each open database ten times a second. It grants a compaction that waits for
	// another one, which the end of that other one does too; where none runs, none waits.
	opts.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return opts
}

// Open opens the state folder dir, creating it (mode 0700) unless opts.ReadOnly is set. It returns an error that wraps
// [state.ErrLocked] if the folder is open anywhere, and, read-only, one that wraps [state.ErrEmpty] if there is no
// state in it. For a folder of another format it returns a *[state.VersionError], and changes nothing.
func Open(dir string, opts Options) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, fmt.Errorf("open state folder %q: %w", dir, err) }
	if dir == "" {
		return fail(errors.New("the name is empty, want a folder"))
	}
	fsys, path := opts.fs, dir
	if fsys == nil {
		fsys = vfs.Default
	}
	// Before anything is written, the lock's file included.
	if err := checkFormat(fsys, path); err != nil {
		return fail(err)
	}
	if opts.ReadOnly {
		// Looked at before locking, because locking writes a file.
		if exists, err := holdsDatabase(fsys, path); err != nil {
			return fail(err)
		} else if !exists {
			return fail(state.ErrEmpty)
		}
	}
	if !opts.ReadOnly {
		if err := makeFolder(fsys, path); err != nil {
			return fail(err)
		}
	}
	if opts.fs == nil {
		// The operating system's lock does not exclude the own process; Pebble's list of locked names does, if
		// the folder has one name.
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return fail(err)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return fail(err)
		}
	}
	lock, err := pebble.LockDirectory(path, fsys)
	if err != nil {
		if isLocked(err) {
			return fail(fmt.Errorf("%w (%v)", state.ErrLocked, err))
		}
		return fail(err)
	}
	s := &Store{failure: newFailure(opts.Logger), lock: lock, readOnly: opts.ReadOnly, fs: fsys, path: path,
		tail: opts.Tail}
	s.tail = cmp.Or(s.tail, tailEntries)
	s.warnMode(fsys, dir, path)
	if !opts.ReadOnly {
		if err := writeFormat(fsys, path); err != nil {
			return fail(errors.Join(err, lock.Close()))
		}
	}
	err = s.failure.guard(func() (err error) {
		s.db, err = pebble.Open(path, opts.pebble(failStopFS{fsys, s.failure}, lock, s.failure))
		return err
	})
	if err != nil {
		// After a failure Pebble's goroutines may be alive, so the lock stays.
		if s.failure.check() == nil {
			err = errors.Join(err, lock.Close())
		}
		return fail(err)
	}
	return s, nil
}

func holdsDatabase(fsys vfs.FS, path string) (bool, error) {
	if _, err := fsys.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	desc, err := pebble.Peek(path, fsys)
	if err != nil {
		return false, err
	}
	return desc.Exists, nil
}

// makeFolder creates the folder and its missing parents with mode 0700, and syncs every folder that got a new
// entry. Pebble would use 0755, and syncs only what it created itself.
func makeFolder(fsys vfs.FS, path string) error {
	changed := []string{}
	for p := path; ; p = fsys.PathDir(p) {
		if _, err := fsys.Stat(p); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parent := fsys.PathDir(p)
		if parent == p {
			break
		}
		changed = append(changed, parent)
	}
	if err := fsys.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, p := range changed {
		if err := syncFolder(fsys, p); err != nil {
			return err
		}
	}
	return nil
}

func syncFolder(fsys vfs.FS, path string) error {
	d, err := fsys.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isLocked distinguishes a held lock from a lock that cannot be taken: a file that cannot be created is a path error,
// a conflict is a bare error number or, within one process, Pebble's own text.
func isLocked(err error) bool {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return false
	}
	return disk.Held(err) || strings.Contains(err.Error(), "lock held by current process")
}

// warnMode logs a warning if others can reach a folder that existed before. Its mode may be a decision of the operator
// (a mounted volume), so it is not changed.
func (s *Store) warnMode(fsys vfs.FS, dir, path string) {
	info, err := fsys.Stat(path)
	if err == nil && info.Mode()&0o077 != 0 && os.PathSeparator == '/' {
		s.failure.log.Warn("state folder is open to other users, want mode 0700", "folder", dir, "mode",
			info.Mode().Perm().String())
	}
}

// Free returns how many bytes the disk of a folder has left for its user.
func Free(dir string) (uint64, error) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err
}
