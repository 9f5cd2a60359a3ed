// Package runissuer wires an issuer of grants together for `ingest issuer`: its list, the interface of stream/grant/issuer
// on a listener, its bounds, and metrics.
package runissuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/obs"
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
	key, err := issuer.LoadKey(c.KeyFile)
	if err != nil {
		return err
	}
	switch {
	case !c.Spec.HasGrants():
		return fmt.Errorf("%w: the task %s asks for no grants: want grants: pass", ErrKey, c.Spec.Name)
	case string(key.Task) != c.Spec.Name:
		return fmt.Errorf("%w: %s is of the task %s, and the task file is of %s: an issuer is blind to what it signs, so that "+
			"a person with entitlements in two tasks of one key could report twice in one", ErrKey, c.KeyFile, key.Task, c.Spec.Name)
	case string(c.Spec.Issuer()) != string(key.Signer.Public()):
		return fmt.Errorf("%w: the task file declares another as issuer_key", ErrKey)
	}
	if c.Issuer.Proxy != nil {
		if err := c.Listening.Validate(*c.Issuer.Proxy); err != nil {
			return err
		}
	} else if at, ok := c.HTTP.Addr().(*net.TCPAddr); c.Cert == "" && !(ok && at.IP.IsLoopback()) {
		return fmt.Errorf("--http %s: other machines reach it: name --http-cert and --http-key", c.HTTP.Addr())
	}
	list, err := issuer.OpenList(c.State, c.KeyFile, key)
	if err != nil {
		return err
	}
	defer list.Close()
	registry := obs.NewRegistry()
	if c.Issuer.Observe, err = obs.NewIssuer(registry, c.Spec.Name, list.Len); err != nil {
		return err
	}
	c.Issuer.Key, c.Issuer.List, c.Issuer.Logger = key, list, c.Logger
	handler, err := issuer.NewHandler(c.Issuer)
	if err != nil {
		return err
	}
	server, err := c.Server(handler)
	if err != nil {
		return err
	}
	server.ReadTimeout, server.WriteTimeout = bodies, bodies
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return obs.ServeOn(ctx, c.HTTP, server) })
	if c.Metrics != nil {
		c.Logger.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
		group.Go(func() error { return obs.Serve(ctx, c.Metrics, obs.Endpoints(registry, nil, list.Err, nil)) })
	}
	c.Logger.Info("issuing", "task", c.Spec.Name, "http", c.HTTP.Addr().String(), "people", list.Len())
	return group.Wait()
}
