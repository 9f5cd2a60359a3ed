package pebblestore

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is Pebble's on-disk format, raised on purpose only: an older Pebble refuses a newer folder. This
// one has synced offsets in the log, which tell a damaged log from one that was cut by a crash, and checksums in
// table footers.
const formatVersion = pebble.FormatTableFormatV6

const (
	memTableBytes = 256 << 10 // a checkpoint above half of it takes Pebble's path for large batches
	cacheBytes    = 1 << 20   // the store is read once, at the start
)

// Options says how a folder is opened. The zero value is for use in production.
type Options struct {
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Logger takes Pebble's messages: its information at debug level, errors at error level. nil discards them;
	// failures are reported by the store's methods all the same.
	Logger *slog.Logger
	// ReadOnly opens an existing folder without changing its state; Commit answers state.ErrReadOnly. Pebble
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
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return opts
}
