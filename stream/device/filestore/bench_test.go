package filestore

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// BenchmarkOpen: a log of a million settled events, in bundles of 64 as a gateway leaves it or each on its own, of
// rows in the order of their file or of named users, is opened. -benchtime 1x is enough.
func BenchmarkOpen(b *testing.B) {
	const events = 1_000_000
	for _, named := range []bool{false, true} {
		for _, compacted := range []bool{false, true} {
			b.Run(fmt.Sprintf("named=%t/compacted=%t", named, compacted), func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "devices")
				s, err := Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				s.log.file = unsynced{s.log.file}
				s.compactAt = 1 << 60
				const chunk = 1024
				for first := 0; first < events; first += chunk {
					change := participation.Change{Events: make([]participation.Record, min(chunk, events-first))}
					round := stream.Round(1 + first/16384)
					for i := range change.Events {
						p := participation.Record{Key: participation.RowKey("a", int64(first+i))}
						if named {
							p.Key = participation.EventKey(fmt.Sprint(first + i))
						}
						if err := p.Join(participation.Draw{Round: round, Step: 1, Bundle: [16]byte{byte(i / 64)},
							Counts: make([]byte, 30)}); err != nil {
							b.Fatal(err)
						}
						p.Sending(participation.Attempt{Number: 1}, participation.Attempts{Most: 1})
						change.Events[i] = p
					}
					if err := s.Write(change); err != nil {
						b.Fatal(err)
					}
					for i := range change.Events {
						change.Events[i].Abandon()
					}
					if err := s.Write(change); err != nil {
						b.Fatal(err)
					}
				}
				if compacted {
					if err := s.compact(); err != nil {
						b.Fatal(err)
					}
				}
				size := s.log.size
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				s = nil
				before := heap()
				for b.Loop() {
					if s != nil {
						_ = s.Close()
					}
					if s, err = Open(dir); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms")
				b.ReportMetric(float64(heap()-before)/events, "B-in-memory/event")
				b.ReportMetric(float64(size)/events, "B-on-disk/event")
				if len(s.index.events) != events {
					b.Fatalf("%d events", len(s.index.events))
				}
				_ = s.Close()
			})
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// An unsynced file is for preparation alone.
type unsynced struct{ file }

func (unsynced) Sync() error { return nil }
