package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/filestore"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// FuzzDamagedFile: a file of participations with some bytes changed is refused, or read; it never takes the process with it.
//
// One field is left alone, the number of further pages in a page's header: bbolt walks as many as it says, up to 2^32, which
// ends after a minute or so and then is an error like the others.
func FuzzDamagedFile(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "whole.participation")
	s := open(f, path)
	pin := participation.Pin{Task: stream.Hash{1}, Source: "a"}
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
	must(f, s.Write(change))
	must(f, s.Close())
	whole, err := os.ReadFile(path)
	must(f, err)
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(4096*2+8), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint32(4096*4+16), []byte{0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		data := append([]byte(nil), whole...)
		for i, c := range change {
			at := (int(at) + i) % len(data)
			if in := at % os.Getpagesize(); in < 12 || in >= 16 {
				data[at] ^= c
			}
		}
		path := filepath.Join(t.TempDir(), "damaged.participation")
		must(t, os.WriteFile(path, data, 0o600))
		s, err := filestore.Open(path)
		if err != nil {
			return
		}
		defer s.Close()
		_, _, _ = s.Pin()
		_, _, _ = s.Manifest(1)
		_, _ = s.Read(keys)
		for _, err := range s.Charged() {
			if err != nil {
				break
			}
		}
		_ = s.Write(participation.Change{Rounds: map[stream.Round]stream.Hash{2: {3}}})
	})
}
