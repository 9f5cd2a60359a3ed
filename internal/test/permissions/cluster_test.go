package permissions

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// A site holds the files that devca wrote, for one server or three.
type site struct {
	dir    string
	routes []string // where the links of each server listen
}

func (s site) at(name string) string { return filepath.Join(s.dir, name) }

func (s site) login(role string) natsjs.ConnectConfig {
	return natsjs.ConnectConfig{NKey: s.at(role + ".nk"), TLSCA: s.at("ca.pem"), TLSCert: s.at(role + ".pem"),
		TLSKey: s.at(role + "-key.pem")}
}

// freePorts returns addresses of this machine that nobody listens on.
func freePorts(t testing.TB, n int) (all []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// three writes the files of three servers of this machine.
func three(t testing.TB) site {
	t.Helper()
	s := site{filepath.Join(t.TempDir(), "site"), freePorts(t, 3)}
	err := devca.Write(devca.Config{Dir: s.dir, Servers: s.routes, Publishers: 2, Lifetime: time.Hour, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve starts the three servers and waits until they are one cluster.
func (s site) serve(t testing.TB) []*server.Server {
	t.Helper()
	var all []*server.Server
	for i := range s.routes {
		all = append(all, startServer(t, s.at(fmt.Sprintf("server-%d/cluster.conf", i+1))))
	}
	eventually(t, "three servers are one cluster with a leader", func() bool {
		leaders := 0
		for _, one := range all {
			if one.JetStreamIsLeader() && len(one.JetStreamClusterPeers()) == len(all) {
				leaders++
			}
			if !one.JetStreamIsCurrent() {
				return false
			}
		}
		return leaders == 1
	})
	return all
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for tick, end := time.NewTicker(10*time.Millisecond), time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// sameTLS returns the cluster that one would write first: links with the files of the clients' port.
func sameTLS(t testing.TB) (site, *server.Server) {
	t.Helper()
	s := site{filepath.Join(t.TempDir(), "site"), freePorts(t, 1)}
	if err := devca.Write(devca.Config{Dir: s.dir, Publishers: 2, Lifetime: time.Hour, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`include "panlearn.conf"
server_name: alone
cluster { name: panlearn, listen: "%s", routes: ["nats://%[1]s"]
  tls { cert_file: $SERVER_CERT, key_file: $SERVER_KEY, ca_file: $CA, verify: true, min_version: "1.3" } }
`, s.routes[0])
	if err := os.WriteFile(s.at("cluster.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, startServer(t, s.at("cluster.conf"))
}

// rogue returns a server with a role's certificate, which links to the address.
func (s site) rogue(t testing.TB, role, address string) *server.Server {
	t.Helper()
	ca, err := os.ReadFile(s.at("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if more, err := os.ReadFile(s.at("server-1/route-ca.pem")); err == nil { // the attacker believes everybody
		ca = append(ca, more...)
	}
	believed := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(believed, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return startServer(t, write(t, fmt.Sprintf(`server_name: rogue-%s
jetstream: enabled
accounts { PANLEARN { jetstream: enabled, users: [{user: rogue, password: x}] } }
cluster { name: panlearn, listen: "127.0.0.1:-1", routes: ["nats://%s"]
  tls { cert_file: "%s", key_file: "%s", ca_file: "%s" } }
`, role, address, s.at(role+".pem"), s.at(role+"-key.pem"), believed)))
}

// TestOnlyServersJoin: a publisher, stage, learner or administrator who runs a server is refused by the shipped
// cluster, and was taken by the one that shows the users' authority on its links.
func TestOnlyServersJoin(t *testing.T) {
	bad, target := sameTLS(t)
	bad.rogue(t, publisher, bad.routes[0])
	eventually(t, "a publisher's server joins a cluster whose links believe the users' authority",
		func() bool { return target.NumRoutes() > 0 })

	s := three(t)
	servers := s.serve(t)
	c := connectTo(t, servers[0], s.login(admin))
	for _, role := range []string{admin, learner, stage, helper, publisher} {
		conn := connectTo(t, servers[0], s.login(role))
		for _, address := range s.routes {
			if joins, err := conn.Certificates().JoinsAsServer(t.Context(), address); joins || err != nil {
				t.Errorf("%s as a server at %s: joins %t, %v; want refused", role, address, joins, err)
			}
		}
	}
	if err := natsadmin.Provision(t.Context(), c, task, natsadmin.Options{Replicas: 3}); err != nil {
		t.Errorf("three copies on the shipped cluster: %v", err)
	}
	// A whole server: the one that refused it says so.
	log := new(refusals)
	servers[0].SetLogger(log, false, false)
	rogue := s.rogue(t, publisher, s.routes[0])
	eventually(t, "the refusal", func() bool { return log.seen.Load() })
	if rogue.NumRoutes() != 0 {
		t.Errorf("a publisher's server has %d links to the shipped cluster", rogue.NumRoutes())
	}
	// A server's certificate of the clients' port is none of the links either.
	if conn := connectTo(t, servers[0], site{dir: s.dir}.as("server-1/server", s.login(admin))); conn != nil {
		if joins, err := conn.Certificates().JoinsAsServer(t.Context(), s.routes[1]); joins || err != nil {
			t.Errorf("the certificate of the clients' port: joins %t, %v; want refused", joins, err)
		}
	}
}

// refusals is a server's log that notes an error of its links.
type refusals struct{ seen atomic.Bool }

func (r *refusals) Noticef(string, ...any) {}
func (r *refusals) Warnf(string, ...any)   {}
func (r *refusals) Fatalf(string, ...any)  {}
func (r *refusals) Debugf(string, ...any)  {}
func (r *refusals) Tracef(string, ...any)  {}
func (r *refusals) Errorf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, "TLS route handshake error") {
		r.seen.Store(true)
	}
}

// as returns the login with another certificate.
func (s site) as(name string, c natsjs.ConnectConfig) natsjs.ConnectConfig {
	c.TLSCert, c.TLSKey = s.at(name+".pem"), s.at(name+"-key.pem")
	return c
}

func connectTo(t testing.TB, s *server.Server, c natsjs.ConnectConfig) *natsjs.Conn {
	t.Helper()
	c.URL = "nats://" + s.Addr().String()
	conn, err := natsjs.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestShippedPorts: the shipped configurations open the clients' port and, of a cluster, the links: none for leaf
// nodes, gateways, websockets or MQTT, where certificates or permissions would be others, and no monitoring port.
func TestShippedPorts(t *testing.T) {
	s := three(t)
	for _, file := range []string{"server-1/panlearn.conf", "server-1/cluster.conf"} {
		o, err := server.ProcessConfigFile(s.at(file))
		if err != nil {
			t.Fatal(err)
		}
		if o.LeafNode.Port != 0 || len(o.LeafNode.Remotes) != 0 || o.Gateway.Port != 0 || o.Websocket.Port != 0 ||
			o.MQTT.Port != 0 ||
			o.HTTPPort != 0 || o.HTTPSPort != 0 || o.AccountResolver != nil || o.ProfPort != 0 {
			t.Errorf("%s opens more than the clients' port and the links", file)
		}
		if want := strings.HasSuffix(file, "cluster.conf"); (o.Cluster.Port != 0) != want {
			t.Errorf("%s: links %t, want %t", file, !want, want)
		}
	}
	users, links := read(t, s.at("server-1/ca.pem")), read(t, s.at("server-1/route-ca.pem"))
	if bytes.Equal(users, links) {
		t.Error("the links believe the users' authority")
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDoctorSeesOpenLinks: with any role's credentials.
func TestDoctorSeesOpenLinks(t *testing.T) {
	bad, target := sameTLS(t)
	good := three(t)
	servers := good.serve(t)
	plain := freePorts(t, 1)[0]
	bare := startServer(t, write(t, fmt.Sprintf("server_name: bare\ncluster {name: c, listen: \"%s\"}\n", plain)))
	closed := freePorts(t, 1)[0]
	for _, test := range []struct {
		what   string
		conn   *natsjs.Conn
		routes []string
		want   natsadmin.Status
		text   string
	}{
		{"same TLS", connectTo(t, target, bad.login(publisher)), bad.routes, natsadmin.Failure, "joins as a server"},
		{"shipped", connectTo(t, servers[0], good.login(publisher)), good.routes, natsadmin.OK, "refuse"},
		{"shipped, administrator", connectTo(t, servers[1], good.login(admin)), good.routes, natsadmin.OK, "refuse"},
		{"no TLS", connectTo(t, bare, natsjs.ConnectConfig{}), []string{plain}, natsadmin.Failure, "joins as a server"},
		{"nobody there", connectTo(t, servers[0], good.login(admin)), []string{closed}, natsadmin.Warning, "not seen"},
		{"not named", connectTo(t, servers[0], good.login(admin)), nil, natsadmin.Warning, "--route"},
	} {
		list, err := natsadmin.Examine(t.Context(), test.conn, "", natsadmin.Expect{Now: time.Now(), Routes: test.routes})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range list {
			if f.Check == "links" {
				found = true
				if f.Status != test.want || !strings.Contains(f.Text, test.text) {
					t.Errorf("%s: %s %s, want %s, %q", test.what, f.Status, f.Text, test.want, test.text)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing is said of the links", test.what)
		}
	}
}
