package procs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startLimit bounds the time until a server is healthy, on a machine that is busy with other tests.
const startLimit = 2 * time.Minute

// ServerOptions configures servers. The zero value fits the protocol.
type ServerOptions struct {
	Name     string // of the server, or in front of the numbers of a cluster's; empty: "broker"
	LazySync bool   // sync files now and then, as nats-server does by default: less than the protocol requires
	Extra    string // further lines of the configuration: accounts, tls, limits
}

// A Server is a nats-server with JetStream on its own folder and ports.
type Server struct {
	*Process
	address, monitor string // host:port
	store            string
}

// StartServer starts a server and returns when it is healthy.
func StartServer(t testing.TB, p *Programs, o ServerOptions) *Server {
	t.Helper()
	if o.Name == "" {
		o.Name = "broker"
	}
	ports, err := FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(t, p, o, ports, "")
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := s.WaitHealthy(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// newServer writes a server's configuration. ports holds the port for clients and the port for monitoring.
func newServer(t testing.TB, p *Programs, o ServerOptions, ports []int, cluster string) (*Server, error) {
	s := &Server{address: fmt.Sprintf("127.0.0.1:%d", ports[0]), monitor: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	sync := "always"
	if o.LazySync {
		sync = "2m"
	}
	dir := t.TempDir()
	var config strings.Builder
	fmt.Fprintf(&config, "server_name: %q\nlisten: %q\nhttp: %q\n", o.Name, s.address, s.monitor)
	fmt.Fprintf(&config, "jetstream: {store_dir: %q, sync_interval: %s, max_memory_store: 1GB, max_file_store: 16GB}\n",
		filepath.Join(dir, "jetstream"), sync)
	fmt.Fprintf(&config, "%s\n%s\n", cluster, o.Extra)
	s.store = filepath.Join(dir, "jetstream")
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	s.Process = p.Process(t, o.Name, p.Server, "-c", file)
	return s, nil
}

// Store returns the folder of the server's streams. It may be copied and put back while the server does not run.
func (s *Server) Store() string { return s.store }

// URL returns the address to which clients connect. It stays the same through all lives.
func (s *Server) URL() string { return "nats://" + s.address }

// Restart begins another life on the same folder and ports. It does not wait for the server's health.
func (s *Server) Restart() error { return s.Start() }

// WaitHealthy waits until the server reports that it and its streams are ready, or has ended.
func (s *Server) WaitHealthy(ctx context.Context) error {
	return until(ctx, s.Name+" to be healthy", func() error {
		if !s.Running() {
			return fatalError{fmt.Errorf("%s does not run", s.Name)}
		}
		return s.ask(ctx, "/healthz", nil)
	})
}
