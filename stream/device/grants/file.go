package grants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A file begins with its magic bytes; then come entries, of which the last one of a key counts.
//
//	kind       1 byte: 1 drawn, 2 signed
//	key        16 bytes
//	request    64 bytes: nonce, and seed of salt and blinding factor
//	signature  256 bytes, of signed
//	checksum   4 bytes, CRC-32C of all of it, big endian
const (
	fileKind  = "panlearn grants v"
	fileMagic = fileKind + "1\n"
	drawn     = 1
	signed    = 2
	drawnSize = 1 + 16 + 64 + 4
)

// lockWait bounds the wait for another process to let go of the file.
const lockWait = time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged means that the bytes of a file are not what was written.
var errDamaged = errors.New("damaged: these people may have their token, and this device has lost it")

// errOther means that a file has the format of another version.
var errOther = errors.New("was written by another version of panlearn: use that one, and change nothing in it; " +
	"docs/how-to/upgrades.md has the way back")

// A FileStore is a Store in a file that one process holds. Each Write is appended and synced. It holds about 450 bytes
// a person in memory. The file and the issuer's list together reveal to whom each token belongs: keep the file on the
// device.
type FileStore struct {
	MemoryStore
	file   *os.File
	unlock func() error
	failed error // guarded by mu: it writes nothing more
}

// Path returns the path of a task's grants in a state folder.
func Path(dir string, task stream.Task) string { return filepath.Join(dir, string(task)+".grants") }

// Open opens a file, or makes it and the folders above it. An entry that a crash tore at its end is cut off: the issuer was
// not asked for it.
func Open(path string) (*FileStore, error) {
	if err := disk.MakeFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	unlock, err := disk.LockWithin(path+".lock", lockWait)
	if err != nil {
		return nil, fmt.Errorf("grants %s: %w", path, err)
	}
	s := &FileStore{MemoryStore: MemoryStore{all: map[participation.Key]Grant{}}, unlock: unlock}
	if err := s.open(path); err != nil {
		return nil, errors.Join(fmt.Errorf("grants %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *FileStore) open(path string) (err error) {
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	all, err := io.ReadAll(s.file)
	if err != nil {
		return err
	}
	if len(all) < len(fileMagic) && bytes.HasPrefix([]byte(fileMagic), all) {
		_, err = s.file.WriteAt([]byte(fileMagic), 0)
		return errors.Join(err, s.file.Sync(), disk.SyncFolder(filepath.Dir(path)), s.end(int64(len(fileMagic))))
	}
	if !bytes.HasPrefix(all, []byte(fileMagic)) && bytes.HasPrefix(all, []byte(fileKind)) {
		return errOther
	}
	if !bytes.HasPrefix(all, []byte(fileMagic)) {
		return errDamaged
	}
	at := len(fileMagic)
	for at < len(all) {
		g, size, ok := decode(all[at:])
		if !ok {
			if whole := drawnSize + grant.SignatureSize; len(all)-at > whole { // more than one entry can be torn
				return errDamaged
			}
			break
		}
		s.all[g.Key] = g
		at += size
	}
	return errors.Join(s.file.Truncate(int64(at)), s.file.Sync(), s.end(int64(at)))
}

func (s *FileStore) end(at int64) error {
	_, err := s.file.Seek(at, io.SeekStart)
	return err
}

// decode reads one entry.
func decode(b []byte) (g Grant, size int, ok bool) {
	if len(b) < drawnSize {
		return g, 0, false
	}
	switch size = drawnSize; b[0] {
	case signed:
		size += grant.SignatureSize
	case drawn:
	default:
		return g, 0, false
	}
	if len(b) < size || crc32.Checksum(b[:size-4], castagnoli) != binary.BigEndian.Uint32(b[size-4:]) {
		return g, 0, false
	}
	g.Drawn = true
	copy(g.Key[:], b[1:])
	copy(g.Request.Nonce[:], b[17:])
	copy(g.Request.Blind[:], b[49:])
	if b[0] == signed {
		g.Token = append(bytes.Clone(g.Request.Nonce[:]), b[81:81+grant.SignatureSize]...)
	}
	return g, size, true
}

// Write implements Store.
func (s *FileStore) Write(all []Grant) error {
	var b []byte
	for _, g := range all {
		from, kind := len(b), byte(drawn)
		if g.Token != nil {
			kind = signed
		}
		b = append(b, kind)
		b = append(append(append(b, g.Key[:]...), g.Request.Nonce[:]...), g.Request.Blind[:]...)
		if g.Token != nil {
			b = append(b, g.Token[grant.NonceSize:]...)
		}
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if _, err := s.file.Write(b); err != nil {
		s.failed = fmt.Errorf("write grants: %w", err)
		return s.failed
	}
	if err := s.file.Sync(); err != nil {
		s.failed = fmt.Errorf("write grants: %w", err)
		return s.failed
	}
	for _, g := range all {
		s.all[g.Key] = g
	}
	return nil
}

// Close lets another process open the file.
func (s *FileStore) Close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
	}
	return errors.Join(err, s.unlock())
}
