package many

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/obs"
)

// Serve runs the fleet until ctx is done, and serves its endpoints on l, which it closes; nil: nowhere. title names the
// process on the page.
func (f *Fleet) Serve(ctx context.Context, l net.Listener, title string, ready obs.Check) error {
	registry := obs.NewRegistry()
	if err := obs.NewFleet(registry, f.failing); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.Run(ctx) })
	if l != nil {
		f.config.Logger.Info("serving", "http", "http://"+l.Addr().String())
		group.Go(func() error { return obs.Serve(ctx, l, f.endpoints(registry, title, ready)) })
	}
	return group.Wait()
}

// A Document is the form of answers about all tasks.
type Document[T any] struct {
	Tasks []T `json:"tasks"`
}

func answer(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(doc) // the client may have gone
}

// endpoints returns the fleet's endpoints: /metrics of the process and all members, /healthz, /readyz by ready, a page
// with all tasks at /, the same as JSON at /v1/tasks, what members answer at /status, and each running member's own
// endpoints below /tasks/NAME/.
func (f *Fleet) endpoints(process prometheus.Gatherer, title string, ready obs.Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, _ *http.Request) { answer(w, Document[Row]{Tasks: f.Rows()}) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		all := Document[any]{Tasks: []any{}}
		for _, r := range f.Rows() {
			if r.Doing != nil {
				all.Tasks = append(all.Tasks, r.Doing)
			}
		}
		answer(w, all)
	})
	mux.HandleFunc("/tasks/{task}/", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("task")
		shown, err := f.shown(name)
		switch {
		case errors.Is(err, errNoTask):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			http.StripPrefix("/tasks/"+name, shown.Handler).ServeHTTP(w, r)
		}
	})
	mux.Handle("/", dashboard.TasksHandler(title, f.lines))
	gather := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return append(prometheus.Gatherers{process}, f.registries()...).Gather()
	})
	return obs.Endpoints(gather, nil, ready, mux)
}

// lines returns the rows of the page.
func (f *Fleet) lines() (out []dashboard.TaskLine) {
	for _, r := range f.Rows() {
		out = append(out, dashboard.TaskLine{Task: r.Task, File: r.File, State: string(r.State), Line: r.Line, Wrong: r.Wrong,
			Shown: r.State == Running, Since: r.Since})
	}
	return out
}
