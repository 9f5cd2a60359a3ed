package stage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestFloodOnNATS: the same on a real broker whose queue holds 256 KiB: a flood that fills it again and again, devices
// that are refused and try again, and everybody is counted.
func TestFloodOnNATS(t *testing.T) {
	n := 3_000
	if longtest.Run(t, "a flood of a million wrong reports over NATS; 3,000 are sent") {
		n = 1_000_000
	}
	const users = 24
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	conns := onNATS(t, 3, embedded.Config{}) // stage, flood, devices
	w := newWorld(t, plan{cohort: users, suite: wire.Suite_SUITE_X25519, bundle: 2})
	check(t, natsadmin.Provision(ctx, conns[0], w.name, natsadmin.Options{MaxReportBytes: 256 << 10, MaxMsgSize: 64 << 10,
		AckWait: 10 * time.Second}))
	for subject, data := range map[string][]byte{w.name.Task(): w.sign(w.learner, w.task),
		w.name.Round(1): w.sign(w.learner, w.round(1, 1))} {
		_, err := conns[2].PutOnce(ctx, subject, data)
		check(t, err)
	}
	c := w.config()
	c.Records, c.Poll, c.LeaseTTL, c.Limits = conns[0], 100*time.Millisecond, time.Minute, conns[0].Limits()
	reader, err := conns[0].Reader(ctx, w.name)
	check(t, err)
	gate := &gated{reader, make(chan struct{})} // the stage takes nothing before the queue has been full
	c.Reports = gate
	examined := map[Reason]int{}
	c.Observer.Report = func(r Reason) { examined[r]++ }
	running := make(chan error, 1)
	s := w.new(c)
	go func() { running <- s.Run(ctx) }()

	in := w.opened(ctx, t, conns[2], 1)
	first := w.seal(in, [][16]byte{randomID()}, w.plaintext(0))
	insist(ctx, t, conns[2], stream.Outgoing{Subject: w.name.Report(1, 1), ID: randomID(), Data: first})
	d := w.newWrongdoer(in, first)
	fill := stream.Outgoing{Subject: w.name.Report(1, 1), Data: make([]byte, 60_000)}
	filled := 0
	for full := false; !full; {
		fill.ID = randomID()
		acks, err := conns[1].Publish(ctx, []stream.Outgoing{fill})
		check(t, err)
		if full = acks[0].Status == stream.Refused; acks[0].Status == stream.Stored {
			filled++
		}
	}
	close(gate.open)
	begun, refused := time.Now(), 0
	for i := 0; i < n; {
		var batch []stream.Outgoing
		for range min(256, n-i) {
			_, r := d.next(i)
			batch = append(batch, r)
			i++
		}
		refused += insist(ctx, t, conns[1], batch...)
	}
	took := time.Since(begun)
	for u := range uint64(users - 1) {
		refused += insist(ctx, t, conns[2], stream.Outgoing{Subject: w.name.Report(1, 1), ID: randomID(),
			Data: w.seal(in, [][16]byte{randomID()}, w.plaintext(u+1))})
	}
	b := &wire.Batch{}
	_, err = seal.Verify(poll(ctx, t, conns[2], w.name.Batch(1)), w.stage.Public(), b)
	check(t, err)
	_, err = conns[2].PutOnce(ctx, w.name.End(), w.sign(w.learner, &wire.End{
		Version: stream.Version, TaskHash: w.hash[:], LastRound: 1, Reason: "done"}))
	check(t, err)
	check(t, <-running)
	for u, total := range b.Totals[:users] {
		if total != 1 {
			t.Errorf("user %d is counted %d times", u, total)
		}
	}
	all := 0
	for r, k := range examined {
		if r != Accepted {
			all += k
		}
	}
	if b.Users != users || all < filled+n {
		t.Errorf("%d users in the batch, %d of %d wrong reports examined: %v", b.Users, all, filled+n, examined)
	}
	fmt.Printf(
		"flood over NATS: %d wrong reports absorbed in %v, %.0f a second, %d examined; %d publishes were refused and made again\n",
		n, took.Round(time.Millisecond), float64(n)/took.Seconds(), all, refused)
}

// onNATS starts a server, which listens if it is configured to, and returns so many connections to it.
func onNATS(t *testing.T, n int, c embedded.Config) (conns []*natsjs.Conn) {
	t.Helper()
	c.StoreDir = t.TempDir()
	server, err := embedded.Start(c)
	check(t, err)
	t.Cleanup(server.Shutdown)
	connect := server.Connect
	if c.Listen != "" {
		connect = func(to natsjs.ConnectConfig) (*natsjs.Conn, error) {
			to.URL = server.URL()
			return natsjs.Connect(to)
		}
	}
	for range n {
		conn, err := connect(natsjs.ConnectConfig{})
		check(t, err)
		t.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	return conns
}

// opened waits for the first attempt at a round.
func (w *world) opened(ctx context.Context, t *testing.T, records stream.Records, r stream.Round) *invitation {
	t.Helper()
	o := &wire.Open{}
	_, err := seal.Verify(poll(ctx, t, records, w.name.Open(r, 1)), w.stage.Public(), o)
	check(t, err)
	return &invitation{round: r, attempt: 1, suite: o.Suite, context: seal.Context{
		ManifestHash: stream.Hash(o.ManifestHash), Attempt: 1, StageKey: w.stage.Public(), Public: o.PublicKey}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// poll waits for a record.
func poll(ctx context.Context, t *testing.T, records stream.Records, subject string) []byte {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		m, err := records.Get(ctx, subject)
		if err == nil {
			return m.Data
		}
		if !errors.Is(err, stream.ErrNotFound) || ctx.Err() != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		<-tick.C
	}
}

// insist publishes until all is stored, as devices do, and returns how often the broker refused. What was refused has
// not been stored, so its retry is no duplicate.
func insist(ctx context.Context, t *testing.T, conn *natsjs.Conn, pending ...stream.Outgoing) (refused int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	doubtful := map[[16]byte]bool{}
	for len(pending) > 0 && ctx.Err() == nil {
		acks, err := conn.Publish(ctx, pending)
		check(t, err)
		var again []stream.Outgoing
		for i, a := range acks {
			switch a.Status {
			case stream.Refused:
				refused++
				again = append(again, pending[i])
			case stream.Unknown:
				doubtful[pending[i].ID] = true
				again = append(again, pending[i])
			case stream.Duplicate:
				if !doubtful[pending[i].ID] {
					t.Errorf("a report that was never stored is called a duplicate of number %d", a.Sequence)
				}
			}
		}
		if pending = again; len(pending) > 0 {
			<-tick.C
		}
	}
	return refused
}
