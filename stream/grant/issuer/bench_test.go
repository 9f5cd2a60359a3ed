package issuer

import (
	"strconv"
	"sync/atomic"
	"testing"
)

// BenchmarkIssue is a request of a person, from its message to the signature, with the list synced in between: 64 at a time.
func BenchmarkIssue(b *testing.B) {
	d := newDesk(b)
	h, err := NewHandler(Config{Key: d.key, List: d.list, Login: HeaderLogin("X-Person")})
	must(b, err)
	message := d.blind().Message()
	var person atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, status, why := h.sign(strconv.FormatInt(person.Add(1), 10), message); status != 0 {
				b.Error(status, why)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}
