package natsjs_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
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

// TestElections has stages race for the claim and the batch of round after round, while the leader of either stream is
// made to step down as they write. Each stage releases only what it claimed.
func TestElections(t *testing.T) {
	if !longtest.Run(t, "no second claim or batch in 60 rounds with elections under way, about 90 s") {
		return
	}
	const name, rounds = stream.Task("elections"), 60
	c := cluster(t)
	operator := c.connect(natsjs.ConnectConfig{})
	provision(t, operator, name, natsadmin.Options{Replicas: nodes})
	const stages = 4
	h := &history{t: t, seen: map[string]stream.Message{}}
	var stage [stages]*natsjs.Conn
	for i := range stage {
		stage[i] = c.connect(natsjs.ConnectConfig{AckTimeout: 2 * time.Second})
	}
	for r := stream.Round(1); r <= rounds; r++ {
		var group sync.WaitGroup
		var won atomic.Int64
		for i := range stages {
			group.Go(func() {
				mine := fmt.Sprintf("stage %d, round %d", i, r)
				claim := put(t, stage[i], name.Claim(r), mine)
				h.saw(claim.Standing)
				if claim.Ours {
					won.Add(1)
					batch := put(t, stage[i], name.Batch(r), mine)
					h.saw(batch.Standing)
					if !batch.Ours {
						t.Errorf("%s was claimed, and %q stands", mine, batch.Standing.Data)
					}
				}
			})
		}
		stepDown(t, operator, name.Name([]stream.Stream{stream.Attempts, stream.Batches}[r%2]))
		group.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d stages won the claim", r, won.Load())
		}
		stepDown(t, operator, name.Name(stream.Batches))
		late := put(t, stage[r%stages], name.Batch(r), "somebody who was asleep")
		if late.Ours {
			t.Fatalf("round %d: a second batch stands", r)
		}
		h.saw(late.Standing)
	}
	for _, s := range []stream.Stream{stream.Attempts, stream.Batches} {
		c.agreed(name, s, rounds)
	}
}
