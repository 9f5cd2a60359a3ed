//go:build !windows

package filestore_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// BenchmarkCharge: rounds of 16,384 events are charged in chunks of 1,024, as a gateway does before it sends them, and
// settled in chunks of 8,192.
func BenchmarkCharge(b *testing.B) {
	const events, chunk, settled = 16384, 1024, 8192
	s, err := filestore.Open(filepath.Join(b.TempDir(), "devices"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	write := func(records []participation.Record, chunk int) {
		for ; len(records) > 0; records = records[min(chunk, len(records)):] {
			if err := s.Write(participation.Change{Events: records[:min(chunk, len(records))]}); err != nil {
				b.Fatal(err)
			}
		}
	}
	var busy time.Duration
	round := 0
	for b.Loop() {
		round++
		records := make([]participation.Record, events)
		for i := range records {
			records[i].Key = participation.RowKey("a", int64(round*events+i))
			d := participation.Draw{Round: stream.Round(round), Step: 1, Bundle: [16]byte{byte(i / 64)}, Place: uint32(i % 64),
				Counts: make([]byte, 30)}
			if err := records[i].Join(d); err != nil {
				b.Fatal(err)
			}
			records[i].Sending(participation.Attempt{Number: 1}, participation.Attempts{Most: 1})
		}
		begun := cpu(b)
		write(records, chunk)
		for i := range records {
			records[i].Acked(participation.Attempt{Number: 1}, stream.Ack{Status: stream.Stored, Sequence: 7})
			records[i].Decide(participation.Closed{Round: stream.Round(round), Attempt: participation.Attempt{Number: 1},
				Cutoff: 9})
		}
		write(records, settled)
		busy += cpu(b) - begun
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/events, "us/event")
	b.ReportMetric(float64(busy.Microseconds())/float64(b.N)/events, "cpu-us/event")
}

// cpu returns the processor time, user and system, that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
