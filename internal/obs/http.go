package obs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/panlearn/panlearn/internal/build"
	"github.com/panlearn/panlearn/internal/httpaccess"
)

// NewRegistry returns a registry of its own with the metrics of process and runtime, and the version of the program.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	b := build.This()
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "panlearn_build_info",
		Help:        "1; the labels say which version of panlearn runs, of which commit, and what compiled it.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go}},
		func() float64 { return 1 }))
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector())
	return r
}

// A Check returns an error if the process is not healthy, or not ready.
type Check func() error

// Endpoints serves /metrics, /healthz (the process does not need a restart) and /readyz (it does its work). more is
// served for every other path; it may be nil.
func Endpoints(g prometheus.Gatherer, healthy, ready Check, more http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.Handle("GET /healthz", probe(healthy))
	mux.Handle("GET /readyz", probe(ready))
	if more != nil {
		mux.Handle("/", more)
	}
	return mux
}

func probe(check Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if check != nil {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
}

// Serve serves a handler on a listener until ctx is done, then lets requests under way finish for a short while. It
// closes the listener in any case.
func Serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	return ServeOn(ctx, listener, &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14})
}

// ServeOn is Serve by a server with bounds of its own. Where it has a configuration of TLS, it serves that.
func ServeOn(ctx context.Context, listener net.Listener, server *http.Server) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	})
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	err := serve(listener)
	if stop() {
		server.Close() // the listener broke: nothing else ends its connections
	} else {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Profiles serves profiles of this process for `go tool pprof` below /debug/pprof/: profile (of the processor), heap,
// allocs, goroutine, block, mutex and threadcreate. They have stacks, numbers and sizes, and no content of memory.
// Profiles refuses stacks as text, with their arguments, among which may be counts of one user. It also refuses
// requests by another name than this machine's, such as requests of a web page under a domain that was made to resolve
// to this machine. It has no authentication: serve it on loopback only.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	for _, name := range []string{"heap", "allocs", "goroutine", "block", "mutex", "threadcreate"} {
		mux.Handle("GET /debug/pprof/"+name, pprof.Handler(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.FormValue("debug"); text != "" {
			if level, err := strconv.Atoi(text); err != nil || level < 0 || level > 1 {
				http.Error(w, "debug: want 0 or 1: stacks with their arguments are not shown", http.StatusBadRequest)
				return
			}
		}
		if !httpaccess.ThisMachine(r.Host) {
			http.Error(w, "want a request to a loopback address or localhost", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
