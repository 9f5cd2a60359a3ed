package stage

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestToldCountedIsCounted: on a real broker, with devices that send one by one while the stage's fetches are as short
// as its polls, exactly the reports with sequences up to its cutoff are in a round's batch, and so have the outcome
// counted; and no report has to be delivered again.
func TestToldCountedIsCounted(t *testing.T) {
	const rounds, cohort, publishers = 20, 25, 4
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conns := onNATS(t, 2, embedded.Config{}) // stage, all others
	w := newWorld(t, plan{rounds: rounds, cohort: cohort})
	check(t, natsadmin.Provision(ctx, conns[1], w.name, natsadmin.Options{AckWait: time.Hour}))
	put := func(subject string, data []byte) {
		_, err := conns[1].PutOnce(ctx, subject, data)
		check(t, err)
	}
	put(w.name.Task(), w.sign(w.learner, w.task))
	c := w.config()
	c.Records, c.Poll, c.LeaseTTL, c.Limits = conns[0], 2*time.Millisecond, time.Minute, conns[0].Limits()
	reader, err := conns[0].Reader(ctx, w.name)
	check(t, err)
	seen := &witnessed{ReportReader: reader}
	c.Reports = seen
	running := make(chan error, 1)
	s := w.new(c)
	go func() { running <- s.Run(ctx) }()

	waiting := make([]uint64, rounds*cohort)
	for u := range waiting {
		waiting[u] = uint64(u)
	}
	for r := stream.Round(1); r <= rounds; r++ {
		put(w.name.Round(r), w.sign(w.learner, w.round(r, uint64(r))))
		in := w.opened(ctx, t, conns[1], r)
		closed, end := context.WithCancel(ctx)
		var mu sync.Mutex // of waiting and sequences
		sequences := map[uint64]uint64{}
		var sending sync.WaitGroup
		for range publishers {
			sending.Go(func() {
				for closed.Err() == nil {
					mu.Lock()
					if len(waiting) == 0 {
						mu.Unlock()
						return
					}
					u := waiting[0]
					waiting = waiting[1:]
					mu.Unlock()
					id := randomID()
					report := stream.Outgoing{Subject: w.name.Report(r, 1), ID: id, Data: w.seal(in, [][16]byte{id}, w.plaintext(u))}
					acks, err := conns[1].Publish(ctx, []stream.Outgoing{report})
					if err != nil || acks[0].Status != stream.Stored {
						t.Errorf("user %d: %v, %v", u, acks, err)
						return
					}
					mu.Lock()
					sequences[u] = acks[0].Sequence
					mu.Unlock()
					<-time.After(rand.N(4 * time.Millisecond))
				}
			})
		}
		b := &wire.Batch{}
		_, err := seal.Verify(poll(ctx, t, conns[1], w.name.Batch(r)), w.stage.Public(), b)
		check(t, err)
		end()
		sending.Wait()
		for u, sequence := range sequences {
			told := sequence <= b.Cutoff
			if told != (b.Totals[u] == 1) {
				t.Errorf("round %d: user %d, sequence %d, cutoff %d: %d times in the totals", r, u, sequence, b.Cutoff, b.Totals[u])
			}
			if !told {
				waiting = append(waiting, u)
			}
		}
	}
	put(w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: rounds,
		Reason: "done"}))
	check(t, <-running)
	if len(waiting) != 0 || seen.again != 0 {
		t.Errorf("%d users are left of %d places; %d reports were delivered again", len(waiting), rounds*cohort, seen.again)
	}
}

// witnessed counts what had to be delivered again.
type witnessed struct {
	stream.ReportReader
	again int
}

func (r *witnessed) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	ds, err := r.ReportReader.Fetch(ctx, max, wait)
	for _, d := range ds {
		if d.Redelivered {
			r.again++
		}
	}
	return ds, err
}
