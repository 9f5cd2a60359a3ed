package pebblestore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// grow commits rounds of a script without looking at the whole ledger between them.
func grow(t *testing.T, s *Store, script storetest.Script, rounds uint64) state.Checkpoint {
	t.Helper()
	ctx := t.Context()
	at, err := s.Load(ctx)
	if err != nil && !errors.Is(err, state.ErrEmpty) {
		t.Fatal(err)
	}
	for range rounds {
		next, entries, err := script.Next(at)
		if err == nil {
			err = s.Commit(ctx, next, entries, script.Kept(next.Cursor.Round)...)
		}
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	return at
}

func opening(t *testing.T, fs vfs.FS, opts Options) *Store {
	t.Helper()
	opts.fs = fs
	s, err := Open(folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closing(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWorkDoesNotGrow counts what a start reads of the ledger, and what Pebble holds of it, after few rounds and after
// many. All entries are still there to be read and verified.
func TestWorkDoesNotGrow(t *testing.T) {
	script := storetest.Script{Rounds: 1 << 20, Bytes: 32}
	fs := vfs.NewMem()
	for _, rounds := range []uint64{600, 10_000} {
		s := opening(t, fs, Options{})
		at := grow(t, s, script, rounds)
		closing(t, s)
		s = opening(t, fs, Options{})
		if got, err := s.Load(t.Context()); err != nil || !got.Equal(at) {
			t.Fatalf("after %d rounds: %v", at.Cursor.Round, err)
		}
		held := 0
		for _, err := range s.entries(0) { // what Load reads
			if err != nil {
				t.Fatal(err)
			}
			held++
		}
		if held > tailEntries+2 {
			t.Errorf("after %d rounds Pebble holds %d entries, and a start reads them: want at most %d", at.Cursor.Round, held,
				tailEntries+2)
		}
		all := uint64(0)
		for _, err := range s.Ledger(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all++
		}
		if err := at.VerifyLedger(state.Ledger{}, s.Ledger(t.Context())); err != nil || all != at.Ledger.Head.Length ||
			all < 2*at.Cursor.Round {
			t.Errorf("after %d rounds %d entries are read, %v", at.Cursor.Round, all, err)
		}
		closing(t, s)
	}
}

// TestDamagedArchive: a learner goes on without a part of its archive; a reader of the ledger
// gets an error that names the first lost entry, also after more rounds; the archive of a backup mends it when it is
// written over its beginning.
func TestDamagedArchive(t *testing.T) {
	ctx, script := t.Context(), storetest.Script{Rounds: 40}
	clean := filled(t, script, 12, shortTail)
	whole := contents(t, clean, archiveName)
	if len(whole) < 15*state.EntryBytes {
		t.Fatalf("only %d bytes are archived", len(whole))
	}
	entry := func(n int) int { return (n - 1) * state.EntryBytes }
	with := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(whole)) }
	for _, test := range []struct {
		name, want string
		damaged    []byte
	}{
		{"lost", "entry 1 of ", nil},
		{"empty", "entry 1 of ", []byte{}},
		{"cut", "entry 7 of ", with(func(b []byte) []byte { return b[:entry(7)+20] })},
		{"flipped", "entry 4 of ", with(func(b []byte) []byte { b[entry(4)+50] ^= 1; return b })},
		{"zeros", "entry 5 of ", with(func(b []byte) []byte { clear(b[entry(5):entry(6)]); return b })},
		{"an entry in another place", "entry 3 of ",
			with(func(b []byte) []byte { copy(b[entry(3):entry(4)], whole[entry(5):]); return b })},
		{"another history", "previous hash", with(func(b []byte) []byte {
			other := filled(t, storetest.Script{Rounds: 40, Other: 4}, 12, shortTail)
			return contents(t, other, archiveName)
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := clean.CrashClone(vfs.CrashCloneCfg{})
			put(t, fs, archiveName, test.damaged)
			for range 3 {
				var log bytes.Buffer
				s := opening(t, fs, Options{Tail: shortTail, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				at := grow(t, s, script, 4)
				err := at.VerifyLedger(state.Ledger{}, s.Ledger(ctx))
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("the ledger of round %d: %v, want an error with %q", at.Cursor.Round, err, test.want)
				}
				if lost := strings.Contains(test.want, "entry"); lost != errors.Is(err, state.ErrArchive) || lost &&
					!strings.Contains(err.Error(), "of a backup") {
					t.Errorf("the ledger of round %d: %v", at.Cursor.Round, err)
				}
				if short := test.damaged == nil || len(test.damaged) < len(whole)/2; short && at.Cursor.Round < 17 &&
					!strings.Contains(log.String(), "missing or cut short") {
					t.Error("the start logs nothing")
				}
				closing(t, s)
			}
			held := contents(t, fs, archiveName) // what came later is in its place, behind a hole
			put(t, fs, archiveName, bytes.Clone(whole))
			s := opening(t, fs, Options{})
			at, err := s.Load(ctx)
			if err == nil {
				err = at.VerifyLedger(state.Ledger{}, s.Ledger(ctx))
			}
			if !errors.Is(err, state.ErrArchive) || !strings.Contains(err.Error(), "ends before it") {
				t.Errorf("with the old archive alone, which lacks what came later: %v", err)
			}
			closing(t, s)
			put(t, fs, archiveName, append(bytes.Clone(whole), held[len(whole):]...))
			s = opening(t, fs, Options{})
			if n, err := script.Check(ctx, s); err != nil || n != 24 {
				t.Errorf("with the old archive over its beginning: %d commits, %v", n, err)
			}
			closing(t, s)
		})
	}
}

// TestArchiveAhead: a folder whose Pebble was rolled back, and whose archive was not, goes on. Where it comes the same
// way again the archive ends as if nothing had been. Where it goes another, its entries take the place of the old
// ones, which are kept.
func TestArchiveAhead(t *testing.T) {
	const back, ahead = 6, 30
	for _, other := range []uint64{0, 10} {
		script := storetest.Script{Rounds: 40}
		fs := filled(t, script, back, shortTail)
		later := contents(t, filled(t, script, ahead, shortTail), archiveName)
		put(t, fs, archiveName, bytes.Clone(later)) // a vfs.File may change what it writes
		script.Other = other
		var log bytes.Buffer
		for n := uint64(back); n < ahead; n += 4 {
			s := opening(t, fs, Options{Tail: shortTail, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			grow(t, s, script, 4)
			if got, err := script.Check(t.Context(), s); err != nil || got != n+4 {
				t.Fatalf("%d commits, %v, want %d", got, err, n+4)
			}
			closing(t, s)
		}
		kept, want := []byte{}, []byte{}
		for _, name := range files(t, fs) {
			if strings.HasPrefix(name, archiveName+".other.") {
				kept = append(kept, contents(t, fs, name)...)
			}
		}
		if other > 0 {
			want = later[archiveOffset(2*(other-1)+2):] // from the entry on that settles round 10
		}
		for k := 0; k < len(want); k += state.EntryBytes {
			if !bytes.Contains(kept, want[k:k+state.EntryBytes]) {
				t.Errorf("other history %d: entry %d of the old one is lost", other,
					int(archiveOffset(2*(other-1)+2))/state.EntryBytes+1+k/state.EntryBytes)
			}
		}
		if warned := strings.Contains(log.String(), "another history"); warned != (other > 0) || other == 0 && len(kept) > 0 {
			t.Errorf("other history %d: %d bytes kept, warned %t", other, len(kept), warned)
		}
	}
}

// TestArchiveCannotBeWritten: commits go on while the archive fails, a failure is logged, not every commit tries again,
// and once the archive works everything is in it.
func TestArchiveCannotBeWritten(t *testing.T) {
	const tail = 20
	script := storetest.Script{Rounds: 400}
	var broken atomic.Bool
	var tries atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && strings.HasSuffix(op.Path, archiveName) && op.Kind == errorfs.OpFileWriteAt {
			tries.Add(1)
			return syscall.EIO
		}
		return nil
	}))
	var log bytes.Buffer
	s := opening(t, fs, Options{Tail: tail, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	broken.Store(true)
	grow(t, s, script, 101) // 201 entries
	if n := tries.Load(); n < 8 || n > 201/tail {
		t.Errorf("%d tries over 201 entries, want one for each %d", n, tail)
	}
	if !strings.Contains(log.String(), "cannot archive") {
		t.Error("nothing is logged")
	}
	broken.Store(false)
	at := grow(t, s, script, 2*tail)
	if held := at.Ledger.Head.Length - s.archived.Head.Length; held > tail+2 {
		t.Errorf("%d entries are not archived", held)
	}
	if n, err := script.Check(t.Context(), s); err != nil || n != 101+2*tail {
		t.Errorf("%d commits, %v", n, err)
	}
	closing(t, s)
}
