package filestore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// LedgerName is the file of a state folder's ledger.
const LedgerName = "ledger"

// ledgerWait bounds the wait of one operation for the other processes of a state folder, each of which holds the
// ledger for one write at a time.
const ledgerWait = 30 * time.Second

const (
	ledgerKind    = "ledger"
	ledgerLock    = LedgerName + ".lock"
	ledgerTmp     = LedgerName + tmpSuffix
	ledgerCompact = 1 << 20 // bytes by which a ledger grows, beyond its former size, before it is rewritten
)

// A Ledger is a ledger.Ledger in a file of a state folder: a segment whose frames are
//
//	clock (milliseconds since 1970, 8 bytes, big endian), and accounts that changed: key (16 bytes, zero for everyone), length, record
//
// It holds the file only while it works on it, so that several publishers of different tasks share one, and reads then
// what the others wrote since. Every write is synced before Update returns.
type Ledger struct {
	mu       sync.Mutex
	folder   folder
	path     string
	log      segment // without its file, which is open only meanwhile; its size is what was read
	clock    time.Time
	accounts map[participation.Key][]ledger.Charge
	base     int64 // size in bytes when it was last rewritten
	failed   error // set: every later call fails with it
}

var _ ledger.Ledger = (*Ledger)(nil)

// OpenLedger opens the ledger of a state folder, or makes both (modes 0600 and 0700). It refuses a file of another
// format and one that others may read.
func OpenLedger(dir string) (*Ledger, error) {
	l := newLedger(dir)
	err := disk.MakeFolder(dir)
	if err == nil {
		err = l.create()
	}
	if err == nil {
		err = l.with(func() error { return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", l.path, err)
	}
	return l, nil
}

// ReadLedger opens a ledger that is there, for reading; the error is fs.ErrNotExist where it is not.
func ReadLedger(dir string) (*Ledger, error) {
	l := newLedger(dir)
	if _, err := os.Stat(l.path); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if err := l.with(func() error { return nil }); err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", l.path, err)
	}
	return l, nil
}

func newLedger(dir string) *Ledger {
	return &Ledger{folder: osFolder{dir, ledgerLock}, path: filepath.Join(dir, LedgerName),
		accounts: make(map[participation.Key][]ledger.Charge)}
}

// create makes the file where there is none.
func (l *Ledger) create() (err error) {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f, err := l.folder.Open(LedgerName)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.compact()
}

func (l *Ledger) lock() (unlock func() error, err error) {
	unlock, err = l.folder.Lock(ledgerWait)
	if errors.Is(err, disk.ErrHeld) {
		err = fmt.Errorf("%w: it may be stopped in the middle of a write", err)
	}
	return unlock, err
}

// with holds the file while f works on it, which knows what all processes wrote.
func (l *Ledger) with(f func() error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if l.log.file, err = l.folder.Open(LedgerName); err != nil {
		return err // an empty one in its place would have forgotten what was spent
	}
	err = l.catchUp()
	if err == nil {
		err = f()
	}
	if l.log.file != nil {
		err = errors.Join(err, l.log.file.Close())
	}
	return err
}

// catchUp reads what was written since this process read last.
func (l *Ledger) catchUp() error {
	now := segment{file: l.log.file}
	if err := now.check(ledgerKind); err != nil {
		return err
	}
	before := l.clock
	if now.id != l.log.id { // another process has rewritten it, or this one has not read it yet
		now.size, l.base = int64(headerSize), 0
		l.log, l.clock = now, time.Time{}
		clear(l.accounts)
	}
	size, err := l.log.file.Size()
	if err != nil {
		return err
	}
	last, known := l.log.size, l.log.size
	err = l.log.next(func(at int64, payload []byte) error {
		last = at - frameSize
		return l.apply(payload)
	})
	if err != nil {
		return err
	}
	if size < known || l.clock.Before(before) {
		l.failed = errors.New("it went back to an older copy while it was in use: what was spent since is forgotten in it")
		return l.failed
	}
	l.base = cmp.Or(l.base, l.log.size)
	if l.log.size == known {
		return nil
	}
	return l.log.again(last) // durable with the next write, before which nothing follows from it
}

// apply takes a frame.
func (l *Ledger) apply(payload []byte) error {
	r := reader{data: payload}
	clock := binary.BigEndian.Uint64(r.take(8))
	if clock > math.MaxInt64 {
		return fmt.Errorf("%w: its clock", errDamaged)
	}
	for len(r.data) > 0 && !r.bad {
		a := ledger.Account{Key: participation.Key(r.take(len(participation.Key{})))}
		if err := a.UnmarshalBinary(r.take(r.length())); err != nil {
			return err
		}
		l.accounts[a.Key] = a.Charges
	}
	if r.bad {
		return errBlock
	}
	if clock != noClock {
		l.clock = time.UnixMilli(int64(clock)).UTC()
	}
	return nil
}

// noClock marks a clock that was never told: no time is as late.
const noClock = math.MaxInt64

// encode appends a frame of accounts.
func (l *Ledger) encode(frame []byte, now time.Time, keys iter.Seq2[participation.Key, []ledger.Charge]) ([]byte,
	error) {
	clock := uint64(noClock)
	if !now.IsZero() {
		clock = uint64(now.UnixMilli())
	}
	frame = binary.BigEndian.AppendUint64(frame, clock)
	for k, charges := range keys {
		data, err := ledger.Account{Charges: charges}.MarshalBinary()
		if err != nil {
			return nil, err
		}
		frame = append(binary.AppendUvarint(append(frame, k[:]...), uint64(len(data))), data...)
	}
	return frame, nil
}

// Update implements ledger.Ledger.
func (l *Ledger) Update(clock time.Time, accounts []participation.Key,
	edit func(time.Time, [][]ledger.Charge) error) error {
	var refused error // of edit, answered as it is
	err := l.with(func() error {
		now := ledger.LaterOf(l.clock, clock)
		if now.UnixMilli() < 0 {
			return fmt.Errorf("the clock says %v: want 1970 or later", clock)
		}
		charges := make([][]ledger.Charge, len(accounts))
		for i, k := range accounts {
			charges[i] = slices.Clone(l.accounts[k])
		}
		if refused = edit(now, charges); refused != nil {
			if now.Equal(l.clock) {
				return nil // nothing to write
			}
			charges = nil
		}
		frame, err := l.encode(make([]byte, frameSize, 512), now, func(yield func(participation.Key, []ledger.Charge) bool) {
			for i, c := range charges {
				if !yield(accounts[i], c) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		if err := l.write(frame); err != nil {
			l.failed = fmt.Errorf("%w: %w", ErrRestart, err)
			return err
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

// write appends a frame, durably, and rewrites the file if it has grown much.
func (l *Ledger) write(frame []byte) error {
	if _, err := l.log.append(frame); err != nil {
		return err
	}
	if err := l.log.file.Sync(); err != nil {
		return err
	}
	if err := l.apply(frame[frameSize:]); err != nil {
		return err
	}
	if l.log.size < 2*l.base+ledgerCompact {
		return nil
	}
	f := l.log.file
	l.log.file = nil
	if err := f.Close(); err != nil { // or some systems would not replace it
		return err
	}
	return l.compact()
}

// compact writes the accounts as they are into a new file that takes the place of the old one at once.
func (l *Ledger) compact() error {
	if err := l.folder.Remove(ledgerTmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that died
		return err
	}
	next, err := createSegment(l.folder, ledgerTmp, ledgerKind)
	if err != nil {
		return err
	}
	var frame []byte
	if len(l.accounts) > 0 || !l.clock.IsZero() {
		frame, err = l.encode(make([]byte, frameSize), l.clock, maps.All(l.accounts))
		if err == nil {
			_, err = next.append(frame)
		}
	}
	if err == nil {
		err = next.file.Sync()
	}
	if err = errors.Join(err, next.file.Close()); err != nil {
		return err
	}
	if err := l.folder.Rename(ledgerTmp, LedgerName); err != nil {
		return err
	}
	next.file = nil
	l.log, l.base = *next, next.size
	return l.folder.Sync()
}

// Accounts implements ledger.Ledger.
func (l *Ledger) Accounts() iter.Seq2[ledger.Account, error] {
	return func(yield func(ledger.Account, error) bool) {
		var all []ledger.Account
		err := l.with(func() error {
			for k, charges := range l.accounts {
				all = append(all, ledger.Account{Key: k, Charges: slices.Clone(charges)})
			}
			return nil
		})
		if err != nil {
			yield(ledger.Account{}, fmt.Errorf("read ledger %s: %w", l.path, err))
			return
		}
		slices.SortFunc(all, func(a, b ledger.Account) int { return slices.Compare(a.Key[:], b.Key[:]) }) // Everyone is zero
		for _, a := range all {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// Clock implements ledger.Ledger.
func (l *Ledger) Clock() (now time.Time, err error) {
	err = l.with(func() error { now = l.clock; return nil })
	if err != nil {
		return time.Time{}, fmt.Errorf("read ledger %s: %w", l.path, err)
	}
	return now, nil
}
