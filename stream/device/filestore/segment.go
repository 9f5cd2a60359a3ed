package filestore

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// errDamaged means that a file does not hold what was written. Nothing in it may be trusted then: an event may
// have taken part and look fresh.
var errDamaged = errors.New("the file is damaged")

// ErrRestart is in every answer after a write that failed: who takes part is known when the folder is opened again.
var ErrRestart = errors.New("an earlier write failed, and what is stored is known after a restart alone")

// formatVersion is the version of all files of this package.
const formatVersion = 1

// A segment is a file of frames, each written at once and synced before the next:
//
//	header   "panlearn", kind (15 bytes, zeros at its end), version (1 byte), id (8 random bytes), CRC-32C of these
//	frames   mark (4 bytes), length of the payload, CRC-32C (4 bytes each, little endian), payload
//
// The CRC of a frame is over id, offset and length as 64-bit numbers, and payload: bytes of another file, or of another
// place, are no frame. Only the last frame can be torn, by a process or machine that died in the middle of its write,
// before the write was acknowledged: all earlier frames were synced.
type segment struct {
	file file
	id   [8]byte
	size int64 // of header and whole frames
}

const (
	magic      = "panlearn"
	kindBytes  = 15
	headerSize = len(magic) + kindBytes + 1 + 8 + 4
	frameSize  = 12      // before the payload
	maxPayload = 1 << 30 // bytes
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	mark       = [4]byte{0xd5, 'l', 'o', 'g'}
)

// createSegment makes a segment without frames. It is not synced.
func createSegment(in folder, name, kind string) (*segment, error) {
	f, err := in.Create(name)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f, size: int64(headerSize)}
	_, _ = rand.Read(s.id[:]) // never fails: it ends the process instead
	if _, err := f.WriteAt(header(kind, formatVersion, s.id), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func header(kind string, version byte, id [8]byte) []byte {
	b := make([]byte, len(magic)+kindBytes, headerSize)
	copy(b[copy(b, magic):], kind)
	b = append(append(b, version), id[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// openSegment opens a segment and hands over its frames as next does. A torn frame is cut off, and what is left is
// durable when it returns.
func openSegment(in folder, name, kind string, each func(at int64, payload []byte) error) (*segment, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f, size: int64(headerSize)}
	if err := s.check(kind); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	last := s.size
	err = s.next(func(at int64, payload []byte) error {
		last = at - frameSize
		return each(at, payload)
	})
	if err == nil {
		err = s.again(last)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// again writes the last frame, which begins at byte last, once more, before anything is done that follows from it:
// its writer may have died before the frame was on the disk, or have seen a sync fail, after which some systems
// take for stored what is not.
func (s *segment) again(last int64) error {
	frame := make([]byte, s.size-last)
	if n, err := s.file.ReadAt(frame, last); n < len(frame) {
		return err
	}
	_, err := s.file.WriteAt(frame, last)
	return err
}

// check reads the header.
func (s *segment) check(kind string) error {
	b := make([]byte, headerSize)
	switch n, err := s.file.ReadAt(b, 0); {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case n < len(b), string(b[:len(magic)]) != magic:
		return errors.New("is a file of another kind")
	}
	if found := string(bytes.TrimRight(b[len(magic):len(magic)+kindBytes], "\x00")); found != kind {
		return fmt.Errorf("is a file of another kind: of %q, want %q", found, kind)
	}
	version := b[len(magic)+kindBytes]
	if version != formatVersion {
		return fmt.Errorf("format version %d: this program reads %d: use the program that wrote it or a newer one", version,
			formatVersion)
	}
	copy(s.id[:], b[len(magic)+kindBytes+1:])
	if !bytes.Equal(b, header(kind, version, s.id)) {
		return fmt.Errorf("%w in its header", errDamaged)
	}
	return nil
}

// next hands over the payloads of the frames behind those that were read, and where each begins; a payload is valid
// until the next. A frame that is torn is cut off; one that is damaged, with whole ones behind it, is an error.
func (s *segment) next(each func(at int64, payload []byte) error) error {
	size, err := s.file.Size()
	if err != nil || size == s.size {
		return err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, s.size, size-s.size), 1<<20)
	var payload []byte
	for s.size < size {
		var head [frameSize]byte
		n := int64(-1)
		if size-s.size >= frameSize {
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return err
			}
			n = frameLength(head, size-s.size)
		}
		if n < 0 {
			return s.cut(size)
		}
		payload = append(payload[:0], make([]byte, n)...)
		if _, err := io.ReadFull(r, payload); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(head[8:]) != s.sum(s.size, payload) {
			return s.cut(size)
		}
		if err := each(s.size+frameSize, payload); err != nil {
			return err
		}
		s.size += frameSize + n
	}
	return nil
}

// frameLength returns the payload length in bytes of a frame that begins with head, or -1 if it is no frame. left
// is the number of bytes that the file has for both.
func frameLength(head [frameSize]byte, left int64) int64 {
	n := int64(binary.LittleEndian.Uint32(head[4:]))
	if [4]byte(head[:]) != mark || n > maxPayload || n > left-frameSize {
		return -1
	}
	return n
}

// cut removes a torn frame: what lies behind the whole ones, and is short, or has a hole where a sector was never
// written, for the file grew by it. Anything else happened to a frame that was whole once, and so did whatever left
// whole ones behind it.
func (s *segment) cut(size int64) error {
	rest := make([]byte, size-s.size)
	if n, err := s.file.ReadAt(rest, s.size); n < len(rest) {
		return err
	}
	torn := len(rest) < frameSize || holed(rest, s.size)
	if !torn {
		head := [frameSize]byte(rest)
		torn = [4]byte(head[:]) == mark && frameLength(head, int64(len(rest))) < 0
	}
	for i := 1; torn && i < len(rest); i++ {
		n := bytes.Index(rest[i:], mark[:])
		if n < 0 || len(rest)-i-n < frameSize {
			break
		}
		i += n
		head := [frameSize]byte(rest[i:])
		length := frameLength(head, int64(len(rest)-i))
		torn = length < 0 || binary.LittleEndian.Uint32(head[8:]) != s.sum(s.size+int64(i), rest[i+frameSize:][:length])
	}
	if !torn {
		return fmt.Errorf(
			"%w at byte %d: its disk lost or changed what was written, and what was sent is not known any more; do not restore it "+
				"from a backup, which has forgotten more: keep these users out of the task", errDamaged, s.size)
	}
	return errors.Join(s.file.Truncate(s.size), s.file.Sync())
}

// holed reports whether data, which begins at byte at of the file, holds nothing but zeros in some sector, or in
// the part of a sector that lies in it.
func holed(data []byte, at int64) bool {
	const sector = 512
	for len(data) > 0 {
		n := min(len(data), sector-int(at%sector))
		if len(bytes.TrimLeft(data[:n], "\x00")) == 0 {
			return true
		}
		data, at = data[n:], at+int64(n)
	}
	return false
}

func (s *segment) sum(at int64, payload []byte) uint32 {
	var b [24]byte
	copy(b[:], s.id[:])
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	binary.LittleEndian.PutUint64(b[16:], uint64(len(payload)))
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, payload)
}

// append writes a frame without syncing it; the payload begins at byte frameSize of frame. It returns the payload's
// offset in the file.
func (s *segment) append(frame []byte) (at int64, err error) {
	payload := frame[frameSize:]
	if len(payload) > maxPayload {
		return 0, fmt.Errorf("a frame of %d bytes: want at most %d", len(payload), maxPayload)
	}
	copy(frame, mark[:])
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[8:], s.sum(s.size, payload))
	if _, err := s.file.WriteAt(frame, s.size); err != nil {
		return 0, err
	}
	at = s.size + frameSize
	s.size += int64(len(frame))
	return at, nil
}
