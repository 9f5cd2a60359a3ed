package device_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/httpgateway"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A sighting is a report writer that records when each report came.
type sighting struct {
	stream.Transport
	seen chan time.Time
}

func (s sighting) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	now := time.Now()
	for range reports {
		s.seen <- now
	}
	return s.Transport.Publish(ctx, reports)
}

// posts are a valid body and a broken one, with %q for the key.
type posts [2]string

// latencies returns, for each kind of body, the seconds from posting a burst of it until the last of its reports is
// published. Kinds are interleaved at random.
func latencies(t *testing.T, seed uint64, items, rounds, burst int, kinds posts) (took [2][]float64) {
	ctx := t.Context()
	w := newWorld(t, plan{rounds: 1, cohort: 30_000, deadline: time.Hour})
	w.keyed()
	hash := w.announce(ctx, 1)
	w.open(ctx, 1, 1, hash)
	c := w.config(participation.NewMemoryStore())
	see := sighting{c.Transport, make(chan time.Time, 4096)}
	c.Transport, c.Source, c.Submits = see, "", true
	device := w.client(c)
	defer device.Close()
	if items > 0 {
		byUser(device, items, 0)
	}
	gateway, err := httpgateway.New(httpgateway.Config{Device: device,
		Token: "correct-horse-battery", Rate: 1e6})
	must(t, err)
	defer gateway.Close()
	handler := gateway.Handler()
	draw := rand.New(rand.NewPCG(seed, uint64(items+burst)))
	for i := range rounds {
		kind := draw.IntN(len(kinds))
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
			took[kind] = append(took[kind], last.Sub(begun).Seconds())
		}
	}
	return took
}

// TestLatenciesTellNothing checks on a real clock that the time when a report left does not reveal what was posted: two
// kinds of posts of each case have latencies of one distribution. See dptest.Alike for what makes it fail; a busy
// machine alone does not.
func TestLatenciesTellNothing(t *testing.T) {
	if !longtest.Run(t, "latencies of posts on a real clock") {
		return
	}
	const event = `{"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1}`
	people := func(n int) posts {
		many := event + strings.Repeat(","+event, n-1)
		return posts{`{"key": %q, "events": [` + many + `]}`, `{"key": %q, "events": [` + many + `)}`}
	}
	big := `{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1` + strings.Repeat(`,"x":0`, 10_000)
	small := `{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": `
	cases := map[string]struct {
		items, rounds, burst int
		kinds                posts
	}{
		"people of 2,000 events":       {2000, 80, 1, people(2000)},
		"people of 30 events":          {30, 240, 1, people(30)},
		"bursts of 20 events of 60 kB": {0, 120, 20, posts{big + "}}", big + "}!"}},
		"bursts of 10 small events":    {0, 1000, 10, posts{small + "1}}", small + "NaN}}"}},
	}
	dptest.Alike(t, slices.Sorted(maps.Keys(cases)), func(name string, pass int) (valid, broken []float64) {
		c := cases[name]
		took := latencies(t, uint64(pass), c.items, c.rounds, c.burst, c.kinds)
		for i, kind := range []string{"valid", "broken"} {
			slices.Sort(took[i])
			n := len(took[i])
			t.Logf("%s, %s: %d, median %.1f ms, 90 %% %.1f ms", name, kind, n, 1000*took[i][n/2], 1000*took[i][n*9/10])
		}
		return took[0], took[1]
	})
}
