package filestore

import (
	"bytes"
	"errors"
	"slices"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// A log is compacted when it has grown by so many bytes, and by some more for each event, each of which a compaction
// sorts and writes: it is a fraction of the work that led to it.
const (
	compactAfter    = 16 << 20
	compactPerEvent = 128
	compactKeys     = 1 << 16 // of one frame
)

// due returns the size in bytes at which a log is compacted that had this size before.
func (s *Store) due(size int64) int64 {
	return size + compactAfter + compactPerEvent*int64(len(s.index.events))
}

// compact writes the state that still counts into a new log: pin, rounds, the blocks with charged events as they are,
// and the settled events, by key. The new log is whole and durable before it has a log's name, and its name is durable
// before the old log is removed.
func (s *Store) compact() error {
	next, err := createSegment(s.folder, name(s.generation+1, tmpSuffix), participationKind)
	if err != nil {
		return err
	}
	err = s.copyTo(next)
	if err == nil {
		err = next.file.Sync()
	}
	if err = errors.Join(err, next.file.Close()); err != nil { // closed, or some systems would not rename it
		return err
	}
	if err := s.folder.Rename(name(s.generation+1, tmpSuffix), name(s.generation+1, logSuffix)); err != nil {
		return err
	}
	if err := s.folder.Sync(); err != nil {
		return err
	}
	old := s.log
	if next.file, err = s.folder.Open(name(s.generation+1, logSuffix)); err != nil {
		return err
	}
	s.log = next
	s.generation++
	s.compactAt = s.due(next.size)
	if old == nil {
		return nil
	}
	if err := old.file.Close(); err != nil {
		return err
	}
	return s.folder.Remove(name(s.generation-1, logSuffix))
}

// copyTo appends all that is true to a new log. The blocks that it copies are looked for there from then on.
func (s *Store) copyTo(next *segment) error {
	frame := make([]byte, frameSize)
	flush := func() (at int64, err error) {
		if len(frame) > frameSize {
			at, err = next.append(frame)
			frame = frame[:frameSize]
		}
		return at, err
	}
	if s.index.pin != nil {
		frame = appendPin(frame, *s.index.pin)
	}
	for round, hash := range s.index.rounds {
		frame = appendRound(frame, round, hash)
	}
	if _, err := flush(); err != nil {
		return err
	}
	blocks := s.index.inOrder()
	places := make([]int64, len(blocks))
	for i, b := range blocks {
		data, err := s.read(b)
		if err != nil {
			return err
		}
		frame = append(frame, data...)
		if places[i], err = flush(); err != nil {
			return err
		}
	}
	keys := make([][]participation.Key, len(s.index.records))
	for k, n := range s.index.events {
		if n < firstBlock {
			keys[n] = append(keys[n], k)
		}
	}
	for data, place := range s.index.places {
		slices.SortFunc(keys[place], func(a, b participation.Key) int { return bytes.Compare(a[:], b[:]) })
		for some := range slices.Chunk(keys[place], compactKeys) {
			frame = appendSettled(frame, []byte(data), len(some), func(i int) participation.Key { return some[i] })
			if len(frame) >= 1<<20 {
				if _, err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if _, err := flush(); err != nil {
		return err
	}
	for i, b := range blocks {
		b.at = places[i]
	}
	return nil
}
