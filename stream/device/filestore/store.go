// Package filestore keeps a device's participations in an append-only log, and its ledger in another.
//
// The participations of a task are a folder of mode 0700 that one process holds. Each change is one frame with a
// checksum, written at once and synced before Write returns. A process or machine that dies in the middle of a write
// leaves a torn frame at the end, which the next Open cuts off: its write was never acknowledged. Whole frames after a
// damaged one are an error. After a failed write or sync the content of the disk is unknown, and every later call
// fails. When much of a log is out of date, what is still true is written into a new one, which takes the old one's
// name and place at once.
//
// It holds which events took part, under keys that are hashes, and, for events of open rounds, the noisy counts that a
// retry must send again. These are encrypted (AES-256-GCM) under a key of their round, kept in a file of its own. When
// no event of the round is charged any more the key is overwritten with zeros, synced, and removed, and in memory it is
// cleared: what the log has of their counts cannot be read from then on.
//
// What overwriting cannot promise: a solid-state disk writes elsewhere and keeps the old 32 bytes until it cleans up;
// so do file systems that copy on write (Btrfs, ZFS, APFS), their snapshots, journals of data, and backups, all out of
// a program's reach. Where that matters keep the folder on an encrypted disk and out of snapshots. Memory that held a
// key or counts may have been swapped out, and the cipher's key schedule stays in memory until the garbage collector
// reuses it.
//
// The folder belongs to the device. It must not be restored from a backup: an older copy has forgotten who took part
// since. A last frame that the disk loses after it reported it as synced, or makes unreadable, looks like a torn write.
//
// What a caller owes:
//
//  1. Open one folder per task, see Path, in a folder that only its user can read.
//  2. Hand it to client.New; close it after the client has ended.
package filestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// lockWait bounds Open's wait for another process to let go of the folder.
const lockWait = time.Second

// The kind of a segment of participations, and its files.
const (
	participationKind = "participations"
	logSuffix         = ".log"
	tmpSuffix         = ".tmp" // of one that is not whole yet
)

// A Store is a participation.Store in a folder. Its methods may be called from any goroutine.
type Store struct {
	mu         sync.Mutex
	folder     folder
	unlock     func() error
	generation uint32 // number of the log: the newest is the whole truth
	log        *segment
	index      *index
	current    map[stream.Round]*roundKey // drawn by this process
	frame      []byte                     // memory of the next one
	compactAt  int64                      // bytes of log
	failed     error                      // set: every later call fails with it
}

var _ participation.Store = (*Store)(nil)

// Path returns the path of a task's participations in a state folder.
func Path(dir string, task stream.Task) string {
	return filepath.Join(dir, string(task)+".participation")
}

// Open opens the folder, or makes it and those above it. It refuses one of another format, one that others may
// read, and one that another process holds.
func Open(path string) (*Store, error) {
	d, err := openFolder(path)
	if err != nil {
		return nil, fmt.Errorf("open participations %s: %w", path, err)
	}
	s, err := openStore(d)
	if err != nil {
		return nil, fmt.Errorf("open participations %s: %w", path, err)
	}
	return s, nil
}

func openStore(in folder) (*Store, error) {
	unlock, err := in.Lock(lockWait)
	if errors.Is(err, disk.ErrHeld) {
		return nil, fmt.Errorf("%w: stop that one, or use another state folder", err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{folder: in, unlock: unlock, index: newIndex(), current: make(map[stream.Round]*roundKey)}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// load reads the newest log, and removes what a process that died left: older logs, one that is not whole, and keys of
// rounds that are settled.
func (s *Store) load() error {
	names, err := s.folder.Names()
	if err != nil {
		return err
	}
	logs, ids := numbered(names, logSuffix), keyIDs(names)
	for _, n := range numbered(names, tmpSuffix) {
		if err := s.folder.Remove(name(n, tmpSuffix)); err != nil {
			return err
		}
	}
	if len(logs) == 0 {
		if len(ids) > 0 {
			return fmt.Errorf("%w: keys without a log: who took part is not known any more; keep these users out of this task",
				errDamaged)
		}
		return s.compact()
	}
	if err := s.folder.Sync(); err != nil { // the newest one's name may not be on the disk yet
		return err
	}
	torn := make(map[keyID]bool)
	for _, id := range ids {
		k, found, err := readRoundKey(s.folder, id)
		if err != nil {
			return err
		}
		if torn[id] = !found; found {
			s.index.keys[id] = k
		}
	}
	s.generation = slices.Max(logs)
	if s.log, err = openSegment(s.folder, name(s.generation, logSuffix), participationKind, s.index.apply); err != nil {
		return err
	}
	if err := s.index.complete(); err != nil {
		return err
	}
	for id := range torn {
		if torn[id] {
			if err := eraseKey(s.folder, id); err != nil {
				return err
			}
		}
	}
	for _, n := range logs {
		if n != s.generation {
			if err := s.folder.Remove(name(n, logSuffix)); err != nil {
				return err
			}
		}
	}
	s.compactAt = s.due(0)
	return s.erase()
}

func name(number uint32, suffix string) string { return fmt.Sprintf("%08x%s", number, suffix) }

// Close lets go of the folder.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.close()
	s.failed = errors.New("it is closed")
	return err
}

func (s *Store) close() (err error) {
	for _, k := range s.index.keys {
		clear(k.key[:])
	}
	if s.log != nil {
		err = s.log.file.Close()
		s.log = nil
	}
	if s.unlock != nil {
		err = errors.Join(err, s.unlock())
		s.unlock = nil
	}
	return err
}

// Pin implements participation.Store.
func (s *Store) Pin() (participation.Pin, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || s.index.pin == nil {
		return participation.Pin{}, false, s.failed
	}
	return *s.index.pin, true, nil
}

// Manifest implements participation.Store.
func (s *Store) Manifest(round stream.Round) (stream.Hash, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return stream.Hash{}, false, s.failed
	}
	hash, found := s.index.rounds[round]
	return hash, found, nil
}

// Read implements participation.Store.
func (s *Store) Read(keys []participation.Key) ([]participation.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	out := make([]participation.Record, len(keys))
	charged := make(map[*block]map[participation.Key][]int)
	for i, k := range keys {
		if n, found := s.index.events[k]; found && n >= firstBlock {
			b := s.index.blocks[n]
			if charged[b] == nil {
				charged[b] = make(map[participation.Key][]int)
			}
			charged[b][k] = append(charged[b][k], i)
		} else if found {
			out[i] = s.index.records[n]
		}
		out[i].Key = k
	}
	for b, places := range charged {
		err := s.open(b, func(p participation.Record) error {
			for n, i := range places[p.Key] {
				if out[i] = p; n > 0 { // a caller may change what it got
					out[i].Sends, out[i].Draw.Counts = slices.Clone(p.Sends), slices.Clone(p.Draw.Counts)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read participations: %w", err)
		}
	}
	return out, nil
}

// Charged implements participation.Store.
func (s *Store) Charged() iter.Seq2[participation.Record, error] {
	return func(yield func(participation.Record, error) bool) {
		s.mu.Lock()
		blocks, err := s.index.inOrder(), s.failed
		s.mu.Unlock()
		for _, b := range blocks {
			var records []participation.Record // the loop's body may call the store
			s.mu.Lock()
			err = s.failed
			if err == nil {
				err = s.open(b, func(p participation.Record) error { records = append(records, p); return nil })
			}
			s.mu.Unlock()
			if err != nil {
				break
			}
			for _, p := range records {
				if !yield(p, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(participation.Record{}, fmt.Errorf("read charged participations: %w", err))
		}
	}
}

// inOrder returns the blocks with charged events, in the order of the log.
func (x *index) inOrder() []*block {
	return slices.SortedFunc(maps.Values(x.blocks), func(a, b *block) int { return cmp.Compare(a.at, b.at) })
}

func (s *Store) open(b *block, each func(participation.Record) error) error {
	data, err := s.read(b)
	if err != nil {
		return err
	}
	return s.index.open(b, data, each)
}

func (s *Store) read(b *block) ([]byte, error) {
	data := make([]byte, b.size)
	if n, err := s.log.file.ReadAt(data, b.at); n < len(data) {
		return nil, err
	}
	return data, nil
}

// Taken returns how many events took part, whatever became of them.
func (s *Store) Taken() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.index.events))
}

// A Position marks how far a store is written. Each write moves the store to a later one.
type Position struct {
	Generation uint32 // of the log
	Size       int64  // of what is whole of it, in bytes
}

// Before reports whether p is an earlier position than q of the same store.
func (p Position) Before(q Position) bool {
	return p.Generation < q.Generation || p.Generation == q.Generation && p.Size < q.Size
}

// Position returns how far the store is written.
func (s *Store) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Position{s.generation, s.log.size}
}

// Write implements participation.Store.
func (s *Store) Write(c participation.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if err := s.write(c); err != nil {
		return fmt.Errorf("write participations: %w", err)
	}
	return nil
}

// fail has the store answer nothing more: nobody knows what is stored.
func (s *Store) fail(err error) error {
	if err != nil {
		s.failed = fmt.Errorf("participations: %w: %w", ErrRestart, err)
	}
	return err
}

func (s *Store) write(c participation.Change) error {
	frame, err := s.encode(append(s.frame[:0], make([]byte, frameSize)...), c)
	if err != nil {
		clear(s.frame[:cap(s.frame)]) // counts, in part
		return err
	}
	s.frame = frame
	if len(frame) == frameSize {
		return nil
	}
	at, err := s.log.append(frame)
	if err == nil {
		err = s.log.file.Sync()
	}
	if err == nil {
		err = s.index.apply(at, frame[frameSize:])
	}
	if err == nil {
		err = s.erase()
	}
	if err == nil && s.log.size > s.compactAt {
		err = s.compact()
	}
	return s.fail(err)
}

// encode appends the blocks of a change. Neighbours that were settled alike are one block, and so are charged ones of
// a round.
func (s *Store) encode(b []byte, c participation.Change) ([]byte, error) {
	if c.Pin != nil && s.index.pin == nil {
		b = appendPin(b, *c.Pin)
	}
	for round, hash := range c.Rounds {
		if known, found := s.index.rounds[round]; !found || known != hash {
			b = appendRound(b, round, hash)
		}
	}
	var this, next []byte
	for events := c.Events; len(events) > 0; {
		n := 1
		var err error
		if events[0].State == participation.Charged {
			for n < len(events) && events[n].State == participation.Charged && events[n].Draw.Round == events[0].Draw.Round {
				n++
			}
			b, err = s.appendCharged(b, events[:n])
		} else {
			this, err = events[0].AppendBinary(this[:0])
			for ; err == nil && n < len(events) && events[n].State != participation.Charged; n++ {
				if next, err = events[n].AppendBinary(next[:0]); !bytes.Equal(this, next) {
					break
				}
			}
			b = appendSettled(b, this, n, func(i int) participation.Key { return events[i].Key })
		}
		if err != nil {
			s.frame = b
			return nil, err
		}
		events = events[n:]
	}
	return b, nil
}

func appendPin(b []byte, pin participation.Pin) []byte {
	b = append(append(append(b, pinBlock), pin.Task[:]...), pin.Order[:]...)
	b = append(binary.AppendUvarint(b, uint64(len(pin.Source))), pin.Source...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, pin.Units), uint64(len(pin.Trials)))
	for _, n := range pin.Trials {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(pin.People)*len(participation.Key{})))
	for _, k := range pin.People {
		b = append(b, k[:]...)
	}
	return b
}

func appendRound(b []byte, round stream.Round, hash stream.Hash) []byte {
	return append(binary.AppendUvarint(append(b, roundBlock), uint64(round)), hash[:]...)
}

func appendSettled(b, record []byte, n int, key func(int) participation.Key) []byte {
	b = binary.AppendUvarint(append(b, settledBlock), uint64(len(record)))
	return appendKeys(append(b, record...), n, key)
}

// appendCharged seals events of one round under its key, which is drawn and stored where there is none yet.
func (s *Store) appendCharged(b []byte, events []participation.Record) ([]byte, error) {
	round := events[0].Draw.Round
	k := s.current[round]
	if k == nil {
		var err error
		if k, err = newRoundKey(s.folder, round); err != nil {
			return b, s.fail(err)
		}
		s.current[round], s.index.keys[k.id] = k, k
	}
	start, nonce := len(b), k.next()
	b = append(append(b, chargedBlock), k.id[:]...)
	b = appendKeys(binary.AppendUvarint(b, nonce), len(events), func(i int) participation.Key { return events[i].Key })
	b = append(b, 0, 0, 0, 0)
	text := len(b)
	for i := range events {
		at := len(b)
		var err error
		if b, err = events[i].AppendBinary(append(b, 0, 0, 0, 0)); err != nil {
			return b, err
		}
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	b = slices.Grow(b, sealOverhead)
	binary.LittleEndian.PutUint32(b[text-4:], uint32(len(b)-text+sealOverhead))
	sealed, err := k.seal(b[start:], text-start, nonce)
	return b[:start+len(sealed)], err
}

// erase gets rid of the keys of rounds of which no event is charged.
func (s *Store) erase() error {
	for id, k := range s.index.keys {
		if k.events > 0 {
			continue
		}
		if err := k.erase(s.folder); err != nil {
			return err
		}
		delete(s.index.keys, id)
		if s.current[k.round] == k {
			delete(s.current, k.round)
		}
	}
	return nil
}
