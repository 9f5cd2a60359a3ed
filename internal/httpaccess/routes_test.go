package httpaccess

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMux serves an open route to everybody, and any other one only to requests that the rule takes: a refused request
// never reaches what serves the route.
func TestMux(t *testing.T) {
	const token = "0123456789abcdef"
	bearer, err := Token(token)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }
	routes := []Route{{Method: http.MethodGet, Path: "/open", Open: true, Serve: serve},
		{Method: http.MethodGet, Path: "/closed", Serve: serve}, {Method: http.MethodPost, Path: "/posted/{name}", Serve: serve}}
	refuse := func(w http.ResponseWriter, status int, _ string) { w.WriteHeader(status) }
	for _, c := range []struct {
		access       Access
		host, header string
		want         int // of routes that are not open
	}{
		{bearer, "panlearn.example", "Bearer " + token, http.StatusOK},
		{bearer, "panlearn.example", "", http.StatusUnauthorized},
		{bearer, "127.0.0.1", "Bearer " + token + "0", http.StatusUnauthorized},
		{bearer, "127.0.0.1", "Basic " + token, http.StatusUnauthorized},
		{Access{}, "127.0.0.1:80", "", http.StatusOK},
		{Access{}, "panlearn.example", "Bearer " + token, http.StatusForbidden},
	} {
		mux := c.access.Mux(routes, "test", refuse)
		for target, want := range map[string]int{"GET /open": http.StatusOK, "GET /closed": c.want,
			"HEAD /closed": c.want, "GET //closed/../closed": http.StatusTemporaryRedirect, "POST /posted/x": c.want,
			"POST /posted/%2e%2e": c.want, "POST /closed": http.StatusMethodNotAllowed, "GET /none": http.StatusNotFound} {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, nil)
			r.Host = c.host
			r.Header.Set("Authorization", c.header)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if served := w.Body.String() == "served"; w.Code != want || served != (want == http.StatusOK) {
				t.Errorf("%s of %s with %q: %d, %q; want %d", target, c.host, c.header, w.Code, w.Body, want)
			}
		}
	}
}
