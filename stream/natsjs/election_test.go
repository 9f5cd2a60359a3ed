package natsjs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
)

// TestCluster is what a task needs of three servers that replicate: streams as the protocol wants them on every one, no
// second batch, and writes that ride through elections. internal/test/cluster kills servers.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	admin := c.connect(ConnectConfig{})
	t.Run("Provision", func(t *testing.T) { provisionReplicas(t, c, admin) })
	t.Run("SecondBatch", func(t *testing.T) {
		secondBatch(t, admin, c.address(c.leader("PANLEARN_replicas_BATCHES")), Options{Replicas: 3})
	})
	rounds := 3
	if longtest.Run(t, "all but the first 3 of 60 rounds with elections under way") {
		rounds = 60
	}
	t.Run("Elections", func(t *testing.T) { elections(t, c, admin, rounds) })
}

// provisionReplicas: every stream of a task has three copies, a leader, and the protocol's settings on each server.
func provisionReplicas(t *testing.T, c *servers, admin *Conn) {
	const name stream.Task = "replicas"
	o := Options{Replicas: 3}
	provision(t, admin, name, o)
	provision(t, admin, name, o)
	if err := WaitStreams(t.Context(), admin, name, time.Second); err != nil {
		t.Fatal(err)
	}
	c.wait("to hold every stream", func() bool {
		held := c.replicas(name)
		for _, s := range all() {
			if len(held[name.Name(s)]) != nodes {
				return false
			}
		}
		return true
	})
	for _, s := range all() {
		for _, d := range c.replicas(name)[name.Name(s)] {
			if d.Config.Replicas != nodes || d.Cluster == nil || len(d.Cluster.Replicas) != nodes-1 {
				t.Errorf("%s: %d replicas configured, %+v", d.Name, d.Config.Replicas, d.Cluster)
			}
		}
		c.leader(name.Name(s))
		h, err := admin.js.Stream(t.Context(), name.Name(s))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		if d := compare(critical(s, streamConfig(name, s, o)), critical(s, h.CachedInfo().Config)); len(d) > 0 {
			t.Errorf("%v: %v", s, d)
		}
	}
	// One copy where three are asked for is no replacement; three where one is asked for are.
	provision(t, admin, "single", Options{})
	if err := Provision(t.Context(), admin, "single", o); err == nil {
		t.Error("streams of one replica stand for streams of three")
	}
	provision(t, admin, name, Options{})
}

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

// elections has stages race for the claim and the batch of round after round, while the leader of either stream is made
// to step down as they write. Each stage releases only what it claimed.
func elections(t *testing.T, c *servers, admin *Conn, rounds int) {
	const name stream.Task = "elections"
	provision(t, admin, name, Options{Replicas: 3})
	const stages = 4
	h := &history{t: t, seen: map[string]stream.Message{}}
	var stage [stages]*Conn
	for i := range stage {
		stage[i] = c.connect(ConnectConfig{AckTimeout: 2 * time.Second})
	}
	for r := uint64(1); r <= uint64(rounds); r++ {
		var group sync.WaitGroup
		var won atomic.Int64
		for i := range stages {
			group.Go(func() {
				mine := fmt.Sprintf("stage %d, round %d", i, r)
				claim := put(t, stage[i], name.Claim(stream.Round(r)), mine)
				h.saw(claim.Standing)
				if claim.Ours {
					won.Add(1)
					batch := put(t, stage[i], name.Batch(stream.Round(r)), mine)
					h.saw(batch.Standing)
					if !batch.Ours {
						t.Errorf("%s was claimed, and %q stands", mine, batch.Standing.Data)
					}
				}
			})
		}
		stepDown(t, admin, name.Name([]stream.Stream{stream.Attempts, stream.Batches}[r%2]))
		group.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d stages won the claim", r, won.Load())
		}
		stepDown(t, admin, name.Name(stream.Batches))
		late := put(t, stage[r%stages], name.Batch(stream.Round(r)), "somebody who was asleep")
		if late.Ours {
			t.Fatalf("round %d: a second batch stands", r)
		}
		h.saw(late.Standing)
	}
	for _, s := range []stream.Stream{stream.Attempts, stream.Batches} {
		c.agreed(name, s, uint64(rounds))
	}
}
