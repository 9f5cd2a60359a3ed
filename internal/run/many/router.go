package many

import (
	"net/http"
	"strings"
	"sync"
)

// A Router serves the interface that each task has below /v1/tasks/NAME/, next to the endpoints of the fleet.
type Router struct {
	Absent string // says of a task without an interface that it has none

	mu sync.RWMutex
	of map[string]http.Handler
}

// Put sets the interface of a task, which gets requests as they are; nil: it has none any more. Requests that are being
// answered go on.
func (d *Router) Put(task string, h http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[string]http.Handler{}
	}
	if d.of[task] = h; h == nil {
		delete(d.of, task)
	}
}

// ServeHTTP implements http.Handler.
func (d *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, is := strings.CutPrefix(r.URL.Path, "/v1/tasks/")
	task, _, _ := strings.Cut(rest, "/")
	d.mu.RLock()
	h := d.of[task]
	d.mu.RUnlock()
	if !is || h == nil {
		http.Error(w, d.Absent, http.StatusNotFound)
		return
	}
	h.ServeHTTP(w, r)
}
