package filestore

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// told returns everything that a store returns.
func told(t *rapid.T, s participation.Store, keys []participation.Key) string {
	var out strings.Builder
	pin, found, err := s.Pin()
	fmt.Fprintln(&out, pin, found, err)
	for r := range stream.Round(5) {
		hash, found, err := s.Manifest(r)
		fmt.Fprintln(&out, hash, found, err)
	}
	records, err := s.Read(keys)
	if err != nil {
		t.Fatal(err)
	}
	var charged []participation.Record
	for p, err := range s.Charged() {
		if err != nil {
			t.Fatal(err)
		}
		charged = append(charged, p)
	}
	slices.SortFunc(charged, func(a, b participation.Record) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	for _, p := range append(records, charged...) {
		data, err := p.MarshalBinary()
		if err != nil && p.State != participation.Fresh {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%x %x\n", p.Key[:], data)
	}
	return out.String()
}

// change draws a change of any kind, with neighbours that are alike and a key that comes twice.
func change(t *rapid.T, keys []participation.Key) (c participation.Change) {
	if rapid.Bool().Draw(t, "pin") {
		c.Pin = &participation.Pin{Task: stream.Hash{rapid.Byte().Draw(t, "task")}, Source: rapid.String().Draw(t, "source"),
			Units: rapid.Uint64().Draw(t, "units"), Trials: rapid.SliceOfN(rapid.Uint64(), 0, 3).Draw(t, "trials"),
			People: keys[:rapid.IntRange(0, len(keys)).Draw(t, "people")]}
	}
	if rapid.Bool().Draw(t, "joined") {
		c.Rounds = map[stream.Round]stream.Hash{stream.Round(rapid.IntRange(1, 4).Draw(t, "round")): {rapid.ByteRange(0,
			2).Draw(t, "manifest")}}
	}
	for range rapid.IntRange(0, 12).Draw(t, "events") {
		p := participation.Record{Key: rapid.SampledFrom(keys).Draw(t, "key"), State: participation.State(rapid.IntRange(1,
			4).Draw(t, "state")), Rounds: 1}
		p.Draw.Round = stream.Round(rapid.IntRange(1, 3).Draw(t, "round"))
		if p.State == participation.Charged {
			p.Draw.Counts = []byte(fmt.Sprintf("counts %016x", rapid.Uint64().Draw(t, "counts")))
			p.Draw.Counts = append(p.Draw.Counts, make([]byte, rapid.SampledFrom([]int{0, 700}).Draw(t, "more"))...)
			p.Sends = []participation.Send{{Attempt: participation.Attempt{Number: 1}, Sent: 2, Acked: 1, Lowest: 5}}
		}
		c.Events = append(c.Events, p)
	}
	return c
}

// TestStoreOnFaultyFolder checks that, whatever is written and wherever it fails (the disk is full, the process is
// killed or the machine dies, also while the log is rewritten or opened again), acknowledged writes are there, other
// writes are there wholly or not at all, every call of the store fails after a failure, and the disk holds no counts
// and only the keys of rounds in which somebody is charged.
func TestStoreOnFaultyFolder(t *testing.T) {
	histories, faults, halves := 0, 0, [2]int{}
	rapid.Check(t, func(t *rapid.T) {
		histories++
		d := newFaulty(rapid.Uint64().Draw(t, "seed"))
		keys := []participation.Key{{3}}
		for i := range int64(5) {
			keys = append(keys, participation.RowKey("a", i), participation.EventKey(fmt.Sprint(i)))
		}
		open := func() *Store {
			s, err := openStore(d)
			for range 3 {
				if err == nil {
					break
				}
				if d.left >= 0 || !strings.Contains(err.Error(), errFault.Error()) {
					t.Fatalf("open: %v", err)
				}
				end(t, d)
				if rapid.Bool().Draw(t, "fails again") {
					d.left = rapid.IntRange(0, 30).Draw(t, "operation")
				}
				s, err = openStore(d)
			}
			if err != nil {
				end(t, d)
				if s, err = openStore(d); err != nil {
					t.Fatalf("open: %v", err)
				}
			}
			d.left = -1
			return s
		}
		s, model := open(), participation.NewMemoryStore()
		spent := map[[32]byte]bool{}
		for range rapid.IntRange(1, 14).Draw(t, "writes") {
			c := change(t, keys)
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				d.left = rapid.IntRange(0, 25).Draw(t, "operation")
			}
			if rapid.IntRange(0, 3).Draw(t, "compacts") == 0 {
				s.compactAt = 0
			}
			before := told(t, model, keys)
			for _, k := range s.index.keys {
				spent[k.key] = true
			}
			failed := s.Write(c)
			for _, k := range s.index.keys {
				spent[k.key] = true
			}
			if err := model.Write(c); err != nil {
				t.Fatal(err)
			}
			after := told(t, model, keys)
			if failed != nil {
				faults++
				if _, err := s.Read(keys); err == nil || s.Write(participation.Change{}) == nil {
					t.Fatal("it answers after a write that failed")
				}
			}
			switch died := failed != nil || d.left >= 0 || rapid.IntRange(0, 5).Draw(t, "ends") == 0; {
			case died:
				end(t, d)
				if rapid.IntRange(0, 2).Draw(t, "open fails") == 0 {
					d.left = rapid.IntRange(0, 30).Draw(t, "operation")
				}
				s = open()
			case rapid.Bool().Draw(t, "closes"):
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
			}
			switch got := told(t, s, keys); {
			case got == after:
				halves[0]++
			case failed != nil && got == before:
				halves[1]++
				model = participation.NewMemoryStore() // now holds the same as the store
				rebuild(t, model, s, keys)
			default:
				t.Fatalf("failed: %v: the store says\n%s\nbefore\n%s\nafter\n%s", failed, got, before, after)
			}
			check(t, d, s, spent)
		}
	})
	// One fault and one write that is there for every two histories, and one that is not for every ten, however many
	// -short plays.
	if 2*faults < histories || 2*halves[0] < histories || 10*halves[1] < histories {
		t.Errorf("%d histories, %d faults, %d writes that are there, %d that are not: tests too little",
			histories, faults, halves[0], halves[1])
	}
}

// end ends a process, or its machine.
func end(t *rapid.T, d *faulty) {
	if rapid.Bool().Draw(t, "crash") {
		d.crash()
		return
	}
	d.killed()
}

func rebuild(t *rapid.T, model, s participation.Store, keys []participation.Key) {
	var c participation.Change
	if pin, found, _ := s.Pin(); found {
		c.Pin = &pin
	}
	c.Rounds = map[stream.Round]stream.Hash{}
	for r := range stream.Round(5) {
		if hash, found, _ := s.Manifest(r); found {
			c.Rounds[r] = hash
		}
	}
	records, err := s.Read(keys)
	for _, p := range records {
		if p.State != participation.Fresh {
			c.Events = append(c.Events, p)
		}
	}
	if err := cmp.Or(err, model.Write(c)); err != nil {
		t.Fatal(err)
	}
}

// check looks at what is on the disk.
func check(t *rapid.T, d *faulty, s *Store, spent map[[32]byte]bool) {
	live := map[keyID]bool{}
	for _, b := range s.index.blocks {
		live[b.key.id] = true
		delete(spent, b.key.key)
	}
	for id := range live {
		if d.synced[id.file()] == nil {
			t.Fatal("a key of charged events is not on the disk")
		}
	}
	if n := len(keyIDs(slices.Collect(maps.Keys(d.synced)))); n != len(live) {
		t.Fatalf("%d keys on the disk, want %d", n, len(live))
	}
	if n := len(numbered(slices.Collect(maps.Keys(d.names)), logSuffix)); n != 1 {
		t.Fatalf("%d logs", n)
	}
	for name, f := range d.synced {
		for _, data := range [][]byte{f.disk, f.now} {
			if bytes.Contains(data, []byte("counts ")) {
				t.Fatalf("%s holds counts", name)
			}
			for key := range spent {
				if key != [32]byte{} && bytes.Contains(data, key[:]) {
					t.Fatalf("%s holds the key of a round that is settled", name)
				}
			}
		}
	}
}
