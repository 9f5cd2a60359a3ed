// Package runissuer wires an issuer of grants together for `ingest issuer`: its list, the interface of
// stream/grant/issuer on a listener, its bounds, and metrics.
package runissuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/grant/issuer"
)

// Config configures `ingest issuer`. Issuer's Key, List and Observe are made here.
type Config struct {
	Spec    *task.Spec
	KeyFile string
	State   string // folder of the list
	Issuer  issuer.Config
	// Listening holds how the interface is reached; Run closes its listener.
	httpaccess.Listening
	Metrics net.Listener // for /metrics, /healthz and /readyz; nil: none
	Logger  *slog.Logger
}

// ErrKey is returned where the key is not the one that the task file declares: a key serves one task.
var ErrKey = errors.New("the issuer's key")

// bodies bounds the time in which a request has to come and its answer to go.
const bodies = 30 * time.Second

// Run serves until ctx is done.
func Run(ctx context.Context, c Config) error {
	defer c.HTTP.Close()
	if c.Metrics != nil {
		defer c.Metrics.Close()
	}
	if err := c.reached(); err != nil {
		return err
	}
	registry := obs.NewRegistry()
	handler, list, err := c.open(registry)
	if err != nil {
		return err
	}
	defer list.Close()
	group, ctx := errgroup.WithContext(ctx)
	if err := c.serve(ctx, group, handler); err != nil {
		return err
	}
	if c.Metrics != nil {
		c.Logger.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
		group.Go(func() error { return obs.Serve(ctx, c.Metrics, obs.Endpoints(registry, nil, list.Err, nil)) })
	}
	c.Logger.Info("issuing", "task", c.Spec.Name, "http", c.HTTP.Addr().String(), "people", list.Len())
	return group.Wait()
}

// RunMany serves the tasks with grants of a list until ctx is done. c is what all have in common: its Spec is not used,
// and KeyFile and State are folders with a key, and a folder, of the name of each task. It closes the listeners.
func RunMany(ctx context.Context, c Config, list many.List) error {
	defer c.HTTP.Close()
	if c.Metrics != nil {
		defer c.Metrics.Close()
	}
	if err := c.reached(); err != nil {
		return err
	}
	desks := &many.Router{Absent: "no issuer of this task serves here"}
	fleet := many.New(many.Config{List: many.Only(list, func(e many.Entry) bool { return e.Spec.Grants.Needed() }),
		Logger:   c.Logger,
		Starting: "It reads its key and the list of people.",
		Run: func(ctx context.Context, e many.Entry, seat *many.Seat) error {
			one, name := c, string(e.Name)
			one.Spec, one.KeyFile, one.State = e.Spec, filepath.Join(c.KeyFile, name), filepath.Join(c.State, name)
			one.Logger = c.Logger.With("task", name)
			handler, list, err := one.open(seat.Registry)
			if errors.Is(err, issuer.ErrList) || errors.Is(err, ErrKey) {
				return many.Lasting(err)
			}
			if err != nil {
				return err
			}
			defer list.Close()
			defer desks.Put(name, nil)
			desks.Put(name, handler)
			seat.Show(many.Shown{Handler: obs.Endpoints(seat.Registry, nil, list.Err, nil), Line: func() (string, bool) {
				if err := list.Err(); err != nil {
					return err.Error(), true
				}
				return fmt.Sprintf("%d people have their token.", list.Len()), false
			}})
			c.Logger.Info("issuing", "task", name, "http", c.HTTP.Addr().String(), "people", list.Len())
			<-ctx.Done()
			return ctx.Err()
		}})
	group, ctx := errgroup.WithContext(ctx)
	if err := c.serve(ctx, group, desks); err != nil {
		return err
	}
	group.Go(func() error { return fleet.Serve(ctx, c.Metrics, "issuers", func() error { return nil }) })
	return group.Wait()
}

// reached refuses an interface that others can reach without a certificate.
func (c Config) reached() error {
	if c.Issuer.Proxy != nil {
		return c.Listening.Validate(*c.Issuer.Proxy)
	}
	if at, ok := c.HTTP.Addr().(*net.TCPAddr); c.Cert == "" && !(ok && at.IP.IsLoopback()) {
		return fmt.Errorf("--http %s: other machines reach it: name --http-cert and --http-key", c.HTTP.Addr())
	}
	return nil
}

// open returns the interface of a task's issuer, with its metrics in registry, and its list, which the caller closes.
func (c Config) open(registry *prometheus.Registry) (*issuer.Handler, *issuer.List, error) {
	key, err := issuer.LoadKey(c.KeyFile)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !c.Spec.Grants.Needed():
		return nil, nil, fmt.Errorf("%w: the task %s asks for no grants: want grants: pass", ErrKey, c.Spec.Name)
	case string(key.Task) != c.Spec.Name:
		return nil, nil, fmt.Errorf("%w: %s is of the task %s, and the task file is of %s: an issuer is blind to what it signs, so that "+
			"a person with entitlements in two tasks of one key could report twice in one", ErrKey, c.KeyFile, key.Task,
			c.Spec.Name)
	case string(c.Spec.IssuerKey.Bytes()) != string(key.Signer.Public()):
		return nil, nil, fmt.Errorf("%w: the task file declares another as issuer_key", ErrKey)
	}
	list, err := issuer.OpenList(c.State, c.KeyFile, key)
	if err != nil {
		return nil, nil, err
	}
	if c.Issuer.Observe, err = obs.NewIssuer(registry, c.Spec.Name, list.Len); err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	c.Issuer.Key, c.Issuer.List, c.Issuer.Logger = key, list, c.Logger
	handler, err := issuer.NewHandler(c.Issuer)
	if err != nil {
		return nil, nil, errors.Join(err, list.Close())
	}
	return handler, list, nil
}

// serve serves the interface in the group.
func (c Config) serve(ctx context.Context, group *errgroup.Group, handler http.Handler) error {
	server, err := c.Server(handler)
	if err != nil {
		return err
	}
	server.ReadTimeout, server.WriteTimeout = bodies, bodies
	group.Go(func() error { return obs.ServeOn(ctx, c.HTTP, server) })
	return nil
}
