// Package runrelay wires a relay together for `ingest relay`: the broker, the interface of stream/relay on a listener,
// its bounds, and metrics.
package runrelay

import (
	"context"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay"
)

// Config configures `ingest relay`. Relay's Broker and Observer are made here.
type Config struct {
	Relay  relay.Config
	Broker run.Broker
	// Listening holds how the interface is reached; Run closes its listener.
	httpaccess.Listening
	Metrics net.Listener // for /metrics, /healthz and /readyz; nil: none
}

// Validate refuses what cannot be, and a listener that other machines reach without TLS, or without a token.
func (c Config) Validate() error {
	if err := c.Listening.Validate(c.Relay.Access); err != nil {
		return err
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
	server, err := c.Server(nil)
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
	context.AfterFunc(ctx, r.Close) // waiting requests end at once
	group.Go(func() error { return obs.ServeOn(ctx, c.HTTP, server) })
	if c.Metrics != nil {
		log.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
		group.Go(func() error {
			return obs.Serve(ctx, c.Metrics, obs.Endpoints(registry, nil, run.Connected(conn.Connected), nil))
		})
	}
	log.Info("relaying", "http", c.HTTP.Addr().String(), "tls", c.Cert != "", "token", c.Relay.Access.Bearer())
	return group.Wait()
}

// Local makes a relay of some tasks, or all of the broker without any, on a loopback listener, for processes of this
// machine, over a connection that somebody else closes. serve serves it until its context is done, closes the listener,
// and is called once.
func Local(listener net.Listener, broker relay.Broker,
	log *slog.Logger, tasks ...stream.Task) (r *relay.Relay, serve func(context.Context) error, err error) {
	c := Config{Listening: httpaccess.Listening{HTTP: listener}, Relay: relay.Config{Broker: broker, Tasks: tasks,
		Logger: log}}
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	server, err := c.Server(nil)
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
