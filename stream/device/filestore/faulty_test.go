package filestore

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
)

var errFault = errors.New("fault")

// A faulty is a folder in memory that fails at one of its operations, and of which a crash leaves what was synced, and
// of the rest what it likes: sectors of writes, and names, each or not, in any order.
type faulty struct {
	rng     *rand.Rand
	names   map[string]*inode // as the process sees them
	synced  map[string]*inode // as they are on the disk
	left    int               // operations until one fails; negative: none does
	held    bool
	written [][]byte          // all that was ever handed to a file
	removed map[string][]byte // what the disk holds of files whose names are gone
}

type inode struct {
	now     []byte  // as the process sees it
	disk    []byte  // as it is on the disk
	pending []write // since the last sync
}

// A write of data at some place, or with no data the file cut there.
type write struct {
	at   int64
	data []byte
}

func newFaulty(seed uint64) *faulty {
	return &faulty{rng: rand.New(rand.NewPCG(seed, 1)), names: map[string]*inode{}, synced: map[string]*inode{},
		removed: map[string][]byte{}, left: -1}
}

// fault counts an operation, and reports whether it fails.
func (d *faulty) fault() error {
	if d.left < 0 {
		return nil
	}
	if d.left--; d.left < 0 {
		return errFault
	}
	return nil
}

const sector = 512

func (f *inode) apply(to []byte, w write) []byte {
	if w.data == nil {
		return to[:min(int64(len(to)), w.at)]
	}
	if end := w.at + int64(len(w.data)); end > int64(len(to)) {
		to = append(to, make([]byte, end-int64(len(to)))...)
	}
	copy(to[w.at:], w.data)
	return to
}

// lose has some of what was not synced reach the disk.
func (d *faulty) lose(f *inode) {
	for _, w := range f.pending {
		if w.data == nil {
			if d.rng.IntN(2) == 0 {
				f.disk = f.apply(f.disk, w)
			}
			continue
		}
		whole := d.rng.IntN(3)
		for at, data := w.at, w.data; len(data) > 0; {
			n := min(len(data), sector-int(at%sector))
			if whole == 0 || (whole == 1 && d.rng.IntN(2) == 0) {
				f.disk = f.apply(f.disk, write{at, data[:n]})
			}
			at, data = at+int64(n), data[n:]
		}
	}
	f.pending = nil
}

// crash ends the machine: another process finds only what is on the disk.
func (d *faulty) crash() {
	var inodes []*inode // in one order, so that a seed means one crash
	for _, all := range []map[string]*inode{d.names, d.synced} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if f := all[name]; !slices.Contains(inodes, f) {
				inodes = append(inodes, f)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(union(d.names, d.synced))) {
		if d.names[name] != d.synced[name] && d.rng.IntN(2) == 0 {
			set(d.synced, name, d.names[name])
		}
	}
	for _, f := range inodes {
		d.lose(f)
		f.now = bytes.Clone(f.disk)
	}
	d.names = maps.Clone(d.synced)
	d.killed()
}

// killed ends the process: another one finds what it wrote.
func (d *faulty) killed() { d.left, d.held = -1, false }

func union(a, b map[string]*inode) map[string]*inode {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func set(names map[string]*inode, name string, f *inode) {
	if f == nil {
		delete(names, name)
		return
	}
	names[name] = f
}

func (d *faulty) Names() ([]string, error) {
	return slices.Sorted(maps.Keys(d.names)), d.fault()
}

func (d *faulty) Create(name string) (file, error) {
	if err := d.fault(); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, fs.ErrExist
	}
	d.names[name] = &inode{}
	return faultyFile{d, d.names[name]}, nil
}

func (d *faulty) Open(name string) (file, error) {
	if err := d.fault(); err != nil {
		return nil, err
	}
	if d.names[name] == nil {
		return nil, fs.ErrNotExist
	}
	return faultyFile{d, d.names[name]}, nil
}

func (d *faulty) Rename(from, to string) error {
	if err := d.fault(); err != nil {
		if d.rng.IntN(2) == 0 {
			return err
		}
		defer func() { d.left = -1 }()
		d.names[to] = d.names[from] // and yet it happened
		delete(d.names, from)
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *faulty) Remove(name string) error {
	if err := d.fault(); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	d.removed[name] = bytes.Clone(d.names[name].disk)
	delete(d.names, name)
	return nil
}

func (d *faulty) Sync() error {
	if err := d.fault(); err != nil {
		return err
	}
	d.synced = maps.Clone(d.names)
	return nil
}

func (d *faulty) Lock(time.Duration) (func() error, error) {
	if d.held {
		return nil, disk.ErrHeld
	}
	d.held = true
	return func() error { d.held = false; return nil }, nil
}

type faultyFile struct {
	d *faulty
	f *inode
}

func (f faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.d.fault(); err != nil {
		return 0, err
	}
	if at >= int64(len(f.f.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.f.now[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f faultyFile) WriteAt(b []byte, at int64) (int, error) {
	err := f.d.fault()
	if err != nil { // the disk is full in the middle of it
		b = b[:f.d.rng.IntN(len(b)+1)]
	}
	if len(b) > 0 {
		w := write{at, bytes.Clone(b)}
		f.f.now = f.f.apply(f.f.now, w)
		f.f.pending = append(f.f.pending, w)
		f.d.written = append(f.d.written, w.data)
	}
	return len(b), err
}

func (f faultyFile) Truncate(size int64) error {
	if err := f.d.fault(); err != nil {
		return err
	}
	w := write{at: size}
	f.f.now = f.f.apply(f.f.now, w)
	f.f.pending = append(f.f.pending, w)
	return nil
}

func (f faultyFile) Sync() error {
	if err := f.d.fault(); err != nil {
		f.d.lose(f.f) // what did not reach the disk is not tried again
		return err
	}
	for _, w := range f.f.pending {
		f.f.disk = f.f.apply(f.f.disk, w)
	}
	f.f.pending = nil
	return nil
}

func (f faultyFile) Size() (int64, error) { return int64(len(f.f.now)), f.d.fault() }
func (f faultyFile) Close() error         { return nil }
