package cluster

import (
	"math"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A summary holds the counts that a publisher prints.
type summary struct{ Events, Counted, Uncounted, Unknown, Refused, Invalid, Rounds int }

// audit waits for the end of the task, and checks what must hold. Void rounds are charged and take no step.
func (d *deployment) audit() {
	d.t.Helper()
	for _, p := range d.processes() {
		if !d.ended(p) {
			d.t.FailNow()
		}
		if p.Lives() != 1 {
			d.t.Errorf("%s had %d lives", p.Name, p.Lives())
		}
	}
	var status struct{ Round, Rounds, Users int }
	d.command(&status, "status", programs.Learner, "status", "--state", d.path("state"), "--json")
	var ledger struct {
		Entries []struct {
			Round, Attempt uint64
			Users          int
			Kind           string
		}
		Intact  bool
		Epsilon float64
	}
	d.command(&ledger, "ledger", programs.Learner, "ledger", "--state", d.path("state"), "--json")
	var snapshot struct {
		Round   int
		Weights []float64
		Privacy struct{ Users int }
	}
	d.command(&snapshot, "snapshot", programs.Learner, "snapshot", "--state", d.path("state"))
	if !ledger.Intact || ledger.Epsilon > 8 || ledger.Epsilon <= 0 {
		d.t.Errorf("ledger intact %v, epsilon %v", ledger.Intact, ledger.Epsilon)
	}
	charged := map[uint64]int{} // users of the rounds that were released
	for _, e := range ledger.Entries {
		if e.Kind == "spent" {
			charged[e.Round] += e.Users
		}
	}
	released, steps := 0, 0
	for r := uint64(1); r <= uint64(status.Round); r++ {
		var signed wire.Signed
		var b wire.Batch
		if err := stream.Unmarshal(d.get(name.Batch(stream.Round(r))).Data, &signed); err != nil {
			d.t.Fatal(err)
		}
		if err := stream.Unmarshal(signed.Body, &b); err != nil {
			d.t.Fatal(err)
		}
		if !b.Void {
			steps++
			released += int(b.Users)
		}
		if charged[r] != int(b.Users) {
			d.t.Errorf("round %d: %d users in the batch, void %v, and %d in the ledger", r, b.Users, b.Void, charged[r])
		}
	}
	var total summary
	for _, p := range d.publishers {
		var s summary
		d.printed(&s, p)
		if s.Events != s.Counted+s.Uncounted+s.Unknown+s.Refused || s.Events != d.rows() {
			d.t.Errorf("%s: %+v does not add up to %d", p.Name, s, d.rows())
		}
		total.Counted, total.Uncounted, total.Unknown = total.Counted+s.Counted, total.Uncounted+s.Uncounted, total.Unknown+
			s.Unknown
	}
	// A user in a batch is counted or unknown: more users in batches than such events would be users in two.
	if released > total.Counted+total.Unknown {
		d.t.Errorf("%d users in batches, %d counted and %d unknown events", released, total.Counted, total.Unknown)
	}
	if steps != d.rounds || status.Users != released || snapshot.Round != status.Round || snapshot.Privacy.Users == 0 ||
		len(snapshot.Weights) != 3 {
		d.t.Errorf("%d steps, want %d; status %+v, %d users released, snapshot of round %d with %d weights",
			steps, d.rounds, status, released, snapshot.Round, len(snapshot.Weights))
	}
	norm := 0.0
	for _, w := range snapshot.Weights {
		norm = math.Hypot(norm, w)
	}
	if !(norm <= 1+1e-9) { // also of NaN
		d.t.Errorf("weights of norm %v, outside the radius", norm)
	}
	d.t.Logf("%d rounds, %d void; %d users released; publishers: %+v", status.Round, status.Round-steps, released, total)
}

// replicas waits until all servers that run hold the same of the streams that are written once, and insists that
// nothing ever came and went there: as many messages as sequences and subjects. Every stream has three copies.
func (d *deployment) replicas(c *procs.Cluster) {
	d.t.Helper()
	if err := c.WaitHealthy(d.ctx); err != nil {
		d.t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches} {
		var held []procs.StreamState
		for same := false; !same; {
			held = nil
			for _, n := range c.Nodes {
				if !n.Running() {
					continue
				}
				all, err := n.Streams(d.ctx)
				if err != nil {
					d.t.Fatal(err)
				}
				held = append(held, all[name.Name(s)])
			}
			same = true
			for _, h := range held {
				if h.Replicas != 0 && h.Replicas != 3 { // 0: the server does not know the stream yet
					d.t.Fatalf("%v has %d replicas", s, h.Replicas)
				}
				h.Leader = held[0].Leader
				same = same && h == held[0]
			}
			if !same {
				select {
				case <-tick.C:
				case <-d.ctx.Done():
					d.t.Fatalf("%v: servers do not agree: %+v", s, held)
				}
			}
		}
		if h := held[0]; h.Replicas != 3 || h.Messages == 0 || h.Messages != h.LastSeq || h.Subjects != h.LastSeq {
			d.t.Errorf("%v: %+v: want three replicas, and as many messages as sequences and subjects", s, h)
		}
	}
}
