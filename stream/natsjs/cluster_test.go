package natsjs_test

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// nodes of a cluster: the least of which a majority outlives one.
const nodes = 3

// servers are three servers in this process that replicate.
type servers struct {
	t       testing.TB
	options [nodes]*server.Options
	running [nodes]*server.Server
}

// cluster starts three servers and waits until they have a leader. Somebody may take a port before its server does;
// then others are tried.
func cluster(t testing.TB) *servers {
	t.Helper()
	for range 5 {
		if c := tryCluster(t); c != nil {
			return c
		}
	}
	t.Fatal("the cluster did not start on any ports")
	return nil
}

func tryCluster(t testing.TB) *servers {
	t.Helper()
	c := &servers{t: t}
	var ports []int
	var routes []string
	for range 2 * nodes {
		ports = append(ports, freePort(t))
	}
	for _, p := range ports[nodes:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	for i := range nodes {
		c.options[i] = &server.Options{
			ServerName: fmt.Sprintf("node-%d", i), NoSigs: true, Host: "127.0.0.1", Port: ports[i], DisableJetStreamBanner: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 40,
			MaxPayload: natsjs.DefaultMaxPayload,
			Cluster:    server.ClusterOpts{Name: "panlearn", Host: "127.0.0.1", Port: ports[nodes+i], NoAdvertise: true},
			Routes:     server.RoutesFromStr(strings.Join(routes, ",")),
		}
	}
	t.Cleanup(func() {
		for _, s := range c.running {
			if s != nil {
				s.Shutdown()
				s.WaitForShutdown()
			}
		}
	})
	for i := range nodes {
		if !c.start(i) {
			return nil
		}
	}
	c.wait("to form", func() bool { return c.healthy() })
	return c
}

// freePort returns a port below the range of outgoing connections, which may take any port there.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(18000))
		if err != nil {
			t.Fatal(err)
		}
		port := 12000 + int(n.Int64())
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// A fatalLog remembers that a server could not start, where its own logger exits the process.
type fatalLog struct{ fatal atomic.Bool }

func (*fatalLog) Noticef(string, ...any)  {}
func (*fatalLog) Warnf(string, ...any)    {}
func (*fatalLog) Errorf(string, ...any)   {}
func (*fatalLog) Debugf(string, ...any)   {}
func (*fatalLog) Tracef(string, ...any)   {}
func (l *fatalLog) Fatalf(string, ...any) { l.fatal.Store(true) }

// start starts server i and reports whether it took its ports.
func (c *servers) start(i int) bool {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	log := new(fatalLog)
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	c.running[i] = s
	c.wait("to listen", func() bool { return log.fatal.Load() || s.ReadyForConnections(time.Millisecond) })
	return !log.fatal.Load()
}

// wait asks until a condition holds.
func (c *servers) wait(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("waited too long for the cluster %s", what)
		}
	}
}

// healthy reports whether all servers know a leader and have caught up with it.
func (c *servers) healthy() bool {
	led := false
	for _, s := range c.running {
		if !s.JetStreamEnabled() || !s.JetStreamIsCurrent() || s.NumRoutes() < nodes-1 {
			return false
		}
		led = led || s.JetStreamIsLeader()
	}
	return led
}

// url names all servers.
func (c *servers) url() string {
	var all []string
	for i := range nodes {
		all = append(all, c.address(i))
	}
	return strings.Join(all, ",")
}

func (c *servers) address(i int) string { return fmt.Sprintf("nats://127.0.0.1:%d", c.options[i].Port) }

// connect connects to all servers.
func (c *servers) connect(config natsjs.ConnectConfig) *natsjs.Conn {
	c.t.Helper()
	config.URL = c.url()
	conn, err := natsjs.Connect(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	return conn
}

// stepDown has the leader of a stream hand over, if it has one now.
func stepDown(t testing.TB, operator *natsjs.Conn, name string) {
	t.Helper()
	answer, err := operator.NATS().Request("$JS.API.STREAM.LEADER.STEPDOWN."+name, nil, 10*time.Second)
	if err != nil {
		t.Logf("step down: %v", err)
		return
	}
	t.Logf("leader of %s: %s", name, answer.Data)
}

// replicas returns what every running server holds of a task's streams, by the streams' names.
func (c *servers) replicas(task stream.Task) map[string][]server.StreamDetail {
	c.t.Helper()
	all := map[string][]server.StreamDetail{}
	for _, s := range c.running {
		info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, a := range info.AccountDetails {
			for _, d := range a.Streams {
				if strings.HasPrefix(d.Name, "PANLEARN_"+string(task)+"_") {
					all[d.Name] = append(all[d.Name], d)
				}
			}
		}
	}
	return all
}

// agreed waits until every server holds the same of a put-once stream, and insists that nothing was ever overwritten or
// deleted there: as many messages as sequences and subjects.
func (c *servers) agreed(task stream.Task, s stream.Stream, subjects uint64) {
	c.t.Helper()
	var held []server.StreamDetail
	c.wait("to agree on "+task.Name(s), func() bool {
		held = c.replicas(task)[task.Name(s)]
		for _, d := range held {
			if d.State.LastSeq != held[0].State.LastSeq || d.State.Msgs != held[0].State.Msgs {
				return false
			}
		}
		return len(held) > 0 && held[0].State.LastSeq >= subjects
	})
	for _, d := range held {
		if d.State.Msgs != subjects || d.State.FirstSeq != 1 || d.State.LastSeq != subjects ||
			d.State.NumSubjects != int(subjects) || d.State.NumDeleted != 0 {
			c.t.Errorf("%s: %+v, want %d subjects of one message each", d.Name, d.State, subjects)
		}
	}
}
