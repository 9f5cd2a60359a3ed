package httpaccess

import "net/http"

// Serve serves a request by a mux without a pattern for all paths, and refuses what the mux has no handler for: a path
// that takes other methods with 405 and the header Allow, any other with 404.
func Serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, refuse func(w http.ResponseWriter, status int, why string)) {
	own, pattern := mux.Handler(r)
	if pattern != "" {
		mux.ServeHTTP(w, r)
		return
	}
	head := &head{header: http.Header{}}
	own.ServeHTTP(head, r)
	allow := head.header.Get("Allow")
	if head.status != http.StatusMethodNotAllowed || allow == "" {
		refuse(w, http.StatusNotFound, "no such path here: /v1/openapi.json describes what there is")
		return
	}
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, "this path takes "+allow)
}

// A head keeps the status and the header of an answer, and drops its body.
type head struct {
	header http.Header
	status int
}

func (h *head) Header() http.Header { return h.header }

func (h *head) Write(p []byte) (int, error) { return len(p), nil }

func (h *head) WriteHeader(status int) { h.status = status }
