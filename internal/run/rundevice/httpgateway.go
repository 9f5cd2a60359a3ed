package rundevice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/httpgateway"
)

// HTTPConfig holds the options of `ingest publish --http` beside Config. Data and Source of Config are not used.
type HTTPConfig struct {
	Listener net.Listener
	Token    string
	NoToken  bool
	Rate     float64 // events a second
	Waiting  int     // events without an outcome; 0 takes the default

	base string // the path below which a task's interface is; empty: /v1
}

// PublishHTTP publishes what it is posted until ctx ends, which is no error, or the client does. It returns which
// outcomes the client told, of an event that was asked for again after it was settled once more. It closes the
// listener.
func PublishHTTP(ctx context.Context, c Config, h HTTPConfig) (summary device.Summary, err error) {
	defer h.Listener.Close()
	if err := h.Validate(c.StateDir); err != nil {
		return summary, err
	}
	h.warn(c.Logger)
	return c.posted(ctx, h, func(ctx context.Context, handler http.Handler) error {
		return obs.Serve(ctx, h.Listener, handler)
	})
}

// PublishHTTPMany publishes what it is posted for each task of a list, as PublishMany does the rows of files: below
// /v1/tasks/NAME/ it takes what PublishHTTP takes below /v1/; /healthz is the process's. Each task has the bounds of h.
// That ctx ends is no error. It closes the listeners.
func PublishHTTPMany(ctx context.Context, c Config, h HTTPConfig, list many.List, ended func(TaskSummary)) error {
	defer h.Listener.Close()
	if err := h.Validate(c.StateDir); err != nil {
		return err
	}
	h.warn(c.Logger)
	router := &many.Router{Absent: "this gateway takes no events of this task: it is not on the list, has not begun, or has ended"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("/", router)
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { return obs.Serve(working, h.Listener, mux) })
	group.Go(func() error {
		return c.each(working, list, ended, "It waits for the task to be announced.", "It takes no more events.",
			func(ctx context.Context, one Config) (device.Summary, error) {
				h := h
				h.base = "/v1/tasks/" + string(one.Task)
				return one.posted(ctx, h, func(ctx context.Context, handler http.Handler) error {
					answer(ctx, router, string(one.Task), handler)
					return nil
				})
			})
	})
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// answer serves a task's handler through a router until ctx is done, and returns when no request is being answered any
// more: the device outlives them all. Requests that wait then end, because they may be willing to wait for minutes.
func answer(ctx context.Context, router *many.Router, task string, handler http.Handler) {
	var answering sync.RWMutex // read by each request
	router.Put(task, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answering.TryRLock() {
			http.Error(w, router.Absent, http.StatusNotFound)
			return
		}
		defer answering.RUnlock()
		request, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		handler.ServeHTTP(w, r.WithContext(request))
	}))
	<-ctx.Done()
	router.Put(task, nil)
	answering.Lock()
}

// posted publishes what is posted to the handler that it gives to serve, which serves it until its context is done.
func (c Config) posted(ctx context.Context, h HTTPConfig, serve func(context.Context, http.Handler) error) (
	summary device.Summary, err error) {
	var (
		mu   sync.Mutex
		show = c.Progress
	)
	c.Source, c.Submits = "", true
	if c.Watch != nil {
		c.Watch.mu.Lock()
		c.Watch.posts = true
		c.Watch.mu.Unlock()
	}
	c.Progress = func(p device.Progress) {
		mu.Lock()
		summary = p.Summary
		mu.Unlock()
		if show != nil {
			show(p)
		}
	}
	devices, release, err := c.devices(ctx)
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, release()) }()
	gateway, err := httpgateway.New(httpgateway.Config{Device: devices, Token: h.Token, NoToken: h.NoToken,
		Base: h.base, Rate: h.Rate, MaxWaiting: h.Waiting, Logger: c.Logger})
	if err != nil {
		return summary, errors.Join(err, devices.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving, gateway.Handler()) }()
	c.Logger.Info("taking events", "http", h.Listener.Addr().String(), "token", !h.NoToken)
	agreement, err := devices.Agreement(ctx)
	if err == nil {
		_, err = device.ShapeOf(agreement)
	}
	if err == nil { // a task that the policy or the gateway refuses ends it at once
		select {
		case <-ctx.Done():
		case <-devices.Done():
		case err = <-served:
			served <- nil
		}
	}
	stop()
	gateway.Close()
	err = errors.Join(err, <-served)
	ended := devices.Close()
	mu.Lock()
	defer mu.Unlock()
	if ended != nil {
		return summary, ended
	}
	if ctx.Err() != nil {
		return summary, nil
	}
	return summary, err
}

// warn logs that others can read what is posted.
func (h HTTPConfig) warn(log *slog.Logger) {
	if !h.local() {
		log.Warn("events come in clear from other machines, unless something in front of this gateway ends TLS", "http",
			h.Listener.Addr().String())
	}
}

// local reports whether the listener takes connections from this machine alone.
func (h HTTPConfig) local() bool {
	at, ok := h.Listener.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// Validate refuses what would let anybody publish, or forget who did.
func (h HTTPConfig) Validate(stateDir string) error {
	switch {
	case stateDir == "":
		return errors.New("--http: name the --state folder: without it a key would be forgotten, and its event sent again")
	case h.NoToken && !h.local():
		return fmt.Errorf("--http-no-token: %v is not this machine's loopback address: want --http-token there",
			h.Listener.Addr())
	case !h.NoToken && len(h.Token) < httpaccess.MinToken:
		return fmt.Errorf("--http-token: the token has %d bytes: want at least %d", len(h.Token), httpaccess.MinToken)
	}
	return nil
}
