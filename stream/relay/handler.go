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

func (r *Relay) table() []httpaccess.Route {
	const of = relayhttp.Path + "{task}/"
	return []httpaccess.Route{
		{Method: http.MethodGet, Path: of + "task", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "end", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "lease", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "rounds/{round}", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "claims/{round}", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "opens/{round}/{attempt}", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "joins/{round}/{attempt}", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "closes/{round}/{attempt}", Serve: r.getNamed},
		{Method: http.MethodGet, Path: of + "records/{hash}", Serve: r.getHashed},
		{Method: http.MethodGet, Path: of + "rounds/latest", Serve: r.getLatest},
		{Method: http.MethodGet, Path: of + "opens/{round}/latest", Serve: r.getLatest},
		{Method: http.MethodPost, Path: of + "reports", Serve: r.postReport},
		{Method: http.MethodPost, Path: of + "places", Serve: r.postPlace},
		{Method: http.MethodGet, Path: "/v1/openapi.json", Open: true, Serve: getOpenAPI},
	}
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
