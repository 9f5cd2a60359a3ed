package stage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestQuietRounds: 250 events a second on a real broker, a short lease that is renewed again and again between
// fetches, and nothing goes wrong: no report is delivered again, so none waits out the broker's AckWait. Median and
// longest time of a round are printed: on a machine with nothing else to do the longest is below three times the
// median.
func TestQuietRounds(t *testing.T) {
	rounds, cohort := 20, 12
	if longtest.Run(t, "200 quiet rounds of 50 users; 20 rounds of 12 are run") {
		rounds, cohort = 200, 50
	}
	const rate = 250 // a second
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	conns := onNATS(t, 2, embedded.Config{Listen: "127.0.0.1:0"}) // stage, all others
	w := newWorld(t, plan{rounds: uint64(rounds), cohort: uint64(cohort)})
	check(t, natsadmin.Provision(ctx, conns[1], w.name, natsadmin.Options{}))
	put := func(subject string, data []byte) {
		_, err := conns[1].PutOnce(ctx, subject, data)
		check(t, err)
	}
	put(w.name.Task(), w.sign(w.learner, w.task))
	c := w.config()
	c.Records, c.LeaseTTL, c.Limits, c.Poll = conns[0], 3*time.Second, conns[0].Limits(), 0
	reader, err := conns[0].Reader(ctx, w.name)
	check(t, err)
	c.Reports = reader
	s := w.new(c)
	running := make(chan error, 1)
	go func() { running <- s.Run(ctx) }()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var took []time.Duration
	for r := stream.Round(1); r <= stream.Round(rounds); r++ {
		begun := time.Now()
		put(w.name.Round(r), w.sign(w.learner, w.round(r, uint64(r))))
		in := w.opened(ctx, t, conns[1], r)
		for _, u := range w.users(r) {
			<-tick.C
			insist(ctx, t, conns[1], stream.Outgoing{Subject: w.name.Report(r, 1), ID: randomID(),
				Data: w.seal(in, [][16]byte{randomID()}, w.plaintext(u))})
		}
		poll(ctx, t, conns[1], w.name.Batch(r))
		took = append(took, time.Since(begun))
	}
	put(w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: uint64(rounds),
		Reason: "done"}))
	check(t, <-running)
	slices.Sort(took)
	median, longest := took[len(took)/2], took[len(took)-1]
	fmt.Printf("MEASURED quiet rounds: %d of %d users, median %v, longest %v\n", rounds, cohort,
		median.Round(time.Millisecond), longest.Round(time.Millisecond))
	if n := s.Status().Redelivered; n != 0 {
		t.Errorf("%d reports were delivered again", n)
	}
}
