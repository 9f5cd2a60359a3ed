package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
)

// A replicated deployment is one on three servers.
type replicated struct {
	*deployment
	*procs.Cluster
}

func replicate(t testing.TB, p plan) replicated {
	t.Helper()
	c := procs.StartCluster(t, programs, procs.ServerOptions{})
	url := c.URL()
	return replicated{deploy(t, p, url, addresses{url, [2]string{url, url}, [publishers]string{url, url}}, 3), c}
}

// leads finds the node that leads a stream.
func (r replicated) leads(s stream.Stream) int {
	r.t.Helper()
	node, err := r.Leader(r.ctx, name.Name(s))
	if err != nil {
		r.t.Fatal(err)
	}
	return node
}

func (r replicated) kill(node int) {
	r.t.Helper()
	if !r.Kill(node) {
		r.t.Fatalf("node %d was not there to be killed", node)
	}
}

// back restarts a node and waits until the cluster is whole, so that the next loss is again of one node.
func (r replicated) back(node int) {
	r.t.Helper()
	if err := errors.Join(r.Restart(node), r.WaitHealthy(r.ctx)); err != nil {
		r.t.Fatal(err)
	}
}

// TestLeaderLost: the leader of the batches dies in the middle of a task and comes back, and nobody else ends.
func TestLeaderLost(t *testing.T) {
	t.Parallel()
	r := replicate(t, plan{rounds: 4, cohort: 20, lease: 15 * time.Second})
	r.reached(1)
	lost := r.leads(stream.Batches)
	r.kill(lost)
	r.reached(2)
	r.back(lost)
	r.audit()
	r.replicas(r.Cluster)
}

// TestNodeStaysDead: from the second round on the task has two servers.
func TestNodeStaysDead(t *testing.T) {
	if !longtest.Run(t, "a server that does not come back") {
		return
	}
	for _, s := range []stream.Stream{stream.Batches, stream.Reports, stream.Attempts} {
		t.Run(s.String(), func(t *testing.T) {
			r := replicate(t, plan{rounds: 8, cohort: 40, lease: 15 * time.Second})
			r.reached(1)
			r.kill(r.leads(s))
			r.audit()
			r.replicas(r.Cluster)
		})
	}
}

// TestNodesLostInTurn kills servers over and over: leaders of one stream after the other, then whichever comes.
func TestNodesLostInTurn(t *testing.T) {
	if !longtest.Run(t, "the loss of a server in each of 40 rounds") {
		return
	}
	const rounds = 40
	r := replicate(t, plan{rounds: rounds, cohort: 40, lease: 6 * time.Second})
	streams := []stream.Stream{stream.Batches, stream.Reports, stream.Attempts, stream.Rounds, stream.Leases}
	for round := 1; round < rounds; round++ {
		r.reached(round)
		lost := r.leads(streams[round%len(streams)])
		switch round % 4 {
		case 3: // silent, with its connections open, for longer than a lease
			if err := r.Nodes[lost].Freeze(); err != nil {
				t.Fatal(err)
			}
			outage := 8 * time.Second
			if round == 7 { // until its clients give the connection up
				outage = 45 * time.Second
			}
			last(outage)
			if err := errors.Join(r.Nodes[lost].Thaw(), r.WaitHealthy(r.ctx)); err != nil {
				t.Fatal(err)
			}
		default:
			r.kill(lost)
			if round%4 == 1 { // down for a while, or back at once
				last(3 * time.Second)
			}
			r.back(lost)
		}
		t.Logf("round %d: lost node %d, the leader of %v", round, lost, streams[round%len(streams)])
	}
	r.audit()
	r.replicas(r.Cluster)
}
