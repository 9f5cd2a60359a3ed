package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// A history is all that anybody ever saw standing.
type history struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[string]stream.Message
}

func (h *history) saw(m stream.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first, ok := h.seen[m.Subject]; ok && (string(first.Data) != string(m.Data) || first.Sequence != m.Sequence) {
		h.t.Errorf("%s: %q at %d stood there, now %q at %d", m.Subject, first.Data, first.Sequence, m.Data, m.Sequence)
	}
	h.seen[m.Subject] = m
}

// put puts until nothing is unknown, as the port asks of its callers.
func put(ctx context.Context, t *testing.T, c *natsjs.Conn, subject, data string) stream.PutResult {
	for {
		r, err := c.PutOnce(ctx, subject, []byte(data))
		if err == nil {
			return r
		}
		if ctx.Err() != nil || errors.Is(err, stream.ErrRefused) {
			t.Errorf("put: %v", err)
			return r
		}
	}
}

// TestPortsOutliveServers: the leader of the batches is killed, the next server frozen, and so on, and meanwhile two
// stages race for the claim and the batch of a round, and a gateway publishes: one of them wins, nothing that was
// acknowledged is lost, no record is there twice, no report becomes two. Then two of three servers are gone. About
// three minutes.
func TestPortsOutliveServers(t *testing.T) {
	if !longtest.Run(t, "nine servers killed or frozen under the ports, and a minority of them") {
		return
	}
	t.Parallel()
	c := procs.StartCluster(t, programs, procs.ServerOptions{})
	ctx := procs.Within(t, limit)
	conn, rival := connect(t, c.URL()), connect(t, c.URL())
	outlive(ctx, t, c, conn, rival, 9)
	minority(ctx, t, c, conn)
}

func outlive(ctx context.Context, t *testing.T, c *procs.Cluster, conn, rival *natsjs.Conn, rounds int) {
	const task stream.Task = "ports"
	if err := natsadmin.Provision(ctx, conn, task, natsadmin.Options{Replicas: 3, AckWait: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	r, err := conn.Reader(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{t: t, seen: map[string]stream.Message{}}
	lost, err := c.Leader(ctx, task.Name(stream.Batches))
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	taken := map[uint64]string{} // sequence to data
	for i := range rounds {
		round := uint64(i + 1)
		var group sync.WaitGroup
		var won [2]bool
		for i, stage := range []*natsjs.Conn{conn, rival} {
			group.Go(func() {
				mine := fmt.Sprintf("stage %d, round %d", i, round)
				claim := put(ctx, t, stage, task.Claim(stream.Round(round)), mine)
				h.saw(claim.Standing)
				if won[i] = claim.Ours; won[i] {
					batch := put(ctx, t, stage, task.Batch(stream.Round(round)), mine)
					h.saw(batch.Standing)
					if !batch.Ours {
						t.Errorf("%s is claimed, and %q stands", mine, batch.Standing.Data)
					}
				}
			})
		}
		group.Go(func() { publish(ctx, t, conn, task, round, n) })
		down, up := func() error { c.Kill(lost); return nil }, func() error { return c.Restart(lost) }
		if i%3 == 1 { // a leader that sleeps through an election, and wakes as if it led
			down, up = c.Nodes[lost].Freeze, c.Nodes[lost].Thaw
		}
		if err := down(); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if won[0] == won[1] {
			t.Errorf("round %d: both stages won, or none: %v", round, won)
		}
		if late := put(ctx, t, rival, task.Batch(stream.Round(round)), "somebody who was asleep"); late.Ours {
			t.Errorf("round %d: a second batch stands", round)
		}
		for len(taken) < (i+1)*n && ctx.Err() == nil {
			got, _ := r.Fetch(ctx, 64, time.Second)
			for _, d := range got {
				if data, again := taken[d.Sequence]; again && data != string(d.Data) {
					t.Errorf("sequence %d was two reports", d.Sequence)
				}
				taken[d.Sequence] = string(d.Data)
				_ = d.Ack() // a lost one is a redelivery
			}
		}
		if err := up(); err != nil {
			t.Fatal(err)
		}
		if late := put(ctx, t, rival, task.Claim(stream.Round(round)), "somebody who was asleep"); late.Ours {
			t.Errorf("round %d: a second claim stands", round)
		}
		if err := c.WaitHealthy(ctx); err != nil {
			t.Fatal(err)
		}
		lost = (lost + 1) % len(c.Nodes)
	}
	users := map[string]bool{}
	for _, data := range taken {
		users[data] = true
	}
	if len(users) != rounds*n || len(taken) != rounds*n {
		t.Errorf("%d reports at %d sequences, want %d", len(users), len(taken), rounds*n)
	}
	for subject, m := range h.seen {
		if r := put(ctx, t, rival, subject, "late"); r.Ours || string(r.Standing.Data) != string(m.Data) ||
			r.Standing.Sequence != m.Sequence {
			t.Errorf("%s: %+v, and %+v stood there", subject, r, m)
		}
	}
}

// publish sends n reports and repeats those whose answer is open, as a gateway does.
func publish(ctx context.Context, t *testing.T, c *natsjs.Conn, task stream.Task, round uint64, n int) {
	open := make([]stream.Outgoing, n)
	for i := range open {
		open[i] = stream.Outgoing{Subject: task.Report(stream.Round(round), 1), Data: fmt.Appendf(nil, "round %d, user %d",
			round, i)}
		binary.BigEndian.PutUint64(open[i].ID[:], round)
		binary.BigEndian.PutUint64(open[i].ID[8:], uint64(i))
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for len(open) > 0 {
		if ctx.Err() != nil {
			t.Errorf("%d reports are still open", len(open))
			return
		}
		acks, _ := c.Publish(ctx, open)
		var again []stream.Outgoing
		for i, a := range acks {
			if a.Status != stream.Stored && a.Status != stream.Duplicate {
				again = append(again, open[i])
			}
		}
		open = again
		<-tick.C
	}
}

// minority: with one server of three nothing is decided and nothing given up, and all goes on when another is back.
func minority(ctx context.Context, t *testing.T, c *procs.Cluster, conn *natsjs.Conn) {
	const task stream.Task = "minority"
	if err := natsadmin.Provision(ctx, conn, task, natsadmin.Options{Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	first := put(ctx, t, conn, task.Claim(1), "first")
	c.Kill(0)
	c.Kill(1)
	short, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	if r, err := conn.PutOnce(short, task.Batch(1), []byte("first")); err == nil {
		t.Errorf("a minority stored %+v", r)
	}
	if r, err := conn.PutOnce(short, task.Claim(1), []byte("second")); err == nil &&
		(r.Ours || string(r.Standing.Data) != "first") {
		t.Errorf("a minority gave the claim away: %+v", r)
	}
	// What waits for the broker when a process starts.
	errs := make([]error, 3)
	var group sync.WaitGroup
	group.Go(func() { errs[0] = natsadmin.WaitStreams(ctx, conn, task, 100*time.Millisecond) })
	group.Go(func() { errs[1] = natsadmin.Provision(ctx, conn, "later", natsadmin.Options{Replicas: 3}) })
	group.Go(func() { _, errs[2] = conn.Reader(ctx, task) })
	// A majority is back, and the streams of one task cannot be placed before the third is.
	if err := c.Restart(0); err != nil {
		t.Fatal(err)
	}
	if r := put(ctx, t, conn, task.Batch(1), "first"); !r.Ours {
		t.Errorf("%+v", r)
	}
	if r := put(ctx, t, conn, task.Claim(1), "second"); r.Ours || r.Standing.Sequence != first.Standing.Sequence {
		t.Errorf("%+v", r)
	}
	if err := errors.Join(c.Restart(1), c.WaitHealthy(ctx)); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("after the servers came back: %v", err)
	}
}
