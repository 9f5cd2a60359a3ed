package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// filled returns a closed folder with the given number of commits.
func filled(t *testing.T, script storetest.Script, commits int, tail uint64) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s, err := Open(folder, Options{fs: fs, Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	for range commits {
		if err := script.Advance(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestTamperedValues changes values with Pebble itself, so that every block checksum is right: Load must return a
// clear error.
func TestTamperedValues(t *testing.T) {
	script := storetest.Script{Rounds: 6}
	clean := filled(t, script, 5, 0)
	set := func(db *pebble.DB, key, value []byte) error { return db.Set(key, value, pebble.Sync) }
	change := func(db *pebble.DB, key []byte, f func([]byte) []byte) error {
		value, closer, err := db.Get(key)
		if err != nil {
			return err
		}
		defer closer.Close()
		return set(db, key, f(append([]byte(nil), value...)))
	}
	flip := func(i int) func([]byte) []byte {
		return func(b []byte) []byte { b[(i+len(b))%len(b)] ^= 1; return b }
	}
	// edited is entry 4 with a smaller epsilon and a fresh hash: valid alone, wrong in the chain.
	edited := func(b []byte) []byte {
		var e state.Entry
		if err := e.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		l := new(state.Ledger)
		e.Epsilon /= 2
		e.Round = 1
		forged, err := l.Reserve(state.Entry{Round: 1, Users: e.Users, Epsilon: e.Epsilon, Delta: e.Delta,
			TaskHash: e.TaskHash}, state.Cost{Epsilon: 1, Delta: 1})
		if err != nil {
			t.Fatal(err)
		}
		b, err = forged.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, test := range []struct {
		name, want string
		tamper     func(db *pebble.DB) error
	}{
		{"checkpoint, first byte", "not a checkpoint", func(db *pebble.DB) error {
			return change(db, []byte(checkpointKey),
				flip(0))
		}},
		{"checkpoint, version", "version 0, this build reads version 1", func(db *pebble.DB) error {
			return change(db,
				[]byte(checkpointKey), flip(5))
		}},
		{"checkpoint, middle", "checksum does not match", func(db *pebble.DB) error {
			return change(db, []byte(checkpointKey),
				flip(200))
		}},
		{"checkpoint, last byte", "checksum does not match", func(db *pebble.DB) error {
			return change(db,
				[]byte(checkpointKey), flip(-1))
		}},
		{"checkpoint cut", "checksum does not match", func(db *pebble.DB) error {
			return change(db, []byte(checkpointKey), func(b []byte) []byte { return b[:len(b)-9] })
		}},
		{"checkpoint gone", "the ledger was cut or changed",
			func(db *pebble.DB) error { return db.Delete([]byte(checkpointKey), pebble.Sync) }},
		{"entry, epsilon", "the ledger was damaged or changed", func(db *pebble.DB) error {
			return change(db, ledgerKey(4),
				flip(54))
		}},
		{"entry, hash", "the ledger was damaged or changed", func(db *pebble.DB) error {
			return change(db, ledgerKey(9),
				flip(-1))
		}},
		{"entry, edited and hashed again", "is stored under key", func(db *pebble.DB) error {
			return change(db, ledgerKey(4),
				edited)
		}},
		{"first entry edited and hashed again", "the ledger was damaged or changed",
			func(db *pebble.DB) error { return change(db, ledgerKey(1), edited) }},
		{"entry gone", "entries are missing", func(db *pebble.DB) error { return db.Delete(ledgerKey(3), pebble.Sync) }},
		{"last entry gone", "the ledger was cut or changed", func(db *pebble.DB) error {
			return db.Delete(ledgerKey(9),
				pebble.Sync)
		}},
		{"ledger gone", "the ledger was cut or changed", func(db *pebble.DB) error {
			return db.DeleteRange([]byte(ledgerPrefix), []byte(ledgerEnd), pebble.Sync)
		}},
		{"entry repeated", "is stored under key", func(db *pebble.DB) error {
			value, closer, err := db.Get(ledgerKey(9))
			if err != nil {
				return err
			}
			defer closer.Close()
			return set(db, ledgerKey(10), value)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := clean.CrashClone(vfs.CrashCloneCfg{})
			db, err := pebble.Open(folder, &pebble.Options{FS: fs, FormatMajorVersion: formatVersion, Logger: newFailure(nil)})
			if err != nil {
				t.Fatal(err)
			}
			if err := test.tamper(db); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := Open(folder, Options{fs: fs})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Load(context.Background()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Load: %v, want an error with %q", err, test.want)
			}
			if _, err := state.ReadLedger(s.Ledger(context.Background())); err == nil {
				t.Error("Ledger gave no error")
			}
			if err := s.Commit(context.Background(), state.Checkpoint{}, nil); err == nil || errors.Is(err, state.ErrFailed) {
				t.Errorf("Commit: %v, want a refusal", err)
			}
		})
	}
}

// reread returns the number of commits that a start finds in a folder.
func reread(script storetest.Script, fs vfs.FS) (uint64, error) {
	s, err := Open(folder, Options{fs: fs})
	if err != nil {
		return 0, err
	}
	n, err := script.Check(context.Background(), s)
	if closing := s.Close(); err == nil && closing != nil {
		return n, fmt.Errorf("close: %w", closing)
	}
	return n, err
}

func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
