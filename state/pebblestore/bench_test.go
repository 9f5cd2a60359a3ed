package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// BenchmarkCommit commits a learner's rounds at dimension 1000: on a file system in memory, where a sync costs
// nothing, and on disk, in turns with an append and fsync of as many bytes.
func BenchmarkCommit(b *testing.B) {
	// a point, a dual point and an average
	b.Run("d=1000", func(b *testing.B) { benchmarkCommit(b, 3*8*1000) })
	b.Run("adaptive,d=100000", func(b *testing.B) { benchmarkCommit(b, 27_901_583) }) // see BenchmarkAdaptiveRound
}

func benchmarkCommit(b *testing.B, stateBytes int) {
	for _, disk := range []bool{false, true} {
		b.Run(fmt.Sprintf("fsync=%t", disk), func(b *testing.B) {
			options := Options{fs: vfs.NewMem()}
			if disk {
				options.fs = nil
			}
			dir := b.TempDir()
			store, err := Open(filepath.Join(dir, "state"), options)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			script := storetest.Script{Rounds: uint64(b.N) + 1, Bytes: stateBytes}
			var at state.Checkpoint
			var committed, synced time.Duration
			for range b.N {
				next, entries, err := script.Next(at)
				if err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				if err := store.Commit(b.Context(), next, entries); err != nil {
					b.Fatal(err)
				}
				committed += time.Since(begun)
				at = next
				if disk {
					data, err := next.MarshalBinary()
					if err != nil {
						b.Fatal(err)
					}
					took, err := appendSynced(filepath.Join(dir, "beside"), data)
					if err != nil {
						b.Fatal(err)
					}
					synced += took
				}
			}
			b.ReportMetric(float64(committed.Nanoseconds())/float64(b.N), "ns/op")
			if disk {
				b.ReportMetric(committed.Seconds()/synced.Seconds(), "fsyncs")
			}
		})
	}
}

// appendSynced appends to a file and syncs it, as the least that a commit does; opening the file is not counted.
func appendSynced(path string, data []byte) (time.Duration, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync())
	return time.Since(begun), errors.Join(err, f.Close())
}
