package runadmin

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// TestFinishAtRest: a task that has ended needs no broker, one that goes on does, and a folder with nothing in it stays
// so.
func TestFinishAtRest(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	dir := filepath.Join(t.TempDir(), "over")
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Learned(t, job, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Finish(t.Context(), FinishConfig{AtRest: AtRest{StateDir: dir, Logger: runtest.Discard()}})
	if err != nil || !s.Ended || s.EndReason != service.ReasonDone {
		t.Errorf("a task that is done: %+v, %v", s, err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Finish(t.Context(), FinishConfig{AtRest: AtRest{StateDir: missing,
		Logger: runtest.Discard()}}); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := statedir.Ask(t.Context(), statedir.Where{StateDir: missing}, statedir.AskStatus); err == nil ||
		!strings.Contains(err.Error(), missing) {
		t.Errorf("the folder afterwards: %v", err)
	}
}

// TestFinishBesideARunThatEnds checks that a learner that ends with its task while it is asked to end it leaves a
// folder that records the end.
func TestFinishBesideARunThatEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), store)
	listener, remove, err := statedir.ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"ended\":false}", ""} {
			conn, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				t.Error(err)
			}
			if answer == "" {
				listener.Close()
				remove()
				store.Close()
			} else if _, err := io.WriteString(conn, answer); err != nil {
				t.Error(err)
			}
			conn.Close()
		}
	}()
	s, err := Finish(t.Context(), FinishConfig{AtRest: AtRest{StateDir: dir, Logger: runtest.Discard()}})
	<-done
	if err != nil || !s.Ended {
		t.Errorf("ended %t, %v; want the end that the learner committed", s.Ended, err)
	}
}
