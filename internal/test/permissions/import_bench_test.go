package permissions

import (
	"encoding/binary"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// BenchmarkPublish measures the cost of accounts, imports and TLS for a publisher: reports of 1 KiB into a
// memory stream.
func BenchmarkPublish(b *testing.B) {
	for _, p := range []struct {
		name string
		open func(testing.TB) *broker
	}{{"open", open}, {"shipped", shipped}} {
		b.Run(p.name, func(b *testing.B) {
			at := p.open(b)
			if err := natsadmin.Provision(b.Context(), at.conn(b, admin), task, natsadmin.Options{MemoryReports: true,
				MaxReportBytes: 128 << 20}); err != nil {
				b.Fatal(err)
			}
			c := at.conn(b, publisher)
			b.SetBytes(1000 * 1024)
			sent := make([]stream.Outgoing, 1000)
			n := uint64(0)
			for b.Loop() {
				for i := range sent {
					n++
					sent[i] = stream.Outgoing{Subject: task.Report(1, 1), Data: make([]byte, 1024)}
					binary.BigEndian.PutUint64(sent[i].ID[:], n)
				}
				if _, err := c.Publish(b.Context(), sent); err != nil {
					b.Fatal(err)
				}
				if n%50_000 == 0 {
					b.StopTimer()
					s, err := at.admin.Stream(b.Context(), task.Name(stream.Reports))
					if err == nil {
						err = s.Purge(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}
