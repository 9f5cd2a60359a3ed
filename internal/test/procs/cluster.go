package procs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// nodes of a cluster: the least of which a majority outlives one.
const nodes = 3

// A Cluster is three nats-servers on loopback that replicate JetStream. Its nodes are numbered from 0.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts three servers and returns when all are healthy and have a leader.
func StartCluster(t testing.TB, p *Programs, o ServerOptions) *Cluster {
	t.Helper()
	if o.Name == "" {
		o.Name = "broker"
	}
	ports, err := FreePorts(3 * nodes)
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for i := range nodes {
		routes = append(routes, fmt.Sprintf("\"nats://127.0.0.1:%d\"", ports[3*i+2]))
	}
	c := &Cluster{}
	for i := range nodes {
		one := o
		one.Name = fmt.Sprintf("%s%d", o.Name, i)
		s, err := newServer(t, p, one, ports[3*i:],
			fmt.Sprintf("cluster: {name: panlearn, listen: \"127.0.0.1:%d\", no_advertise: true, routes: [%s]}",
				ports[3*i+2], strings.Join(routes, ", ")))
		if err == nil {
			err = s.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Nodes = append(c.Nodes, s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := c.WaitHealthy(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// URL names all nodes: a client that loses one goes to another.
func (c *Cluster) URL() string {
	var all []string
	for _, s := range c.Nodes {
		all = append(all, s.URL())
	}
	return strings.Join(all, ",")
}

// Kill ends a node with SIGKILL and returns when it is gone. It reports whether that is what ended it.
func (c *Cluster) Kill(node int) bool { return c.Nodes[node].Kill() }

// Restart begins another life of a node on the same folder and ports. It does not wait for its health.
func (c *Cluster) Restart(node int) error { return c.Nodes[node].Restart() }

// WaitHealthy waits until every node that runs is connected to each other that runs, knows a leader of the cluster, and
// has caught up with its streams and consumers.
func (c *Cluster) WaitHealthy(ctx context.Context) error {
	return until(ctx, "the cluster to be healthy", func() error {
		running := 0
		for _, s := range c.Nodes {
			if s.Running() {
				running++
			}
		}
		if 2*running <= nodes {
			return fatalError{fmt.Errorf("%d of %d nodes run: no majority", running, nodes)}
		}
		var errs []error
		for _, s := range c.Nodes {
			if s.Running() {
				errs = append(errs, s.joined(ctx, running-1))
			}
		}
		return errors.Join(errs...)
	})
}

// joined returns nil if a node is healthy among its peers, or an error that names what it lacks.
func (s *Server) joined(ctx context.Context, peers int) error {
	var routes struct {
		Routes []struct {
			Remote string `json:"remote_name"`
		} `json:"routes"`
	}
	if err := s.ask(ctx, "/routez", &routes); err != nil {
		return err
	}
	met := map[string]bool{} // a pair of nodes has several routes
	for _, r := range routes.Routes {
		met[r.Remote] = true
	}
	if len(met) < peers {
		return fmt.Errorf("%s has routes to %d of %d peers", s.Name, len(met), peers)
	}
	info, err := s.jetStream(ctx, "/jsz")
	if err != nil {
		return err
	}
	if info.Meta.Leader == "" {
		return fmt.Errorf("%s knows no leader", s.Name)
	}
	return s.ask(ctx, "/healthz", nil)
}

// jetStreamInfo is the part that we read of /jsz.
type jetStreamInfo struct {
	Meta struct {
		Leader string `json:"leader"`
	} `json:"meta_cluster"`
	Accounts []struct {
		Streams []struct {
			Name    string `json:"name"`
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
		} `json:"stream_detail"`
	} `json:"account_details"`
}

func (s *Server) jetStream(ctx context.Context, path string) (info jetStreamInfo, err error) {
	err = s.ask(ctx, path, &info)
	return info, err
}

// Leader finds the node that leads a stream now, among those that run. It waits while there is none.
func (c *Cluster) Leader(ctx context.Context, stream string) (node int, err error) {
	return c.find(ctx, "a leader of "+stream, "/jsz?accounts=true&streams=true", func(info jetStreamInfo) string {
		for _, a := range info.Accounts {
			for _, s := range a.Streams {
				if s.Name == stream {
					return s.Cluster.Leader
				}
			}
		}
		return ""
	})
}

// metaLeader finds the node that leads the cluster, which places and creates streams.
func (c *Cluster) metaLeader(ctx context.Context) (node int, err error) {
	return c.find(ctx, "a leader of the cluster", "/jsz", func(info jetStreamInfo) string { return info.Meta.Leader })
}

// find asks every node until one that runs says of itself that it leads: others may still name one that is gone.
func (c *Cluster) find(ctx context.Context, what, path string, leader func(jetStreamInfo) string) (node int,
	err error) {
	err = until(ctx, what, func() error {
		for i, s := range c.Nodes {
			if !s.Running() {
				continue
			}
			if info, err := s.jetStream(ctx, path); err == nil && leader(info) == s.Name {
				node = i
				return nil
			}
		}
		return errors.New("no node leads")
	})
	return node, err
}
