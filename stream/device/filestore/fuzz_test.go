package filestore

import (
	"encoding/binary"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// FuzzSegment: a log with whatever behind its header, also with checksums that hold, is refused, or read and written
// to; it never takes the process with it.
func FuzzSegment(f *testing.F) {
	d := newFaulty(1)
	s, err := openStore(d)
	if err != nil {
		f.Fatal(err)
	}
	pin := participation.Pin{Task: stream.Hash{1}, Source: "a", Units: 300, Trials: []uint64{1 << 20, 2},
		People: []participation.Key{{1}, {2}}}
	change := participation.Change{Pin: &pin, Rounds: map[stream.Round]stream.Hash{1: {2}}}
	var keys []participation.Key
	for i := range int64(20) {
		p := participation.Record{Key: participation.RowKey("a", i), Rounds: 1}
		keys = append(keys, p.Key)
		p.State, p.Draw.Round, p.Draw.Manifest, p.Draw.Counts = participation.Charged, 1, stream.Hash{2}, []byte("counts")
		if i%2 == 0 {
			p.State, p.Draw.Counts = participation.Counted, nil
		}
		change.Events = append(change.Events, p)
	}
	if err := s.Write(change); err != nil {
		f.Fatal(err)
	}
	log := name(1, logSuffix)
	whole := d.names[log].disk
	keyFile := keyIDs(must(d.Names()))[0].file()
	key := d.names[keyFile].disk
	first := whole[headerSize+frameSize:]
	f.Add(true, first)
	f.Add(true, first[:100])
	f.Add(false, whole[headerSize:])
	f.Add(false, append(whole[headerSize:len(whole)-9:len(whole)-9], whole[headerSize:]...))
	f.Fuzz(func(t *testing.T, framed bool, data []byte) {
		if framed {
			s := segment{id: [8]byte(whole[len(magic)+kindBytes+1:]), size: int64(headerSize)}
			head := binary.LittleEndian.AppendUint32(mark[:], uint32(len(data)))
			data = append(binary.LittleEndian.AppendUint32(head, s.sum(s.size, data)), data...)
		}
		again := newFaulty(1)
		again.names[log] = &inode{now: append(whole[:headerSize:headerSize], data...)}
		again.names[keyFile] = &inode{now: append([]byte(nil), key...)}
		s, err := openStore(again)
		if err != nil {
			return
		}
		_, _ = s.Read(keys)
		for _, err := range s.Charged() {
			if err != nil {
				return // a block that does not decrypt
			}
		}
		if err := s.Write(participation.Change{Rounds: map[stream.Round]stream.Hash{2: {3}}}); err != nil {
			t.Errorf("read, and not written to: %v", err)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
