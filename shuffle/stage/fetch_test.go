package stage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// slowQueue delivers the reports that a test gives it, when the test says so, and records the fetches.
type slowQueue struct {
	asked  []int
	bring  chan int
	result error
}

func (q *slowQueue) Fetch(ctx context.Context, max int, _ time.Duration) ([]stream.Delivery, error) {
	q.asked = append(q.asked, max)
	select {
	case n := <-q.bring:
		all := make([]stream.Delivery, n)
		for i := range all {
			all[i].Data = []byte{1}
		}
		return all, q.result
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *slowQueue) Queue(context.Context) (stream.Queue, error) { return stream.Queue{}, nil }
func (q *slowQueue) Purge(context.Context, uint64) error         { return nil }

// landed waits for the fetch that is under way, with nothing that wakes.
func landed(ctx context.Context, f *fetcher, until time.Time) error {
	_, _, err := f.wait(ctx, until, nil)
	return err
}

// TestFetcherBounds: ready and asked reports are never more than the prefetch, nor than the cohort still takes; a
// fetch is under way while others are examined; and one fetch at a time.
func TestFetcherBounds(t *testing.T) {
	for _, c := range []struct {
		prefetch int
		room     uint64
		want     []int // asked, where each fetch brings all
	}{
		{prefetch: 8, room: 100, want: []int{4, 4}}, {prefetch: 8, room: 6, want: []int{4, 2}}, {prefetch: 8, room: 3,
			want: []int{3}},
		{prefetch: 4, room: 100, want: []int{2, 2}}, {prefetch: 3, room: 9, want: []int{2, 1}}, {prefetch: 1, room: 9,
			want: []int{1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &slowQueue{bring: make(chan int)}
			f := &fetcher{queue: q}
			for range 5 {
				for range 3 {
					f.ask(t.Context(), c.prefetch, c.room, time.Second, time.Second)
				}
				synctest.Wait()
				if len(q.asked) == 0 || f.flight == nil {
					break
				}
				q.bring <- q.asked[len(q.asked)-1]
				if err := landed(t.Context(), f, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			total := 0
			for i, n := range q.asked {
				if total += n; i >= len(c.want) || n != c.want[i] {
					t.Errorf("%+v: asked %v", c, q.asked)
					break
				}
			}
			if len(f.ready) != total || len(q.asked) != len(c.want) {
				t.Errorf("%+v: asked %v, %d ready", c, q.asked, len(f.ready))
			}
			f.done(1) // an examined one makes room again
			before := len(q.asked)
			f.ask(t.Context(), c.prefetch, c.room, time.Second, time.Second)
			synctest.Wait()
			if asked := len(q.asked) > before; asked && len(f.ready)+q.asked[before] > c.prefetch {
				t.Errorf("%+v: %d ready and %d asked", c, len(f.ready), q.asked[before])
			}
			f.drop()
		})
	}
}

// TestFetcherOutlivesAWait: a fetch that brings nothing until the loop has other things to do goes on, and what it
// brings is taken later; dropped, it ends at once and its reports are overwritten.
func TestFetcherOutlivesAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &slowQueue{bring: make(chan int)}
		f := &fetcher{queue: q}
		f.ask(t.Context(), 8, 100, time.Minute, time.Second)
		if err := landed(t.Context(), f, time.Now().Add(time.Second)); err != nil || f.flight == nil || len(f.ready) != 0 {
			t.Fatalf("%v, %v", err, f.ready)
		}
		q.bring <- 3
		if err := landed(t.Context(), f, time.Now().Add(time.Second)); err != nil || len(f.ready) != 3 || len(q.asked) != 1 {
			t.Fatalf("%v, %d ready, asked %v", err, len(f.ready), q.asked)
		}
		f.ask(t.Context(), 8, 100, time.Minute, time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := landed(ended, f, time.Now().Add(time.Second)); !errors.Is(err, context.Canceled) {
			t.Errorf("wait after the end: %v", err)
		}
		data := f.ready[0].Data
		begun := time.Now()
		f.drop()
		if f.flight != nil || f.ready != nil || data[0] != 0 || time.Since(begun) != 0 {
			t.Errorf("after %v: %v is left, a report holds %v", time.Since(begun), f.ready, data)
		}
	})
}

// TestWakesHoldNoReportsUp: a broker that wakes without end keeps no reports from being taken in.
func TestWakesHoldNoReportsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &slowQueue{bring: make(chan int)}
		f := &fetcher{queue: q}
		wake := make(chan stream.Wake, 1)
		wake <- stream.Wake{}
		f.ask(t.Context(), 8, 100, time.Minute, time.Second)
		if woken, _, err := f.wait(t.Context(), time.Now().Add(time.Hour), wake); !woken || err != nil {
			t.Errorf("a wake, and no report: woken %t, %v", woken, err)
		}
		q.bring <- 4
		synctest.Wait()
		wake <- stream.Wake{}
		if woken, _, err := f.wait(t.Context(), time.Now().Add(time.Hour), wake); woken || err != nil || len(f.ready) != 4 {
			t.Errorf("four reports and a wake: woken %t, %d reports are ready, %v", woken, len(f.ready), err)
		}
	})
}
