package client_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/httpgateway"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// A sighting is a report writer that tells when each report came.
type sighting struct {
	stream.ReportWriter
	seen chan time.Time
}

func (s sighting) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	now := time.Now()
	for range reports {
		s.seen <- now
	}
	return s.ReportWriter.Publish(ctx, reports)
}

// posts are bodies by the name of their kind, with %q for the key.
type posts map[string]string

// latencies are how long reports take from the posts of bodies on: of bursts, of the last of them. Kinds are
// interleaved at random.
func latencies(t *testing.T, items, rounds, burst int, kinds posts) map[string][]float64 {
	ctx := t.Context()
	w := newWorld(t, plan{rounds: 1, cohort: 30_000, deadline: time.Hour})
	w.keyed()
	hash := w.announce(ctx, 1)
	w.open(ctx, 1, 1, hash)
	store := httpgateway.Watch(participation.NewMemoryStore())
	c := w.config(store)
	see := sighting{c.Reports, make(chan time.Time, 4096)}
	c.Reports, c.Source, c.Work = see, httpgateway.Source, httpgateway.Work
	device := w.client(c)
	defer device.Close()
	if items > 0 {
		byUser(device, items, 0)
	}
	gateway, err := httpgateway.New(httpgateway.Config{Client: device, Store: store,
		Token: "correct-horse-battery", Rate: 1e6})
	must(t, err)
	defer gateway.Close()
	handler := gateway.Handler()
	draw := rand.New(rand.NewPCG(uint64(items), uint64(burst)))
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range kinds {
			if !yield(name) {
				return
			}
		}
	})
	out := make(map[string][]float64)
	for i := range rounds {
		kind := names[draw.IntN(len(names))]
		time.Sleep(time.Duration(draw.IntN(20_000)) * time.Microsecond) // anywhere in a tick
		var group sync.WaitGroup
		begun := time.Now()
		for j := range burst {
			body := strings.Replace(kinds[kind], "%q", fmt.Sprintf(`"%d-%d"`, i, j), 1)
			group.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/events?wait=9", strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer correct-horse-battery")
				r.Header.Set("Content-Type", "application/json")
				handler.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		var last time.Time
		for range burst {
			last = <-see.seen
		}
		if group.Wait(); i > 0 { // the first one waits for the task
			out[kind] = append(out[kind], last.Sub(begun).Seconds())
		}
	}
	return out
}

// sameLaw returns the probability, about, of a Kolmogorov-Smirnov distance as large where two samples have one law.
func sameLaw(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	var i, j int
	var distance float64
	for i < len(a) && j < len(b) {
		v := min(a[i], b[j])
		for i < len(a) && a[i] == v {
			i++
		}
		for j < len(b) && b[j] == v {
			j++
		}
		distance = max(distance, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	n := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	l, p := (n+0.12+0.11/n)*distance, 0.0
	for k := 1.0; k < 200; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*l*l)
	}
	if l < 0.2 {
		return 1
	}
	return min(max(p, 0), 1)
}

// On a clock that goes, nobody can tell from when a report left what was posted. Four comparisons, corrected by
// Holm's method: below 1e-9 by chance, so that a machine that is busy with others does not turn it red, and the
// numbers are printed.
func TestLatenciesTellNothing(t *testing.T) {
	if !longtest.Run(t, "latencies of posts on a real clock") {
		return
	}
	const event = `{"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1}`
	people := func(n int) posts {
		many := event + strings.Repeat(","+event, n-1)
		return posts{"valid": `{"key": %q, "events": [` + many + `]}`, "broken": `{"key": %q, "events": [` + many + `)}`}
	}
	big := `{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1` + strings.Repeat(`,"x":0`, 10_000)
	small := `{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": `
	for name, c := range map[string]struct {
		items, rounds, burst int
		kinds                posts
	}{
		"people of 2,000 events": {2000, 80, 1, people(2000)},
		"people of 30 events":    {30, 240, 1, people(30)},
		"bursts of 20 of 60 kB":  {0, 60, 20, posts{"valid": big + "}}", "broken": big + "}!"}},
		"small events":           {0, 2000, 1, posts{"valid": small + "1}}", "NaN": small + "N}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := latencies(t, c.items, c.rounds, c.burst, c.kinds)
			var samples [][]float64
			for kind, sample := range got {
				slices.Sort(sample)
				n := len(sample)
				t.Logf("%s: %d, median %.1f ms, 90 %% %.1f ms", kind, n, 1000*sample[n/2], 1000*sample[n*9/10])
				samples = append(samples, sample)
			}
			p := sameLaw(samples[0], samples[1])
			if t.Logf("p = %.3g", p); p < 1e-9/4 {
				t.Errorf("when reports leave tells what was posted: p = %.3g", p)
			}
		})
	}
}
