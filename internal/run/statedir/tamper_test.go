package statedir

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// TestBrokenLedgerIsNotPrinted changes the ledger with Pebble itself, so that every checksum of the files is right, and
// reads it as `learner ledger` does: no figures, and an error that names the entry.
func TestBrokenLedgerIsNotPrinted(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	key := func(sequence uint64) []byte {
		return binary.BigEndian.AppendUint64([]byte("ledger/"), sequence)
	}
	read := func(db *pebble.DB, sequence uint64) []byte {
		value, closer, err := db.Get(key(sequence))
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		return append([]byte(nil), value...)
	}
	write := func(db *pebble.DB, sequence uint64, value []byte) {
		if err := db.Set(key(sequence), value, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(db *pebble.DB, sequence uint64) {
		if err := db.Delete(key(sequence), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, want string
		tamper     func(db *pebble.DB)
	}{
		{"nothing", "", func(*pebble.DB) {}},
		{"epsilon of entry 2 made smaller", "ledger entry 2: hash is", func(db *pebble.DB) {
			b := read(db, 2)
			b[48] ^= 1 // in the exponent
			write(db, 2, b)
		}},
		{"entry 2 removed", "ledger entry 3 (reserved, round 2): follows entry 1", func(db *pebble.DB) { remove(db, 2) }},
		{"first entry removed", "ledger entry 2 (spent, round 1): follows entry 0", func(db *pebble.DB) { remove(db, 1) }},
		{"last entry removed", "the ledger was cut or changed", func(db *pebble.DB) {
			for last := uint64(1); ; last++ {
				if _, closer, err := db.Get(key(last + 1)); err != nil {
					remove(db, last)
					return
				} else if err := closer.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"entries 1 and 3 swapped", "entry 3 is stored under key", func(db *pebble.DB) {
			one, three := read(db, 1), read(db, 3)
			write(db, 1, three)
			write(db, 3, one)
		}},
		{"entry 3 put in the place of entry 1, as its own", "ledger entry", func(db *pebble.DB) {
			var e state.Entry
			if err := e.UnmarshalBinary(read(db, 3)); err != nil {
				t.Fatal(err)
			}
			forged, err := new(state.Ledger).Reserve(state.Entry{Round: 1, Users: e.Users, NoiseTrials: e.NoiseTrials,
				Epsilon: e.Epsilon / 2,
				Delta:   e.Delta, TaskHash: e.TaskHash}, state.Cost{Epsilon: e.Epsilon, Delta: 1})
			if err != nil {
				t.Fatal(err)
			}
			b, err := forged.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			write(db, 1, b)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			store, err := pebblestore.Open(dir, pebblestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runtest.Learned(t, job, store)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatTableFormatV6})
			if err != nil {
				t.Fatal(err)
			}
			test.tamper(db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			for _, q := range []Question{AskLedger, AskStatus, AskSnapshot} {
				doc, err := Ask(context.Background(), Where{StateDir: dir}, q)
				if test.want == "" {
					if err != nil {
						t.Errorf("%s: %v", q, err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), test.want) || len(doc) > 0 {
					t.Errorf("%s: %v and %d bytes, want an error with %q and none", q, err, len(doc), test.want)
				}
			}
		})
	}
}
