package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/state"
)

// The archive is one file beside Pebble's: entry k, as state.Entry encodes it, at offset (k-1) state.EntryBytes. How
// much of it is valid is recorded in Pebble, under archivedKey: the ledger's sums up to the last entry that only the
// archive holds. Bytes after that entry come from a crash or from a folder that was rolled back. They are not read, and
// are overwritten.
const (
	archiveName = "ledger.archive"
	archivedKey = "archived"

	tailEntries = 1024 // in Pebble before some are archived
	mostEntries = 4096 // archived at one commit
)

// archiveRemedy ends each error about the archive.
const archiveRemedy = "the learner can go on without them; where " + archiveName +
	" of a backup has them, write it over the beginning of the damaged file (docs/how-to/runbook.md)"

func archiveOffset(sequence uint64) int64 { return int64(sequence-1) * state.EntryBytes }

// archive writes committed entries that are not yet archived to the archive, if there are enough of them, and returns
// the sums up to the last one. In one batch the caller writes the sums and deletes the entries from Pebble. A learner
// runs without an archive: if writing fails, nothing is archived, and archiving is retried some commits later.
func (s *Store) archive() state.Ledger {
	waiting := s.current.Ledger.Head.Length - s.archived.Head.Length
	if waiting < s.tail || s.current.Ledger.Head.Length < s.retry {
		return s.archived
	}
	to, err := s.archiveUpTo(s.archived.Head.Length + min(waiting, mostEntries))
	if err != nil {
		s.retry = s.current.Ledger.Head.Length + s.tail
		s.failure.log.Error("cannot archive ledger entries, keeping them", "entries", waiting, "error", err)
		return s.archived
	}
	return to
}

func (s *Store) archiveUpTo(last uint64) (state.Ledger, error) {
	to, lines := s.archived, []byte{}
	for e, err := range s.entries(s.archived.Head.Length + 1) {
		if err != nil {
			return to, err
		}
		if e.Sequence > last {
			break
		}
		if err := to.Append(e); err != nil {
			return to, err
		}
		line, err := e.MarshalBinary()
		if err != nil {
			return to, err
		}
		lines = append(lines, line...)
	}
	if to.Head.Length != last {
		return to, fmt.Errorf("entry %d is missing", to.Head.Length+1)
	}
	f, err := s.fs.OpenReadWrite(s.fs.PathJoin(s.path, archiveName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return to, err
	}
	err = s.keepOther(f, s.archived.Head.Length+1, lines)
	if err == nil {
		_, err = f.WriteAt(lines, archiveOffset(s.archived.Head.Length+1))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncFolder(s.fs, s.path) // each time: the one that made the file may have failed here
	}
	return to, err
}

// keepOther examines the archive at the place where lines will be written. It already holds the same lines if the
// folder was rolled back and has reached this place again, and torn ones after a crash. Whole entries of another
// history are saved to a separate file: they may be the only record of that history's cost.
func (s *Store) keepOther(f vfs.File, first uint64, lines []byte) error {
	old := make([]byte, len(lines))
	n, err := f.ReadAt(old, archiveOffset(first))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for k := 0; k+state.EntryBytes <= n; k += state.EntryBytes {
		if bytes.Equal(old[k:k+state.EntryBytes], lines[k:k+state.EntryBytes]) {
			continue
		}
		var e state.Entry
		if e.UnmarshalBinary(old[k:k+state.EntryBytes]) != nil {
			return nil
		}
		name := fmt.Sprintf("%s.other.%s", archiveName, e.Hash.String()[:16])
		s.failure.log.Warn("the archive has entries of another history of this state folder, keeping them", "from",
			e.Sequence, "file", name)
		return s.writeFile(name, old[k:n])
	}
	return nil
}

func (s *Store) writeFile(name string, data []byte) error {
	f, err := s.fs.Create(s.fs.PathJoin(s.path, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = disk.Put(f, data); err == nil {
		err = syncFolder(s.fs, s.path) // before the saved entries are overwritten
	}
	return err
}

// archivePage reads up to pageEntries archived entries from the given sequence on.
func (s *Store) archivePage(from uint64) ([]state.Entry, error) {
	last := min(s.archived.Head.Length, from+pageEntries-1)
	fail := func(sequence uint64, err error) ([]state.Entry, error) {
		return nil, fmt.Errorf("%w: entry %d of %d: %w; %s", state.ErrArchive, sequence, s.archived.Head.Length, err,
			archiveRemedy)
	}
	f, err := s.fs.Open(s.fs.PathJoin(s.path, archiveName))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the file %s is missing", archiveName)
	}
	if err != nil {
		return fail(from, err)
	}
	defer f.Close()
	data := make([]byte, (last-from+1)*state.EntryBytes)
	n, err := f.ReadAt(data, archiveOffset(from))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		return fail(from, err)
	}
	page := make([]state.Entry, 0, last-from+1)
	for sequence := from; sequence <= last; sequence++ {
		at := archiveOffset(sequence) - archiveOffset(from)
		if at+state.EntryBytes > int64(n) {
			return fail(sequence, errors.New("the file ends before it"))
		}
		var e state.Entry
		if err := e.UnmarshalBinary(data[at : at+state.EntryBytes]); err != nil {
			return fail(sequence, err)
		}
		if e.Sequence != sequence {
			return fail(sequence, fmt.Errorf("entry %d stands in its place", e.Sequence))
		}
		page = append(page, e)
	}
	return page, nil
}

// checkArchive logs an error if the archive is too short for the entries that were archived. Its content is verified
// by its readers.
func (s *Store) checkArchive() {
	if s.archived.Head.Length == 0 {
		return
	}
	size := int64(0)
	info, err := s.fs.Stat(s.fs.PathJoin(s.path, archiveName))
	if err == nil {
		size = info.Size()
	}
	if want := archiveOffset(s.archived.Head.Length + 1); size < want {
		s.failure.log.Error("the archive of the ledger is missing or cut short; learning goes on", "file", archiveName,
			"bytes", size, "want", want, "error", err)
	}
}

// writeArchive writes all entries into the archive of a new folder, and returns their sums.
func writeArchive(fsys vfs.FS, dir string, entries iter.Seq2[state.Entry, error]) (l state.Ledger, err error) {
	f, err := fsys.Create(fsys.PathJoin(dir, archiveName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := make([]byte, 0, pageEntries*state.EntryBytes)
	flush := func() error {
		_, err := f.Write(lines)
		lines = lines[:0]
		return err
	}
	for e, err := range entries {
		if err != nil {
			return l, err
		}
		if err := l.Append(e); err != nil {
			return l, err
		}
		line, err := e.MarshalBinary()
		if err != nil {
			return l, err
		}
		if lines = append(lines, line...); len(lines) == cap(lines) {
			if err := flush(); err != nil {
				return l, err
			}
		}
	}
	if err := flush(); err != nil {
		return l, err
	}
	if err := f.Sync(); err != nil {
		return l, err
	}
	return l, syncFolder(fsys, dir)
}
