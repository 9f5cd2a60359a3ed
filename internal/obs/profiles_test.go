package obs

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProfiles: profiles are served, not the command line, a trace, or stacks with arguments; and to nobody by
// another name.
func TestProfiles(t *testing.T) {
	h := Profiles()
	for target, want := range map[string]int{
		"http://127.0.0.1:6060/debug/pprof/heap":                http.StatusOK,
		"http://localhost/debug/pprof/goroutine?debug=1":        http.StatusOK,
		"http://[::1]:6060/debug/pprof/allocs?debug=0":          http.StatusOK,
		"http://127.0.0.1/debug/pprof/block":                    http.StatusOK,
		"http://127.0.0.1/debug/pprof/mutex":                    http.StatusOK,
		"http://127.0.0.1/debug/pprof/threadcreate":             http.StatusOK,
		"http://127.0.0.1/debug/pprof/goroutine?debug=2":        http.StatusBadRequest,
		"http://127.0.0.1/debug/pprof/goroutine?debug=99":       http.StatusBadRequest,
		"http://127.0.0.1/debug/pprof/goroutine?debug=2x":       http.StatusBadRequest,
		"http://127.0.0.1/debug/pprof/cmdline":                  http.StatusNotFound,
		"http://127.0.0.1/debug/pprof/trace":                    http.StatusNotFound,
		"http://127.0.0.1/debug/pprof/":                         http.StatusNotFound,
		"http://127.0.0.1/metrics":                              http.StatusNotFound,
		"http://evil.example:6060/debug/pprof/heap":             http.StatusForbidden,
		"http://192.0.2.1/debug/pprof/heap":                     http.StatusForbidden,
		"http://127.0.0.1.evil.example/debug/pprof/heap?debug=": http.StatusForbidden,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	w := httptest.NewRecorder()
	Endpoints(NewRegistry(), nil, nil, http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet,
		"http://127.0.0.1/debug/pprof/heap", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("the port of the metrics answers %d", w.Code)
	}
}
