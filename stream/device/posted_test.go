package device_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/httpgateway"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// posted are bodies with a readable key, put in for %q, and one that is valid.
var posted = []string{
	`{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1}}`,
	`{"key": %q, "event": {"x0": NaN, "x1": 0.2, "x2": 0.3, "y": 1}}`,
	`{"event": NaN, "key": %q}`, `{"event": Infinity, "key": %q}`, `{"key": %q, "event": null}`,
	`{"key": %q, "event": [1, 2]}`, `{"key": %q, "event": "text"}`,
	`{"key": %q}`, `{"key": %q, "event": {}}`, `{"key": %q, "event": {"x0": 0.1, "x1": 0.2, "x2": 0.3}}`,
	`{"key": %q, "event": {"x0": {"a": []}, "y": [1]}}`,
	`{"event": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `, "key": %q}`, `{"key": %q, "event": ` +
		strings.Repeat(`{"a":`, 100_000),
	`{"unused": "` + strings.Repeat("x", 100_000) + `", "key": %q, "event": {}}`,
	`{"key": %q, "key": "another", "event": {}}`, `{"key": %q, "event": {}} and more`,
	`{"key": %q, "event": {"y": 1`, `{"key": %q "event" {}}`, `{"key": %q, "event": "` + strings.Repeat("x", 1<<20) + `"}`,
	"{\"key\": %q, \"event\": {\"x0\": \"\x00\xff\"}}",
}

// Of 10,000 requests with keys that can be read each takes part, with as many bytes as any other, whatever else they
// hold.
func TestWhoeverHasAKeyTakesPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		const requests = 10_000
		w := newWorld(t, plan{rounds: 1, cohort: requests, deadline: time.Hour})
		w.keyed()
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		c := w.config(participation.NewMemoryStore())
		c.Source, c.Submits = "", true
		dev := w.client(c)
		gateway, err := httpgateway.New(httpgateway.Config{Device: dev, Token: "correct-horse-battery",
			Rate: 1e6})
		must(t, err)
		handler := gateway.Handler()
		for i := range requests {
			body := posted[i%len(posted)]
			if len(body) > 1000 && i > 1000 {
				body = posted[i%10] // large ones are slow to read
			}
			body = strings.Replace(body, "%q", fmt.Sprintf(`"user-%d"`, i), 1)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/events?wait=0", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer correct-horse-battery")
			r.Header.Set("Content-Type", "application/json")
			if i == 0 {
				r.URL.RawQuery = "wait=9" // the task is announced
			}
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, r)
			fits := strings.Contains(got.Body.String(), `"fits":true`)
			if got.Code != http.StatusAccepted || fits != strings.Contains(body, `{"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1}}`) {
				t.Fatalf("request %d, %.60s: %d %s", i, body, got.Code, got.Body)
			}
		}
		time.Sleep(10 * time.Second)
		n, size := 0, 0
		for _, m := range w.broker.Dump() {
			if m.Subject == w.name.Report(1, 1) {
				if n++; size == 0 {
					size = len(m.Data)
				}
				if len(m.Data) != size {
					t.Errorf("report %d has %d bytes, the first %d", n, len(m.Data), size)
				}
			}
		}
		if n != requests {
			t.Errorf("%d reports of %d requests", n, requests)
		}
		gateway.Close()
		must(t, dev.Close())
	})
}

// In a task that protects people each request is one report of its person, whatever number of events it has and
// whatever they hold, with the same bytes and on the person's own account; another request of the same person is
// answered.
func TestPostedPeopleReportOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const people, items = 60, 2
		w := newWorld(t, plan{rounds: 1, cohort: people, deadline: time.Hour})
		w.keyed()
		s, l := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
		surplus := uint64(0)
		serve := func(ctx context.Context, want int, query string) (sum device.Summary) {
			c := w.config(s)
			c.Source, c.Submits, c.Ledger, c.Progress = "", true, l, func(p device.Progress) { sum = p.Summary }
			dev := w.client(c)
			byUser(dev, items, time.Hour)
			gateway, err := httpgateway.New(httpgateway.Config{Device: dev, Token: "correct-horse-battery",
				Rate: 1e6})
			must(t, err)
			var group sync.WaitGroup
			for i := range people {
				group.Go(func() {
					events := strings.Repeat(`{"x0": 0.1, "x1": 0.2, "x2": 0.3, "y": 1},`, i%5)
					body := fmt.Sprintf(`{"key": "user-%d", "events": [%s]}`, i, strings.TrimSuffix(events, ","))
					if i%5 == 4 {
						body = fmt.Sprintf(posted[i/5], fmt.Sprint("user-", i)) // whatever it holds
					}
					r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/events"+query, strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer correct-horse-battery")
					r.Header.Set("Content-Type", "application/json")
					got := httptest.NewRecorder()
					gateway.Handler().ServeHTTP(got, r)
					known := query == "" // nothing of what is posted again is sent
					if got.Code != want || strings.Contains(got.Body.String(), `"fits":true`) != (!known && i%5 < 4) ||
						strings.Contains(got.Body.String(), `"fits"`) == known ||
						strings.Contains(got.Body.String(), `"surplus":1`) != (!known && i%5 == 3) {
						t.Errorf("user %d with %d events: %d %s", i, i%5, got.Code, got.Body)
					}
				})
				if i%5 == 3 {
					surplus++
				}
			}
			group.Wait()
			gateway.Close()
			must(t, dev.Close())
			return sum
		}
		w.play(t.Context(), func(ctx context.Context) {
			sum := serve(ctx, http.StatusOK, "?until=outcome&wait=30")
			if want := (device.Summary{Events: people, Units: people, Surplus: surplus, Counted: people}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
			serve(ctx, http.StatusOK, "")
		})
		s.audit(w)
		for i := range people {
			key := participation.EventKey(fmt.Sprint("user-", i))
			if n, charges := len(s.draws[key]), accountOf(t, l, key); n != 1 || len(charges) != 1 || !charges[0].ByUser {
				t.Errorf("user %d has %d draws and %+v, want one of each", i, n, charges)
			}
		}
	})
}
