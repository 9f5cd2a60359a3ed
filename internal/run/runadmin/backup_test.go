package runadmin

import (
	"bytes"
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
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
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), store)
	listener, remove, err := statedir.ListenControl(from)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- obs.Serve(ctx, listener, statedir.ControlHandler(store, service.NewFinisher(), service.NewHistory(store)))
	}()
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
	want, err := statedir.Ask(t.Context(), statedir.Where{StateDir: from}, statedir.AskBackup)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{hot, cold} {
		if got, err := statedir.Ask(t.Context(), statedir.Where{StateDir: to}, statedir.AskBackup); err != nil ||
			!bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes", to, err)
		}
	}
	w := httptest.NewRecorder()
	statedir.Handler(storetest.NewMemory()).ServeHTTP(w, httptest.NewRequest("GET", "/v1/backup", nil))
	if w.Code != 404 {
		t.Errorf("the HTTP port answers %d", w.Code)
	}
}
