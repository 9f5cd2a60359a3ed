package filestore

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// raw returns the bytes of every file of a folder, one after the other.
func raw(t *testing.T, dir string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			all = append(all, data...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNothingIsLeftOfSettledCounts checks that no byte sequence of 200 reports is in the folder: while they are
// charged, when they are settled, after the log is rewritten, and after Close. Nor are keys, once their rounds are
// settled, while another round is open and keeps its own.
func TestNothingIsLeftOfSettledCounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "devices")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const reports, size = 200, 24
	var counts [][]byte
	write := func(round stream.Round, n int, settle bool) {
		t.Helper()
		var c participation.Change
		for i := range n {
			p := participation.Record{Key: participation.RowKey("a", int64(round)<<20+int64(i))}
			d := participation.Draw{Round: round, Step: stream.Step(round), Counts: make([]byte, size)}
			_, _ = rand.Read(d.Counts)
			if i%3 == 0 && !settle { // of two operators
				_, _ = rand.Read(d.Secret[:])
				counts = append(counts, bytes.Clone(d.Secret[:]))
			}
			if err := p.Join(d); err != nil {
				t.Fatal(err)
			}
			p.Sending(participation.Attempt{Number: 1}, participation.Attempts{Most: 1})
			if settle {
				p.Abandon()
			} else if counts = append(counts, bytes.Clone(d.Counts)); i%2 == 1 {
				p.Acked(participation.Attempt{Number: 1}, stream.Ack{Status: stream.Stored, Sequence: 7})
			}
			c.Events = append(c.Events, p)
			if len(c.Events) == 20 || i == n-1 {
				if err := s.Write(c); err != nil {
					t.Fatal(err)
				}
				c.Events = nil
			}
		}
	}
	found := func(data []byte) (n int) {
		for _, c := range counts {
			for at := 0; at+8 <= len(c); at += 8 { // any third of a report
				if bytes.Contains(data, c[at:at+8]) {
					n++
					break
				}
			}
		}
		return n
	}
	keys := func() (all [][]byte) {
		for _, k := range s.index.keys {
			all = append(all, bytes.Clone(k.key[:]))
		}
		return all
	}
	none := func(when string, keys [][]byte) {
		t.Helper()
		data := raw(t, dir)
		if n := found(data); n > 0 {
			t.Errorf("%s: %d of %d reports", when, n, len(counts))
		}
		for _, k := range keys {
			if bytes.Contains(data, k) || bytes.Contains(data, k[:8]) || bytes.Contains(data, k[24:]) {
				t.Errorf("%s: the key of a settled round", when)
			}
		}
	}
	write(1, reports/2, false)
	write(2, reports/2, false)
	settled := keys()
	if len(settled) != 2 || !bytes.Contains(raw(t, dir), settled[0]) || !bytes.Contains(raw(t, dir), settled[1]) {
		t.Fatalf("the scan misses the %d keys of open rounds", len(settled))
	}
	none("charged", nil)
	write(3, 1, false)
	write(1, reports/2, true)
	write(2, reports/2, true)
	none("settled", settled)
	if n := len(keys()); n != 1 {
		t.Errorf("%d keys, want that of the open round", n)
	}
	s.compactAt = 0
	write(4, 1, true)
	none("written anew", settled)
	write(3, 1, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	none("closed", settled)

	// The scan finds what a writer leaves that does not encrypt.
	var p participation.Record
	if err := p.Join(participation.Draw{Round: 5, Counts: counts[17]}); err != nil {
		t.Fatal(err)
	}
	data, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "planted"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := found(raw(t, dir)); n != 1 {
		t.Errorf("the scan finds %d reports, want the one that stands there", n)
	}
}

// A key is zeros on the disk before its file is removed, and in the memory of a process that read it.
func TestKeysAreZerosWhenTheyGo(t *testing.T) {
	for seed := range uint64(20) {
		d := newFaulty(seed)
		drawn := map[*roundKey]bool{}
		for life := range 4 {
			s, err := openStore(d)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				p := participation.Record{Key: participation.Key{byte(i + 1)}, State: participation.Charged, Rounds: 1}
				p.Draw.Round, p.Draw.Counts = stream.Round(1+life), []byte("counts")
				if i == 2 {
					p = participation.Record{Key: participation.Key{1}, State: participation.Counted, Rounds: 1,
						Draw: participation.Draw{Round: stream.Round(1 + life)}}
				}
				if err := s.Write(participation.Change{Events: []participation.Record{p}}); err != nil {
					t.Fatal(err)
				}
				for _, k := range s.index.keys {
					drawn[k] = true
				}
			}
			d.killed()
		}
		s, err := openStore(d)
		if err != nil {
			t.Fatal(err)
		}
		settled := participation.Record{Key: participation.Key{2}, State: participation.Unknown, Rounds: 1,
			Draw: participation.Draw{Round: 4}}
		for _, k := range s.index.keys {
			drawn[k] = true
		}
		if err := s.Write(participation.Change{Events: []participation.Record{settled}}); err != nil {
			t.Fatal(err)
		}
		if len(d.removed) != 4 || len(s.index.keys) != 0 {
			t.Fatalf("%d files removed, %d keys left, want those of 4 rounds and none", len(d.removed), len(s.index.keys))
		}
		for name, data := range d.removed {
			if len(data) != keyFileSize || len(bytes.Trim(data, "\x00")) != 0 {
				t.Errorf("%s went with what it held", name)
			}
		}
		for k := range drawn {
			if _, open := d.removed[k.id.file()]; open && k.round == 0 && k.key != [32]byte{} {
				t.Error("a key is in memory")
			}
		}
	}
}

// TestNoncesNeverRepeat: neither in a process nor in one that goes on with the log of another, whose last frames may
// be lost, is a key used with a nonce twice.
func TestNoncesNeverRepeat(t *testing.T) {
	d := newFaulty(1)
	type use struct {
		id    keyID
		nonce uint64
	}
	seen := map[use][]byte{}
	for range 20 {
		s, err := openStore(d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			p := participation.Record{Key: participation.Key{byte(i + 1)}, State: participation.Charged, Rounds: 1}
			p.Draw.Round, p.Draw.Counts = stream.Round(1+i/2), []byte("counts")
			if i == 2 {
				d.left = 1 // written, and not synced
			}
			if err := s.Write(participation.Change{Events: []participation.Record{p}}); err != nil {
				break
			}
		}
		d.left = -1
		for _, data := range d.written {
			if len(data) > frameSize && data[frameSize] == chargedBlock {
				r := reader{data: data[frameSize:], all: data[frameSize:]}
				r.byte()
				u := use{keyID(r.take(16)), r.number()}
				if before := seen[u]; before != nil && !bytes.Equal(before, data) { // the same frame may be written again
					t.Fatal("a nonce comes again")
				}
				seen[u] = data
			}
		}
		d.written = nil
		d.crash()
	}
	if len(seen) < 40 {
		t.Errorf("%d blocks seen", len(seen))
	}
}
