//go:build !windows

package shuffle

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer"
)

// BenchmarkAdd measures the CPU time of mixing, per coordinate, for single reports and for bundles, a new mixer for
// each cohort included; CPU time is little disturbed by a busy machine. It also reports the ratio to a copy of the
// same bytes, timed right after.
func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct{ dim, bundle, cohort int }{
		{10, 1, 1e4}, {100, 1, 1e4}, {100, 1, 1e6}, {100, 64, 1e4}, {100, 64, 1e6}, {1000, 1, 1e4},
	} {
		b.Run(fmt.Sprintf("d=%d/bundle=%d/cohort=%d", c.dim, c.bundle, c.cohort), func(b *testing.B) {
			p := randomizer.Params{Dim: c.dim, ClipNorm: 1, Levels: 64, Trials: 9, Coin: randomizer.Fair}
			open := func() *Mixer {
				m, err := NewMixer(Config{Params: p, Cohort: uint64(c.cohort), Minimum: uint64(c.cohort),
					MaxBundle: uint64(c.bundle)})
				if err != nil {
					b.Fatal(err)
				}
				return m
			}
			m := open()
			counts := make([]uint32, c.dim)
			var reports []byte
			for range c.bundle {
				for j := range counts {
					counts[j] = p.MaxCount()/2 + rand.Uint32N(8) - 4
				}
				reports = p.Pack(reports, counts)
			}
			ids, next := make([]ReportID, c.bundle), 0
			b.ReportAllocs()
			b.SetBytes(int64(len(reports)))
			began := cpuTime(b)
			for b.Loop() {
				for i := range ids {
					ids[i] = name(next)
					next++
				}
				if m.Full() {
					m = open()
				}
				if out := m.Add(ids, reports); out != Accepted {
					b.Fatal(out)
				}
			}
			mixing, into, began := cpuTime(b)-began, make([]byte, len(reports)), cpuTime(b)
			for range b.N {
				copy(into, reports)
			}
			copying := cpuTime(b) - began
			b.ReportMetric(float64(mixing.Nanoseconds())/float64(b.N*c.dim*c.bundle), "ns/coordinate")
			b.ReportMetric(mixing.Seconds()/copying.Seconds(), "ratio-to-copy")
		})
	}
}

// cpuTime returns the processor time, user and system, that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
