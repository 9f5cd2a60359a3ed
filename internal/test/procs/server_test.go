package procs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

const task = stream.Task("procs")

// connect connects to servers and creates the streams of a task.
func connect(t *testing.T, url string, replicas int) *natsjs.Conn {
	t.Helper()
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := natsadmin.Provision(t.Context(), c, task, natsadmin.Options{Replicas: replicas}); err != nil {
		t.Fatal(err)
	}
	return c
}

// put writes a record, and tries again until the servers answer: that is always safe.
func put(t *testing.T, c *natsjs.Conn, round uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	err := until(ctx, fmt.Sprintf("round %d to be written", round), func() error {
		r, err := c.PutOnce(ctx, task.Round(stream.Round(round)), []byte{byte(round)})
		if err == nil && !r.Ours {
			return fatalError{fmt.Errorf("round %d: %x stands there", round, r.Standing.Data)}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has checks that rounds 1 to last are there.
func has(t *testing.T, c *natsjs.Conn, last uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	for r := uint64(1); r <= last; r++ {
		err := until(ctx, fmt.Sprintf("round %d", r), func() error {
			m, err := c.Get(ctx, task.Round(stream.Round(r)))
			if err == nil && (len(m.Data) != 1 || m.Data[0] != byte(r)) {
				return fatalError{fmt.Errorf("round %d is %x", r, m.Data)}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerKeepsWhatItAcknowledged through kill -9.
func TestServerKeepsWhatItAcknowledged(t *testing.T) {
	s := StartServer(t, programs, ServerOptions{})
	c := connect(t, s.URL(), 1)
	for r := uint64(1); r <= 2; r++ {
		put(t, c, r)
		if !s.Kill() {
			t.Error("the server had ended by itself")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitHealthy(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(t, c, r)
	}
}

// TestClusterOutlivesANode: each node is lost once, the leader of the stream first; what is
// acknowledged stays, and what is written meanwhile reaches the node that comes back.
func TestClusterOutlivesANode(t *testing.T) {
	if !longtest.Run(t, "the loss of each node of a cluster, half a minute; internal/test/cluster loses one") {
		return
	}
	c := StartCluster(t, programs, ServerOptions{})
	conn := connect(t, c.URL(), 3)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	name := task.Name(stream.Rounds)
	leader, err := c.Leader(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.metaLeader(ctx); err != nil {
		t.Fatal(err)
	}
	round := uint64(0)
	for lost := range 3 {
		node := (leader + lost) % 3
		round++
		put(t, conn, round)
		if !c.Kill(node) {
			t.Error("the node had ended by itself")
		}
		next, err := c.Leader(ctx, name)
		if err != nil || next == node {
			t.Fatalf("node %d is gone and node %d leads, %v", node, next, err)
		}
		round++
		put(t, conn, round)
		if err := c.Restart(node); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitHealthy(ctx); err != nil {
			t.Fatal(err)
		}
		has(t, conn, round)
	}
	c.Kill(0)
	c.Kill(1)
	if err := c.WaitHealthy(ctx); err == nil {
		t.Error("one node of three is called healthy")
	}
}
