// Package runscorer wires a scorer together for `learner serve`: models from files, state folders and running learners,
// the interface of internal/scorer on a listener, and metrics.
package runscorer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/scorer"
	"github.com/panlearn/panlearn/state"
)

// Config configures `learner serve`. Scorer's Sources and Observer are made here.
type Config struct {
	Scorer               scorer.Config
	Files                []string         // snapshots
	Learners             []statedir.Where // state folders, and learners that run
	httpaccess.Listening                  // Run closes its listener
	Metrics              net.Listener     // for /metrics, /healthz and /readyz; nil: none
}

// Validate refuses a listener that other machines reach without TLS, or without a token, a configuration without a
// model, a state folder that is not there, and what is no URL of a learner.
func (c Config) Validate() error {
	for _, at := range c.Learners {
		if at.URL != "" {
			if _, err := statedir.ParseURL(at.URL); err != nil {
				return fmt.Errorf("--from: %w", err)
			}
		} else if _, err := os.Stat(at.StateDir); err != nil {
			return fmt.Errorf("--state: %w", err)
		}
	}
	c.Scorer.Sources = c.sources()
	if err := c.Listening.Validate(c.Scorer.Access); err != nil {
		return err
	}
	return c.Scorer.Validate()
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
	registry := obs.NewRegistry()
	if c.Scorer.Observer, err = obs.NewScorer(registry); err != nil {
		return err
	}
	c.Scorer.Sources = c.sources()
	s, err := scorer.New(ctx, c.Scorer)
	if err != nil {
		return err
	}
	server.Handler = s
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Follow(ctx) })
	group.Go(func() error { return obs.ServeOn(ctx, c.HTTP, server) })
	if c.Metrics != nil {
		c.Scorer.Logger.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
		group.Go(func() error { return obs.Serve(ctx, c.Metrics, obs.Endpoints(registry, nil, s.Ready, nil)) })
	}
	c.Scorer.Logger.Info("scoring", "http", c.HTTP.Addr().String(), "tls", c.Cert != "", "token", c.Scorer.Access.Bearer())
	return group.Wait()
}

func (c Config) sources() (list []scorer.Source) {
	for _, path := range c.Files {
		list = append(list, scorer.Source{Name: path, Read: func(context.Context) ([]byte, error) { return readFile(path) }})
	}
	for _, where := range c.Learners {
		name := where.StateDir
		if u, err := statedir.ParseURL(where.URL); err == nil {
			name = u.Scheme + "://" + u.Host // the rest may be secret
		}
		list = append(list, scorer.Source{Name: name, Read: func(ctx context.Context) ([]byte, error) {
			doc, err := statedir.Ask(ctx, where, statedir.AskSnapshot)
			if errors.Is(err, state.ErrEmpty) || errors.Is(err, state.ErrLocked) || statedir.Away(err) {
				err = fmt.Errorf("%w: %w", scorer.ErrNotYet, err)
			}
			return doc, err
		}})
	}
	return list
}

// readFile reads a snapshot, of a bounded length.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, model.MaxFile+1))
	if err == nil && len(doc) > model.MaxFile {
		err = fmt.Errorf("want a snapshot of at most %d bytes", model.MaxFile)
	}
	return doc, err
}
