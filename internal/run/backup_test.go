package run

import (
	"bytes"
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// TestBackup: a copy of a folder, held or at rest, gives the same ledger; it is not served on the HTTP port.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	from, hot, cold := filepath.Join(dir, "state"), filepath.Join(dir, "hot"), filepath.Join(dir, "cold")
	store, err := pebblestore.Open(from, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	learned(t, jobOf(t, small(t)), store)
	listener, remove, err := ListenControl(from)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- obs.Serve(ctx, listener, ControlHandler(store, service.NewFinisher())) }()
	if s, err := Backup(t.Context(), from, hot); err != nil || !s.Ended || s.Users != 600 {
		t.Errorf("held: %+v, %v", s, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	remove()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), from, cold); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), from, cold); err == nil {
		t.Error("a folder was replaced")
	}
	want, err := Ask(t.Context(), Where{StateDir: from}, AskBackup)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{hot, cold} {
		if got, err := Ask(t.Context(), Where{StateDir: to}, AskBackup); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes", to, err)
		}
	}
	w := httptest.NewRecorder()
	StateHandler(state.NewMemory()).ServeHTTP(w, httptest.NewRequest("GET", "/v1/backup", nil))
	if w.Code != 404 {
		t.Errorf("the HTTP port answers %d", w.Code)
	}
}
