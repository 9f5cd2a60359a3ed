// Package filestore keeps a device's participations in one file.
//
// The file is a bbolt database of mode 0600, locked by one process. Every write is synced before it returns. It holds
// which events took part, under keys that are hashes, and of events whose round is open the noisy counts that a
// retry must send again; those are deleted when the round is decided, though their bytes may stay in unused pages of the
// file until they are reused.
//
// It belongs to the device. It must not be restored from a backup: an older copy has forgotten who took part since.
//
// What a caller owes:
//
//  1. Open one file per task, see Path, in a folder that only its user can read.
//  2. Hand it to client.New; close it after the client has ended.
package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// lockWait is how long Open waits for another process to let go of the file.
const lockWait = time.Second

// formatVersion is stored under the key "version" of the bucket "meta".
const formatVersion = 1

// The buckets. An event is in exactly one of charged and settled.
//
//	meta     "version": 1 byte; "pin": task hash (32 bytes), order (32 bytes), source
//	rounds   round (8 bytes, big endian): manifest hash
//	charged  key: record, with counts
//	settled  key: record
const (
	metaBucket    = "meta"
	roundsBucket  = "rounds"
	chargedBucket = "charged"
	settledBucket = "settled"
)

// A Store is a participation.Store in a file. Its methods may be called from any goroutine.
type Store struct {
	db      *bbolt.DB
	damaged atomic.Bool // bbolt panicked: nothing is asked of it any more
}

var _ participation.Store = (*Store)(nil)

// Path is where a task's file lies in a state folder.
func Path(dir string, task stream.Task) string {
	return filepath.Join(dir, string(task)+".participation")
}

// Open opens the file, or makes it and its folder (mode 0700). It refuses a file of another format, one that others may
// read, and one that another process holds.
func Open(path string) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, fmt.Errorf("open participations %s: %w", path, err) }
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(err)
	}
	if info, err := os.Stat(path); err == nil && disk.Shared(info) {
		return fail(fmt.Errorf("mode %v: want 0600", info.Mode().Perm()))
	}
	db, err := openFile(path, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fail(errors.New("another process holds it: stop that one, or use another state folder"))
	}
	if err != nil {
		return fail(err)
	}
	err = guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			return prepareBuckets(tx, "version", formatVersion, metaBucket, roundsBucket, chargedBucket, settledBucket)
		})
	})
	if err == nil {
		err = disk.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fail(closeAfter(err, db))
	}
	return &Store{db: db}, nil
}

// prepareBuckets makes the buckets of a new file, or checks that a file is of the kind, which is the key of its version,
// and of the version.
func prepareBuckets(tx *bbolt.Tx, kind string, version byte, names ...string) error {
	if meta := tx.Bucket([]byte(metaBucket)); meta != nil {
		return checkVersion(meta, kind, version)
	}
	for _, name := range names {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return tx.Bucket([]byte(metaBucket)).Put([]byte(kind), []byte{version})
}

func checkVersion(meta *bbolt.Bucket, kind string, version byte) error {
	switch v := meta.Get([]byte(kind)); {
	case v == nil:
		return fmt.Errorf("has no %q: it is a file of another kind", kind)
	case len(v) != 1 || v[0] != version:
		return fmt.Errorf("format version %x: this program reads %d: use the program that wrote it or a newer one", v, version)
	}
	return nil
}

// Close lets go of the file.
func (s *Store) Close() error {
	if s.damaged.Load() {
		return nil // bbolt's locks may be held for ever; the process's end lets go of the file
	}
	return s.guard(s.db.Close)
}

// guard runs what bbolt does with the file, unless it is known to be damaged.
func (s *Store) guard(f func() error) error {
	if s.damaged.Load() {
		return errDamaged
	}
	err := guard(f)
	if errors.Is(err, errDamaged) {
		s.damaged.Store(true)
	}
	return err
}

// view and update are transactions of f.
func (s *Store) view(f func(*bbolt.Tx) error) error {
	return s.guard(func() error { return s.db.View(f) })
}

func (s *Store) update(f func(*bbolt.Tx) error) error {
	return s.guard(func() error { return s.db.Update(f) })
}

// bucket is one that prepareBuckets made; a damaged file may lack it.
func bucket(tx *bbolt.Tx, name string) *bbolt.Bucket {
	b := tx.Bucket([]byte(name))
	if b == nil {
		panic("no bucket " + name) // guard makes it an error
	}
	return b
}

// Pin implements participation.Store.
func (s *Store) Pin() (pin participation.Pin, found bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		v := bucket(tx, metaBucket).Get([]byte("pin"))
		if v == nil {
			return nil
		}
		if len(v) < stream.HashSize+len(pin.Order) {
			return errors.New("read pin: damaged")
		}
		v = v[copy(pin.Task[:], v):]
		pin.Source, found = string(v[copy(pin.Order[:], v):]), true
		return nil
	})
	return pin, found, err
}

// Manifest implements participation.Store.
func (s *Store) Manifest(round stream.Round) (hash stream.Hash, found bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		v := bucket(tx, roundsBucket).Get(roundKey(round))
		if v == nil {
			return nil
		}
		if len(v) != stream.HashSize {
			return fmt.Errorf("read manifest of round %d: damaged", round)
		}
		hash, found = stream.Hash(v), true
		return nil
	})
	return hash, found, err
}

// Read implements participation.Store.
func (s *Store) Read(keys []participation.Key) ([]participation.Record, error) {
	out := make([]participation.Record, len(keys))
	err := s.view(func(tx *bbolt.Tx) error {
		charged, settled := bucket(tx, chargedBucket), bucket(tx, settledBucket)
		for i, k := range keys {
			out[i].Key = k
			data := charged.Get(k[:])
			if data == nil {
				data = settled.Get(k[:])
			}
			if data == nil {
				continue
			}
			if err := out[i].UnmarshalBinary(data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read participations: %w", err)
	}
	return out, nil
}

// Charged implements participation.Store. The loop's body runs outside of guard: its panics are its own.
func (s *Store) Charged() iter.Seq2[participation.Record, error] {
	return func(yield func(participation.Record, error) bool) {
		err := s.guard(func() error { return nil }) // whether it is known to be damaged
		if err == nil {
			err = s.db.View(func(tx *bbolt.Tx) error { return s.charged(tx, yield) })
		}
		if err != nil {
			yield(participation.Record{}, fmt.Errorf("read charged participations: %w", err))
		}
	}
}

func (s *Store) charged(tx *bbolt.Tx, yield func(participation.Record, error) bool) error {
	var c *bbolt.Cursor
	for {
		var p participation.Record
		var more bool
		err := s.guard(func() error {
			var k, data []byte
			if c == nil {
				c = bucket(tx, chargedBucket).Cursor()
				k, data = c.First()
			} else {
				k, data = c.Next()
			}
			if k == nil {
				return nil
			}
			if len(k) != len(p.Key) {
				return errors.New("damaged key")
			}
			more, p.Key = true, participation.Key(k)
			return p.UnmarshalBinary(data)
		})
		if err != nil || !more || !yield(p, nil) {
			return err
		}
	}
}

// Write implements participation.Store.
func (s *Store) Write(c participation.Change) error {
	err := s.update(func(tx *bbolt.Tx) error {
		meta, rounds := bucket(tx, metaBucket), bucket(tx, roundsBucket)
		if c.Pin != nil && meta.Get([]byte("pin")) == nil {
			if err := meta.Put([]byte("pin"), slices.Concat(c.Pin.Task[:], c.Pin.Order[:], []byte(c.Pin.Source))); err != nil {
				return err
			}
		}
		for r, hash := range c.Rounds {
			if err := rounds.Put(roundKey(r), hash[:]); err != nil {
				return err
			}
		}
		charged, settled := bucket(tx, chargedBucket), bucket(tx, settledBucket)
		for _, p := range c.Events {
			data, err := p.MarshalBinary()
			if err != nil {
				return err
			}
			put, remove := settled, charged
			if p.State == participation.Charged {
				put, remove = charged, settled
			}
			if err := errors.Join(put.Put(p.Key[:], data), remove.Delete(p.Key[:])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write participations: %w", err)
	}
	return nil
}

func roundKey(round stream.Round) []byte { return binary.BigEndian.AppendUint64(nil, uint64(round)) }
