package stage

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/stream"
)

// A fetcher takes sealed reports from the work queue. At most one fetch is under way, while the reports of the last one
// are examined. Reports that it holds are not acknowledged, so the broker delivers them again if the process ends.
//
// A fetch that is under way when its attempt ends goes on: reports that a broker delivers to a fetch that nobody waits
// for come again only after AckWait. The next attempt takes its reports.
type fetcher struct {
	queue  stream.ReportReader
	ready  []stream.Delivery // fetched, not examined
	flight chan fetched      // nil: no fetch is under way
	cancel context.CancelFunc

	behind      uint64    // messages that waited behind the last one that was fetched
	landed      uint64    // fetches that the broker answered
	landedAt    time.Time // when the last of them was answered: behind is of then
	redelivered uint64    // reports that came again
	kept        []func() error
	keptAt      time.Time // the first of them
}

// Acknowledgements of reports for later attempts than ours are kept until the lease is confirmed, so many and so long
// at most.
const (
	mostKept = 512
	keepFor  = 50 * time.Millisecond
)

func (f *fetcher) keep(ack func() error, now time.Time) {
	if len(f.kept) == 0 {
		f.keptAt = now
	}
	f.kept = append(f.kept, ack)
}

type fetched struct {
	reports []stream.Delivery
	at      time.Time
	err     error
}

// ask begins a fetch of reports, as many as an attempt with room for room users may take beyond the ready ones. Ready
// and requested reports together are at most prefetch. A fetch that has waited for all of timeout has slack to deliver
// its reports.
func (f *fetcher) ask(ctx context.Context, prefetch int, room uint64, timeout, slack time.Duration) {
	n := min((prefetch+1)/2, int(min(room, uint64(prefetch)))-len(f.ready))
	if f.flight != nil || n <= 0 || len(f.ready)+n > prefetch {
		return
	}
	flight := make(chan fetched, 1)
	ctx, cancel := context.WithTimeout(ctx, timeout+slack)
	f.flight, f.cancel = flight, cancel
	go func() {
		var got fetched
		got.err = panics.Caught(func() (err error) {
			got.reports, err = f.queue.Fetch(ctx, n, timeout)
			return err
		})
		got.at = time.Now()
		flight <- got
	}()
}

// wait waits until a time for the fetch that is under way, or for something on wake; open is false where wake is
// closed.
func (f *fetcher) wait(ctx context.Context, until time.Time, wake <-chan stream.Wake) (woken, open bool, err error) {
	if f.flight == nil {
		return false, true, nil
	}
	select {
	case got := <-f.flight: // however many wakes come, reports are taken in
		f.land(got)
		return false, true, got.err
	default:
	}
	select {
	case <-ctx.Done():
		return false, true, ctx.Err()
	case <-time.After(time.Until(until)):
		return false, true, nil
	case got := <-f.flight:
		f.land(got)
		return false, true, got.err
	case _, open := <-wake:
		return true, open, nil
	}
}

func (f *fetcher) land(got fetched) {
	f.cancel()
	f.flight = nil
	f.ready = append(f.ready, got.reports...)
	if n := len(got.reports); n > 0 {
		f.behind = got.reports[n-1].Pending
	} else if got.err == nil {
		f.behind = 0
	}
	if got.err == nil {
		f.landed, f.landedAt = f.landed+1, got.at
	}
	for _, d := range got.reports {
		if d.Redelivered {
			f.redelivered++
		}
	}
}

// done overwrites the first n reports: as long as the attempt's key lives, an intruder can open a sealed report that
// was left in memory.
func (f *fetcher) done(n int) {
	for i := range f.ready[:n] {
		clear(f.ready[i].Data)
	}
	clear(f.ready[:n])
	f.ready = f.ready[n:]
}

// drop ends the fetch that is under way and forgets all reports.
func (f *fetcher) drop() {
	if f.flight != nil {
		f.cancel()
		f.land(<-f.flight)
	}
	f.done(len(f.ready))
	f.ready, f.kept, f.behind = nil, nil, 0
}
