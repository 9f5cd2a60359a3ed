package natsjs_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// benchmarked opens a provisioned task on a loopback listener, or inside the process.
func benchmarked(b *testing.B, listen string, o natsadmin.Options) *natsjs.Conn {
	b.Helper()
	e, err := embedded.Start(embedded.Config{StoreDir: b.TempDir(), Listen: listen, MaxStore: 16 << 30,
		MaxMemory: 4 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Shutdown)
	var c *natsjs.Conn
	if listen == "" {
		c, err = e.Connect(natsjs.ConnectConfig{})
	} else {
		c, err = natsjs.Connect(natsjs.ConnectConfig{URL: e.URL()})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	o.MaxReportBytes = 3 << 30
	if err := natsadmin.Provision(b.Context(), c, task, o); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkPublish compares Publish with the raw asynchronous publish of nats.go on the same stream: 1 KiB reports,
// 1000 a call, acknowledgements awaited.
func BenchmarkPublish(b *testing.B) {
	const n, size = 1000, 1024
	batch := func(i int) []stream.Outgoing {
		all := make([]stream.Outgoing, n)
		for j := range all {
			all[j] = stream.Outgoing{Subject: task.Report(1, 1), Data: make([]byte, size)}
			binary.BigEndian.PutUint64(all[j].ID[:], uint64(i*n+j)+1)
		}
		return all
	}
	report := func(b *testing.B) {
		b.SetBytes(n * size)
		b.ReportAllocs()
		b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "reports/s")
	}
	for _, listen := range []string{"127.0.0.1:0", ""} {
		name := map[bool]string{true: "InProcess", false: "Loopback"}[listen == ""]
		for _, memory := range []bool{false, true} {
			store := map[bool]string{true: "Memory", false: "File"}[memory]
			b.Run(fmt.Sprintf("%s/%s/Publish", name, store), func(b *testing.B) {
				c := benchmarked(b, listen, natsadmin.Options{MemoryReports: memory})
				for i := 0; b.Loop(); i++ {
					acks, err := c.Publish(b.Context(), batch(i))
					if err != nil || acks[n-1].Status != stream.Stored {
						b.Fatal(acks[n-1], err)
					}
				}
				report(b)
			})
			for _, ids := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/%s", name, store, map[bool]string{true: "RawWithID", false: "Raw"}[ids]),
					func(b *testing.B) {
						c := benchmarked(b, listen, natsadmin.Options{MemoryReports: memory})
						js, err := jetstream.New(c.NATS(), jetstream.WithPublishAsyncMaxPending(n))
						if err != nil {
							b.Fatal(err)
						}
						data := make([]byte, size)
						for i := 0; b.Loop(); i++ {
							for j := range n {
								var options []jetstream.PublishOpt
								if ids {
									options = append(options, jetstream.WithMsgID(fmt.Sprintf("%032x", i*n+j)))
								}
								if _, err := js.PublishAsync(task.Report(1, 1), data, options...); err != nil {
									b.Fatal(err)
								}
							}
							<-js.PublishAsyncComplete()
						}
						report(b)
					})
			}
		}
	}
}

// BenchmarkFetch takes 1 KiB reports from the queue and acknowledges them.
func BenchmarkFetch(b *testing.B) {
	for _, most := range []int{64, 256, 1024} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			c := benchmarked(b, "127.0.0.1:0", natsadmin.Options{MemoryReports: true})
			r, err := c.Reader(b.Context(), task)
			if err != nil {
				b.Fatal(err)
			}
			taken := 0
			next := 0
			for b.Loop() {
				b.StopTimer()
				all := make([]stream.Outgoing, 4096)
				for j := range all {
					next++
					all[j] = stream.Outgoing{Subject: task.Report(1, 1), Data: make([]byte, 1024)}
					binary.BigEndian.PutUint64(all[j].ID[:], uint64(next))
				}
				if _, err := c.Publish(b.Context(), all); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for left := len(all); left > 0; {
					got, err := r.Fetch(b.Context(), most, 0)
					if err != nil {
						b.Fatal(err)
					}
					for _, d := range got {
						if err := d.Ack(); err != nil {
							b.Fatal(err)
						}
					}
					left -= len(got)
					taken += len(got)
				}
			}
			b.ReportMetric(float64(taken)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}
