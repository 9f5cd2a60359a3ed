package helper

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
)

// BenchmarkHelper measures how many reports of five bits a coordinate a helper decides in a second, on all processors:
// signed and sealed requests of a window, which are made before the clock runs, come over a broker in memory, and signed
// and sealed replies go back. Prio3, both seals of a report and the exchange's are in it.
func BenchmarkHelper(b *testing.B) {
	const reports = 3000
	for _, dim := range []int{10, 100} {
		b.Run(fmt.Sprintf("d=%d", dim), func(b *testing.B) {
			w := newWorld(b, uint64(dim), 1)
			w.params.Levels = 31
			f := w.task.Plan.Phases[0]
			f.Mechanism.Levels, f.Cohort, f.Users = 31, reports, 9*reports
			w.rehash()
			p := w.start(b.Context(), func(c *Config) { c.Workers = 0 })
			w.announce(b.Context(), 1)
			b.ReportAllocs()
			b.ResetTimer()
			for attempt := range b.N {
				b.StopTimer()
				l := w.opens(b.Context(), 1, uint64(attempt)+1, nil)
				w.must(l.joined(b.Context(), b.Context()))
				var requests [][]byte
				for n := 0; n < reports; {
					for range min(200, reports-n) {
						l.take(l.report(1, nil))
						n++
					}
					r, ok := l.core.Cut()
					if !ok {
						b.Fatal("the window is full")
					}
					data, err := splitwire.Seal(w.leader, w.task.Suite, l.join.PublicKey, &r)
					w.must(err)
					requests = append(requests, data)
				}
				b.StartTimer()
				for _, data := range requests {
					w.must(l.send(data))
				}
				for range requests {
					r, ok := l.read(<-l.answers).(*split.Reply)
					if !ok || r.Outcomes[0] != split.Accepted {
						b.Fatalf("%+v", r)
					}
				}
			}
			b.ReportMetric(float64(b.N*reports)/b.Elapsed().Seconds(), "reports/s")
			b.StopTimer()
			_ = p.stop()
		})
	}
}
