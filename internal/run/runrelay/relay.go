// Package runrelay wires a relay together for `ingest relay`: the broker, the interface of stream/relay on a listener,
// its bounds, and metrics.
package runrelay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relay"
)

// Config configures `ingest relay`. Relay's Broker and Observer are made here.
type Config struct {
	Relay   relay.Config
	Broker  run.Broker
	HTTP    net.Listener // of the interface; Run closes it
	Metrics net.Listener // for /metrics, /healthz and /readyz; nil: none
	// Cert and Key are PEM files of the interface's certificate, which are read again when they change; both or none.
	Cert, Key string
}

// Validate refuses what cannot be, and a listener that other machines reach without TLS, or without a token.
func (c Config) Validate() error {
	at, ok := c.HTTP.Addr().(*net.TCPAddr)
	local := ok && at.IP.IsLoopback()
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("--http-cert and --http-key go together")
	case !local && c.Cert == "":
		return fmt.Errorf("--http %s: other machines reach it: name --http-cert and --http-key, "+
			"or listen on loopback behind a proxy that ends TLS", c.HTTP.Addr())
	case !local && !c.Relay.Access.Bearer():
		return fmt.Errorf("--http %s: other machines reach it: name a file with --http-token", c.HTTP.Addr())
	}
	return c.Relay.Validate()
}

// Run serves until ctx is done.
func Run(ctx context.Context, c Config) error {
	defer c.HTTP.Close()
	if c.Metrics != nil {
		defer c.Metrics.Close()
	}
	if err := c.Validate(); err != nil {
		return err
	}
	server, err := c.server()
	if err != nil {
		return err
	}
	log := c.Relay.Logger
	conn, err := c.Broker.Connect(ctx, "panlearn relay", log)
	if err != nil {
		return err
	}
	defer conn.Close()
	registry := obs.NewRegistry()
	var r *relay.Relay
	if c.Relay.Observer, err = obs.NewRelay(registry, func() int { return r.Waiting() }); err != nil {
		return err
	}
	if err := obs.NewBroker(registry, "", run.Observed(conn, new(run.Clock))); err != nil {
		return err
	}
	c.Relay.Broker = conn
	if r, err = relay.New(c.Relay); err != nil {
		return err
	}
	defer r.Close()
	server.Handler = r
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, r.Close) // those who wait are told at once
	group.Go(func() error { return obs.ServeOn(ctx, c.HTTP, server) })
	if c.Metrics != nil {
		log.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
		group.Go(func() error {
			return obs.Serve(ctx, c.Metrics, obs.Endpoints(registry, nil, ready(conn), nil))
		})
	}
	log.Info("relaying", "http", c.HTTP.Addr().String(), "tls", c.Cert != "", "token", c.Relay.Access.Bearer())
	return group.Wait()
}

// Local makes a relay of one task on a loopback listener, for processes of this machine, over a connection that somebody
// else closes. serve serves it until its context is done, closes the listener, and is called once.
func Local(listener net.Listener, broker relay.Broker, task stream.Task,
	log *slog.Logger) (r *relay.Relay, serve func(context.Context) error, err error) {
	c := Config{HTTP: listener, Relay: relay.Config{Broker: broker, Tasks: []stream.Task{task}, Logger: log}}
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	server, err := c.server()
	if err != nil {
		return nil, nil, err
	}
	if r, err = relay.New(c.Relay); err != nil {
		return nil, nil, err
	}
	server.Handler = r
	return r, func(ctx context.Context) error {
		defer r.Close()
		defer context.AfterFunc(ctx, r.Close)()
		return obs.ServeOn(ctx, listener, server)
	}, nil
}

// ready is the check of /readyz: a relay without its broker takes no report.
func ready(conn *natsjs.Conn) obs.Check {
	return func() error {
		if !conn.Connected() {
			return errors.New("no connection to the broker")
		}
		return nil
	}
}

// server returns the server with the bounds of connections. Those of bodies and of answers are the relay's.
func (c Config) server() (*http.Server, error) {
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 13}
	if c.Cert == "" {
		return s, nil
	}
	pair := &pair{cert: c.Cert, key: c.Key}
	if _, err := pair.get(nil); err != nil {
		return nil, fmt.Errorf("--http-cert: %w", err)
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: pair.get}
	return s, nil
}
