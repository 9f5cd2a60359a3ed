package device_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/httpgateway"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Events a second of one gateway, from 64 posts at a time to sealed reports at a broker that costs nothing, by the
// longest event that the task declares; and of the client below it, which parses nothing.
func BenchmarkGateway(b *testing.B) {
	large := strings.Repeat(`,"x":0`, 10_000)
	for _, c := range []struct {
		name    string
		maxLine int
		filling string
		direct  bool
	}{
		{"client", 65_536, "", true},
		{"small/max_line=65536", 65_536, "", false}, {"60kB/max_line=65536", 65_536, large, false},
		{"small/max_line=4096", 4096, "", false}, {"small/max_line=512", 512, "", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx := b.Context()
			w := newWorld(b, plan{rounds: 1, cohort: 1 << 20, deadline: time.Hour})
			w.keyed()
			spec, err := task.Parse([]byte(keyedDeclaration), []string{fmt.Sprintf("events.max_line=%d", c.maxLine)})
			must(b, err)
			w.task.Declaration, err = spec.Canonical()
			must(b, err)
			w.hash = taskHash(b, w.task)
			w.open(ctx, 1, 1, w.announce(ctx, 1))
			cfg := w.config(participation.NewMemoryStore())
			cfg.Source, cfg.Submits = "", !c.direct
			published := make(chan struct{})
			cfg.Transport = &sink{Transport: cfg.Transport, want: uint64(b.N), full: sync.OnceFunc(func() { close(published) })}
			device := w.client(cfg)
			defer device.Close()
			gateway, err := httpgateway.New(httpgateway.Config{Device: device, NoToken: true, Rate: 1e6})
			must(b, err)
			defer gateway.Close()
			handler := gateway.Handler()
			var next atomic.Int64
			var posting sync.WaitGroup
			b.ResetTimer()
			for range 64 {
				posting.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if c.direct {
							go func() {
								_, _ = device.Publish(ctx, participation.EventKey(fmt.Sprint(i)),
									convex.Example{Value: []float64{0.1, 0.2, 0.3}, Label: 1})
							}()
							continue
						}
						const form = `{"key": "%d", "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1%s}}`
						body := fmt.Sprintf(form, i, c.filling)
						const url = "http://localhost/v1/events?wait=1"
						r := httptest.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
						r.Header.Set("Content-Type", "application/json")
						handler.ServeHTTP(httptest.NewRecorder(), r)
					}
				})
			}
			<-published
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			posting.Wait()
		})
	}
}
