package relay

import (
	_ "embed"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

//go:embed openapi.json
var openAPI []byte // the description of the interface, version 3.1

// A route is a method, a path, and what serves it.
type route struct {
	method, path string
	open         bool // needs no token
	serve        http.HandlerFunc
}

func (r *Relay) table() []route {
	const of = relayhttp.Path + "{task}/"
	return []route{
		{http.MethodGet, of + "task", false, r.getNamed},
		{http.MethodGet, of + "end", false, r.getNamed},
		{http.MethodGet, of + "lease", false, r.getNamed},
		{http.MethodGet, of + "rounds/{round}", false, r.getNamed},
		{http.MethodGet, of + "claims/{round}", false, r.getNamed},
		{http.MethodGet, of + "opens/{round}/{attempt}", false, r.getNamed},
		{http.MethodGet, of + "joins/{round}/{attempt}", false, r.getNamed},
		{http.MethodGet, of + "closes/{round}/{attempt}", false, r.getNamed},
		{http.MethodGet, of + "records/{hash}", false, r.getHashed},
		{http.MethodGet, of + "rounds/latest", false, r.getLatest},
		{http.MethodGet, of + "opens/{round}/latest", false, r.getLatest},
		{http.MethodPost, of + "reports", false, r.postReport},
		{http.MethodPost, of + "places", false, r.postPlace},
		{http.MethodGet, "/v1/openapi.json", true, getOpenAPI},
	}
}

func (r *Relay) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, at := range r.table() {
		var h http.Handler = at.serve
		if !at.open {
			h = r.authenticated(h)
		}
		mux.Handle(at.method+" "+at.path, h)
	}
	return mux
}

// ServeHTTP serves the interface; openapi.json describes it.
func (r *Relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.ContentLength != 0 { // the server also reads a body that no handler reads, before it ends a request
		// A writer that cannot set it is a test's.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(r.bodyTime))
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store") // of all that does not say otherwise
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Origin")
	if len(q.Header["Cookie"]) > 0 {
		r.refuse(w, http.StatusBadRequest,
			"the request has a Cookie header: no login travels with a report. Ask with credentials: 'omit', on an origin of its own")
		return
	}
	if !r.Access.Bearer() && len(q.Header["Authorization"]) > 0 {
		r.refuse(w, http.StatusBadRequest,
			"the request has an Authorization header, and this relay asks for none: no login travels with a report")
		return
	}
	if origins := q.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 || !slices.Contains(r.Origins, origins[0]) {
			r.refuse(w, http.StatusForbidden, "pages of that origin may not use this relay")
			return
		}
		h.Set("Access-Control-Allow-Origin", origins[0])
		h.Set("Access-Control-Expose-Headers", "ETag, "+relayhttp.Sequence+", "+relayhttp.Time)
		if q.Method == http.MethodOptions && r.Access.Bearer() {
			h.Set("Access-Control-Allow-Headers", "authorization")
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			h.Set("Access-Control-Max-Age", "7200")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	httpaccess.Serve(r.mux, w, q, r.refuse)
}

func (r *Relay) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if status, why := r.Access.Refuse(w, q, "relay"); status != 0 {
			r.refuse(w, status, why)
			return
		}
		next.ServeHTTP(w, q)
	})
}

func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	deadline(w, len(openAPI))
	_, _ = w.Write(openAPI)
}

// record writes a response with a record's bytes.
func record(w http.ResponseWriter, data []byte, keep string) {
	h := w.Header()
	h.Set("Cache-Control", keep)
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	deadline(w, len(data))
	_, _ = w.Write(data)
}

// refuse writes the response to a request of which nothing was forwarded.
func (r *Relay) refuse(w http.ResponseWriter, status int, why string) {
	observe.Tell(r.Observer.Refused, status)
	text(w, status, why)
}

// tooMany refuses a request that is one too many.
func (r *Relay) tooMany(w http.ResponseWriter, status int) {
	why := "as many requests are under way as this relay takes"
	if status == http.StatusTooManyRequests {
		why = "as many requests of one address are under way as may be"
		if !r.crowded.Swap(true) {
			r.Logger.Warn("one address has as many requests under way as may be: if it is a proxy, name its header with --client-address-header",
				"most", r.PerAddress)
		}
	}
	r.refuse(w, status, why)
}

func text(w http.ResponseWriter, status int, why string) {
	h := w.Header()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "2")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	deadline(w, len(why))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, why)
}

// deadline bounds the time in which a client takes an answer.
func deadline(w http.ResponseWriter, size int) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime + time.Duration(size)*time.Second/bodyRate))
}
