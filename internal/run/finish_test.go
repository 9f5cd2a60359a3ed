package run

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// TestControlFinishes: the control socket takes the request, the HTTP port does not, and before the first commit neither does.
func TestControlFinishes(t *testing.T) {
	store, _ := ended(t, small(t))
	post := func(h http.Handler, method string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/v1/finish?now", nil))
		return w.Code
	}
	for what, test := range map[string]struct {
		handler http.Handler
		method  string
		want    int
	}{
		"control":       {ControlHandler(store, service.NewFinisher()), http.MethodPost, http.StatusAccepted},
		"control, read": {ControlHandler(store, service.NewFinisher()), http.MethodGet, http.StatusNotFound},
		"empty":         {ControlHandler(state.NewMemory(), service.NewFinisher()), http.MethodPost, http.StatusServiceUnavailable},
		"the HTTP port": {StateHandler(store), http.MethodPost, http.StatusNotFound},
	} {
		if got := post(test.handler, test.method); got != test.want {
			t.Errorf("%s: %d, want %d", what, got, test.want)
		}
	}
}

// TestFinishAtRest: a task that has ended needs no broker, one that goes on does, and a folder with nothing in it stays so.
func TestFinishAtRest(t *testing.T) {
	job := jobOf(t, small(t))
	dir := filepath.Join(t.TempDir(), "over")
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	learned(t, job, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Finish(t.Context(), FinishConfig{AtRest: AtRest{StateDir: dir, Logger: discard()}})
	if err != nil || !s.Ended || s.EndReason != service.ReasonDone {
		t.Errorf("a task that is done: %+v, %v", s, err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Finish(t.Context(), FinishConfig{AtRest: AtRest{StateDir: missing, Logger: discard()}}); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := Ask(t.Context(), Where{StateDir: missing}, AskStatus); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("the folder afterwards: %v", err)
	}
}
