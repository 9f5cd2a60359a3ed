package stage

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSpentOverTwoRelaysAndNATS: one token goes through two relays and past them over NATS, under ids of their own, in one
// round and in the next; and a relay and a broker that kept a sealed message put it again, as it is and under another id.
// The person counts once, and everybody else does.
func TestSpentOverTwoRelaysAndNATS(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conns := onNATS(t, 3, embedded.Config{}) // stage, devices, and who keeps what the broker saw
	w := newWorld(t, plan{rounds: 2, cohort: 4, spares: 1, suite: wire.Suite_SUITE_X25519, grants: true})
	check(t, natsadmin.Provision(ctx, conns[0], w.name, natsadmin.Options{MaxMsgSize: 64 << 10, Grants: true}))
	for subject, data := range map[string][]byte{w.name.Task(): w.sign(w.learner, w.task),
		w.name.Round(1): w.sign(w.learner, w.round(1, 1))} {
		_, err := conns[1].PutOnce(ctx, subject, data)
		check(t, err)
	}
	c := w.config()
	c.Records, c.Poll, c.LeaseTTL, c.Limits = conns[0], 100*time.Millisecond, 5*time.Second, conns[0].Limits()
	reader, err := conns[0].Reader(ctx, w.name)
	check(t, err)
	c.Reports = reader
	running := make(chan error, 1)
	s := w.new(c)
	go func() { running <- s.Run(ctx) }()
	ways := []interface {
		Publish(context.Context, []stream.Outgoing) ([]stream.Ack, error)
	}{conns[1]}
	for range 2 {
		r, err := relay.New(relay.Config{Broker: conns[1], Tasks: []stream.Task{w.name}, Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		server := httptest.NewServer(r)
		client, err := relayclient.New(relayclient.Config{URL: server.URL})
		check(t, err)
		t.Cleanup(func() { client.Close(); r.Close(); server.Close() })
		ways = append(ways, client)
	}
	for round := stream.Round(1); round <= 2; round++ {
		in := w.opened(ctx, t, conns[1], round)
		send := func(way int, data []byte) {
			for {
				acks, err := ways[way].Publish(ctx, []stream.Outgoing{{Subject: w.name.Report(round, 1), ID: randomID(), Data: data}})
				if err == nil && acks[0].Status == stream.Stored {
					return
				}
				if ctx.Err() != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		thief := uint64(0)
		for way := range ways { // with other counts each time
			send(way, w.with(in, thief+uint64(way), w.issuer.Token(thief)))
		}
		honest := w.users(round)
		if round == 1 {
			honest = honest[1:]
		}
		kept := w.with(in, honest[0], w.issuer.Token(honest[0]))
		send(1, kept)
		var r wire.Report
		check(t, stream.ReadReport(kept, &r))
		send(2, kept) // a relay that kept it
		id := randomID()
		r.Ids[0] = id[:]
		send(0, w.encode(&r)) // and a broker, under another id
		for _, u := range honest[1:] {
			send(int(u)%3, w.with(in, u, w.issuer.Token(u)))
		}
		b := &wire.Batch{}
		_, err = seal.Verify(poll(ctx, t, conns[1], w.name.Batch(round)), w.stage.Public(), b)
		check(t, err)
		again := uint64(3)
		if round == 1 {
			again = 2 // one of the three counted
		}
		if b.Users != 4 || rejected(b, Grant) != again || rejected(b, Duplicate) != 1 || rejected(b, Undecryptable) != 1 {
			t.Errorf("round %d: %d users, rejects %v", round, b.Users, b.Rejects)
		}
		next, last := w.name.Round(2), w.sign(w.learner, w.round(2, 2))
		if round == 2 {
			next, last = w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: 2,
				Reason: "done"})
		}
		_, err = conns[1].PutOnce(ctx, next, last)
		check(t, err)
	}
	check(t, <-running)
}
