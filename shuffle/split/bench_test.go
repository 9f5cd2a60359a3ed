package split

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkReport measures the time of one report at k = 5: sharing it on a device, opening, preparing and finishing it
// at the leader, and deciding and counting it at the helper. Seals and signatures are not in it.
func BenchmarkReport(b *testing.B) {
	for _, d := range []int{10, 100, 785} {
		cfg := config(d, 5, 1<<30)
		b.Run(fmt.Sprintf("shard/d=%d", d), func(b *testing.B) {
			w := newWorld(b, cfg, 1)
			counts, id, fresh := w.counts(), [16]byte{1}, w.bytes32()
			b.ReportAllocs()
			for b.Loop() {
				_, err := w.devices.Shard(counts, id, fresh)
				w.must(err)
			}
		})
		for _, role := range []string{"leader", "helper"} {
			b.Run(fmt.Sprintf("%s/d=%d", role, d), func(b *testing.B) {
				w := newWorld(b, cfg, 1)
				for _, worker := range w.workers {
					worker.open = func(sealed []byte, _ []User) ([][]byte, error) { return [][]byte{slices.Clone(sealed)}, nil }
				}
				u, s := w.shard(w.counts())
				next := uint32(0)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					// The same shares under the same id, which is taken out of both sets.
					next++
					job, _ := w.leader.Take([]User{u}, s.Leader, s.Helper)
					if role == "helper" {
						b.StopTimer()
					}
					job.Run(w.workers[leader])
					w.leader.Add(job)
					r, _ := w.leader.Cut()
					if role == "leader" {
						b.StopTimer()
					} else {
						b.StartTimer()
					}
					reply := w.decide(r)
					if role == "leader" {
						b.StartTimer()
					} else {
						b.StopTimer()
					}
					_, err := w.leader.Handle(reply)
					w.must(err)
					if reply.Outcomes[0] != Accepted {
						b.Fatal(reply.Outcomes)
					}
					clear(w.leader.acc.spent)
					clear(w.helper.acc.spent)
					w.helper.shown = 0
					if role == "helper" {
						b.StartTimer()
					}
				}
			})
		}
	}
}
