package httpaccess

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestOtherMethodsAreRefusedByName: a path that takes other methods is there, and the answer says which; RFC 9110, 15.5.6.
func TestOtherMethodsAreRefusedByName(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/a", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a") })
	mux.HandleFunc("POST /v1/{b}/c", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("b")) })
	for _, c := range []struct {
		method, path, want, allow string
	}{
		{"GET", "/v1/a", "200 a", ""}, {"HEAD", "/v1/a", "200 a", ""}, {"POST", "/v1/x/c", "200 x", ""},
		{"POST", "/v1/a", "405 ", "GET, HEAD"}, {"OPTIONS", "/v1/a", "405 ", "GET, HEAD"}, {"GET", "/v1/x/c", "405 ", "POST"},
		{"GET", "/v1/b", "404 ", ""}, {"DELETE", "/", "404 ", ""},
	} {
		w := httptest.NewRecorder()
		Serve(mux, w, httptest.NewRequest(c.method, c.path, nil), func(w http.ResponseWriter, status int, _ string) { w.WriteHeader(status) })
		if got := fmt.Sprint(w.Code, " ", w.Body); got != c.want || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: %q, Allow %q, want %q, %q", c.method, c.path, got, w.Header().Get("Allow"), c.want, c.allow)
		}
	}
}
