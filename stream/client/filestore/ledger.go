package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream/client/ledger"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// LedgerName is the file of a state folder's ledger.
const LedgerName = "ledger"

// ledgerWait is how long one operation waits for the other processes of a state folder, each of which holds the file for
// one write at a time.
const ledgerWait = 30 * time.Second

// ledgerVersion is stored under the key ledgerKind of the bucket "meta".
const (
	ledgerKind    = "ledger version"
	ledgerVersion = 1
)

// The buckets of a ledger.
//
//	meta      "ledger version": 1 byte; "clock": milliseconds since 1970 (8 bytes, big endian)
//	accounts  key (16 bytes, zero for everyone): record
const accountsBucket = "accounts"

// A Ledger is a ledger.Ledger in a file of a state folder. It holds the file only while it works on it, so that several
// publishers of different tasks share one. Every write is synced before Update returns.
type Ledger struct{ path string }

var _ ledger.Ledger = (*Ledger)(nil)

// OpenLedger opens the ledger of a state folder, or makes both (modes 0600 and 0700). It refuses a file of another format
// and one that others may read.
func OpenLedger(dir string) (*Ledger, error) {
	l := &Ledger{path: filepath.Join(dir, LedgerName)}
	fail := func(err error) (*Ledger, error) { return nil, fmt.Errorf("open ledger %s: %w", l.path, err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	if err := l.write(func(*bbolt.Tx) error { return nil }); err != nil {
		return fail(err)
	}
	if err := disk.SyncFolder(dir); err != nil {
		return fail(err)
	}
	return l, nil
}

// ReadLedger opens a ledger that is there, for reading; the error is fs.ErrNotExist where it is not.
func ReadLedger(dir string) (*Ledger, error) {
	l := &Ledger{path: filepath.Join(dir, LedgerName)}
	if _, err := os.Stat(l.path); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if err := l.read(func(*bbolt.Tx) error { return nil }); err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", l.path, err)
	}
	return l, nil
}

// Update implements ledger.Ledger.
func (l *Ledger) Update(clock time.Time, accounts []participation.Key, edit func(time.Time, [][]ledger.Charge) error) error {
	if _, err := os.Stat(l.path); err != nil {
		return fmt.Errorf("write ledger: %w", err) // an empty one in its place would have forgotten what was spent
	}
	var refused error // of edit, answered as it is
	err := l.write(func(tx *bbolt.Tx) error {
		meta, bucket := tx.Bucket([]byte(metaBucket)), tx.Bucket([]byte(accountsBucket))
		last, err := readClock(meta)
		if err != nil {
			return err
		}
		now := ledger.LaterOf(last, clock)
		if now.UnixMilli() < 0 {
			return fmt.Errorf("the clock says %v: want 1970 or later", clock)
		}
		charges := make([][]ledger.Charge, len(accounts))
		for i, k := range accounts {
			a := ledger.Account{Key: k}
			if data := bucket.Get(k[:]); data != nil {
				if err := a.UnmarshalBinary(data); err != nil {
					return err
				}
			}
			charges[i] = a.Charges
		}
		refused = edit(now, charges)
		if refused != nil && now.Equal(last) {
			return refused // nothing to write
		}
		if err := meta.Put([]byte("clock"), binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))); err != nil || refused != nil {
			return err
		}
		for i, k := range accounts {
			data, err := ledger.Account{Charges: charges[i]}.MarshalBinary()
			if err != nil {
				return err
			}
			if err := bucket.Put(k[:], data); err != nil {
				return err
			}
		}
		return nil
	})
	if refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("write ledger %s: %w", l.path, err)
	}
	return nil
}

// Accounts implements ledger.Ledger.
func (l *Ledger) Accounts() iter.Seq2[ledger.Account, error] {
	return func(yield func(ledger.Account, error) bool) {
		err := l.read(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(accountsBucket)).Cursor()
			for k, data := c.First(); k != nil; k, data = c.Next() {
				var a ledger.Account
				if len(k) != len(a.Key) {
					return errors.New("damaged key")
				}
				a.Key = participation.Key(k)
				if err := a.UnmarshalBinary(data); err != nil {
					return err
				}
				if !yield(a, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(ledger.Account{}, fmt.Errorf("read ledger %s: %w", l.path, err))
		}
	}
}

// Clock implements ledger.Ledger.
func (l *Ledger) Clock() (now time.Time, err error) {
	err = l.read(func(tx *bbolt.Tx) error {
		now, err = readClock(tx.Bucket([]byte(metaBucket)))
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read ledger %s: %w", l.path, err)
	}
	return now, nil
}

func readClock(meta *bbolt.Bucket) (time.Time, error) {
	v := meta.Get([]byte("clock"))
	if v == nil {
		return time.Time{}, nil
	}
	if len(v) != 8 || binary.BigEndian.Uint64(v) > math.MaxInt64 {
		return time.Time{}, errors.New("damaged clock")
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(v))).UTC(), nil
}

func (l *Ledger) write(f func(*bbolt.Tx) error) error {
	return l.with(false, func(db *bbolt.DB) error {
		return db.Update(func(tx *bbolt.Tx) error {
			if err := prepareBuckets(tx, ledgerKind, ledgerVersion, metaBucket, accountsBucket); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

func (l *Ledger) read(f func(*bbolt.Tx) error) error {
	return l.with(true, func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(metaBucket))
			if meta == nil || tx.Bucket([]byte(accountsBucket)) == nil {
				return errors.New("not a ledger")
			}
			if err := checkVersion(meta, ledgerKind, ledgerVersion); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

// with holds the file for one transaction.
func (l *Ledger) with(readOnly bool, f func(*bbolt.DB) error) error {
	if info, err := os.Stat(l.path); err == nil && disk.Shared(info) {
		return fmt.Errorf("mode %v: want 0600", info.Mode().Perm())
	}
	db, err := openFile(l.path, &bbolt.Options{Timeout: ledgerWait, FreelistType: bbolt.FreelistMapType, ReadOnly: readOnly})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("another process held it for %v: it may be stopped in the middle of a write", ledgerWait)
	}
	if err != nil {
		return err
	}
	return closeAfter(guard(func() error { return f(db) }), db)
}
