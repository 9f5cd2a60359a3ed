package statedir

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// holding opens a state folder and serves its control socket, as `learner run` does.
func holding(t *testing.T, dir string, fill func(state.Store)) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(store)
	listener, remove, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- obs.Serve(ctx, listener, Handler(store)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		remove()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{socketName, addressFile} {
			if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left behind: %v", name, err)
			}
		}
	})
}

// TestAskWhileHeld: a folder that a process holds answers over its socket what it answers at rest, from any working
// folder, also where its path is too long for a socket.
func TestAskWhileHeld(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	for _, name := range []string{"state", strings.Repeat("long", 30)} {
		t.Run(name[:5], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			t.Setenv("TMPDIR", t.TempDir())
			answers := map[Question]string{}
			t.Run("held", func(t *testing.T) {
				holding(t, dir, func(s state.Store) { runtest.Learned(t, job, s) })
				socket, ok := elsewhere(dir)
				if ok != (len(name) > maxSocketPath) {
					t.Errorf("the socket is at %q", socket)
				}
				if !ok {
					socket = filepath.Join(dir, socketName)
				}
				if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
					t.Errorf("the socket: %v, %v, want mode 0600", info, err)
				}
				for _, q := range []Question{AskSnapshot, AskStatus, AskLedger} {
					doc, err := Ask(t.Context(), Where{StateDir: dir}, q)
					if err != nil {
						t.Fatal(err)
					}
					answers[q] = strings.TrimSpace(string(doc))
				}
				t.Chdir(filepath.Dir(dir))
				if doc, err := Ask(t.Context(), Where{StateDir: name}, AskStatus); err != nil ||
					strings.TrimSpace(string(doc)) != answers[AskStatus] {
					t.Errorf("by a relative path: %v", err)
				}
			})
			for q, want := range answers {
				doc, err := Ask(t.Context(), Where{StateDir: dir}, q)
				if err != nil || string(doc) != want && q != AskSnapshot {
					t.Errorf("%s at rest: %v, the same document: %t", q, err, string(doc) == want)
				}
			}
		})
	}
}

// TestStaleSocket: what a process that was killed left behind is in nobody's way.
func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	temporary := t.TempDir()
	private := filepath.Join(temporary, privatePrefix+"123")
	for _, f := range []string{filepath.Join(dir, socketName), filepath.Join(private, socketName)} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, addressFile), []byte(filepath.Join(private, socketName)+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	holding(t, dir, func(state.Store) {})
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("%v is left in the temporary folder, %v", left, err)
	}
	if _, err := Ask(t.Context(), Where{StateDir: dir}, AskStatus); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("a learner that has begun nothing: %v, want ErrEmpty", err)
	}
}

// TestAddressOfAStranger: an address file that names something else removes nothing.
func TestAddressOfAStranger(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, nil, 0o600), os.WriteFile(filepath.Join(dir, addressFile), []byte(victim),
		0o600)); err != nil {
		t.Fatal(err)
	}
	holding(t, dir, func(state.Store) {})
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}

// TestAskWithoutState: a folder with nothing in it, and one that is not there, are errors, and stay as they are.
func TestAskWithoutState(t *testing.T) {
	empty := t.TempDir()
	missing := filepath.Join(empty, "missing")
	for _, dir := range []string{empty, missing} {
		if _, err := Ask(t.Context(), Where{StateDir: dir}, AskStatus); !errors.Is(err, state.ErrEmpty) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want ErrEmpty", dir, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("asking has made %v, %v", left, err)
	}
}

// TestAskHeldWithoutSocket checks that the error names the lock and the missing control socket, and that Ask does not
// wait beyond its context.
func TestAskHeldWithoutSocket(t *testing.T) {
	dir := t.TempDir()
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), store)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Ask(ctx, Where{StateDir: dir}, AskStatus); !errors.Is(err, state.ErrLocked) ||
		!strings.Contains(err.Error(), "control socket") {
		t.Errorf("%v, want ErrLocked", err)
	}
}

func TestAskHTTP(t *testing.T) {
	store, _ := ended(t, runtest.Small(t))
	server := httptest.NewServer(Handler(store))
	defer server.Close()
	doc, err := Ask(t.Context(), Where{URL: server.URL + "/"}, AskStatus)
	if err != nil || !strings.Contains(string(doc), `"epsilon_spent"`) {
		t.Errorf("%s, %v", doc, err)
	}
	if _, err := Ask(t.Context(), Where{URL: server.URL}, "weather"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an unknown question: %v", err)
	}
	server.Close()
	if _, err := Ask(t.Context(), Where{URL: server.URL}, AskStatus); err == nil {
		t.Error("nobody answers, and no error")
	}
	if _, err := Ask(t.Context(), Where{URL: "http://%"}, AskStatus); err == nil {
		t.Error("no URL, and no error")
	}
}

// A learner that starts while a command looks at its folder waits for it, and gives up with its context.
func TestStartWhileSomebodyLooks(t *testing.T) {
	dir := t.TempDir()
	open := func() (*pebblestore.Store, error) { return pebblestore.Open(dir, pebblestore.Options{}) }
	reader, err := open()
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := untilFree(stopped, open); !errors.Is(err, state.ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
	tried, closed := 0, make(chan error, 1)
	store, err := untilFree(t.Context(), func() (*pebblestore.Store, error) {
		if tried++; tried == 2 {
			closed <- reader.Close()
		}
		return open()
	})
	if err != nil || tried != 2 || <-closed != nil {
		t.Fatalf("%v after %d tries", err, tried)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestControlFinishes: the control socket takes the request, the HTTP port does not, and before the first commit
// neither does.
func TestControlFinishes(t *testing.T) {
	store, _ := ended(t, runtest.Small(t))
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
		"control": {ControlHandler(store, service.NewFinisher(), service.NewHistory(store)), http.MethodPost,
			http.StatusAccepted},
		"control, read": {ControlHandler(store, service.NewFinisher(), service.NewHistory(store)), http.MethodGet,
			http.StatusNotFound},
		"empty": {ControlHandler(storetest.NewMemory(), service.NewFinisher(),
			service.NewHistory(storetest.NewMemory())), http.MethodPost, http.StatusServiceUnavailable},
		"the HTTP port": {Handler(store), http.MethodPost, http.StatusNotFound},
	} {
		if got := post(test.handler, test.method); got != test.want {
			t.Errorf("%s: %d, want %d", what, got, test.want)
		}
	}
}

// An endless store's ledger has no end; it signals when it is not read any more.
type endless struct {
	state.Store
	over chan struct{}
}

func (e endless) Ledger(ctx context.Context) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		defer close(e.over)
		for first, err := range e.Store.Ledger(ctx) {
			for yield(first, err) {
			}
			return
		}
	}
}

// TestReaderWhoReadsNothing checks that an answer that is as long as the task is ends for a reader who does not take
// it.
func TestReaderWhoReadsNothing(t *testing.T) {
	store, _ := ended(t, runtest.Small(t))
	long := endless{store, make(chan struct{})}
	mux := http.NewServeMux()
	serve(mux, long, 100*time.Millisecond, AskBackup)
	server := httptest.NewServer(mux)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/backup HTTP/1.1\r\nHost: learner\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-long.over:
	case <-time.After(20 * time.Second):
		conn.Close() // or the server waits for it
		t.Error("the answer still waits for its reader")
	}
}

// served opens a folder and hands its lock to a control server that does as told with its first connection. The folder
// is closed when that returns.
func served(t *testing.T, dir string, serve func(net.Conn)) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, remove, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err == nil {
			serve(conn)
		}
		listener.Close()
		remove()
		store.Close()
		if conn != nil {
			conn.Close() // last: after the reply the folder is free
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
}

// TestRunEndsWhileItIsAsked: whatever is asked of a learner that ends before or in the middle of its answer is answered
// by the folder.
func TestRunEndsWhileItIsAsked(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	for when, begin := range map[string]string{"before": "",
		"in the middle": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n\x00\x00\x00\x00\x00\x00\x40"} {
		for _, q := range []Question{AskStatus, AskSnapshot, AskLedger, AskBackup} {
			dir := filepath.Join(t.TempDir(), "state")
			store, err := pebblestore.Open(dir, pebblestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runtest.Learned(t, job, store)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			served(t, dir, func(conn net.Conn) {
				if _, err := conn.Read(make([]byte, 4096)); err != nil {
					t.Error(err)
				}
				if _, err := io.WriteString(conn, begin); err != nil {
					t.Error(err)
				}
			})
			if q == AskBackup {
				err = Copy(t.Context(), Where{StateDir: dir}, func(c state.Checkpoint, entries iter.Seq2[state.Entry, error],
					_ iter.Seq2[state.Kept, error]) error {
					return c.VerifyLedger(state.Ledger{}, entries)
				})
			} else {
				_, err = Ask(t.Context(), Where{StateDir: dir}, q)
			}
			if err != nil {
				t.Errorf("%s, of a learner that ends %s: %v", q, when, err)
			}
		}
	}
}

// TestStoppedLearnerHoldsItsFolder: a learner that takes a connection and never replies holds the folder, and its state
// is not reported as damaged.
func TestStoppedLearnerHoldsItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	release := make(chan struct{})
	served(t, dir, func(net.Conn) { <-release })
	_, err := Ask(t.Context(), Where{StateDir: dir, Silence: 100 * time.Millisecond}, AskStatus)
	close(release)
	if !errors.Is(err, state.ErrLocked) || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("asked while it is stopped: %v, want that the folder is held", err)
	}
}

// TestNotYetTellsWhy: a learner of many tasks reports why one of them has no state, and a proxy's page is not repeated.
func TestNotYetTellsWhy(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"task churn: no stream answers\n", "it has begun no task yet: task churn: no stream answers"},
		{nothingYet + "\n", "it has begun no task yet"},
		{"<html>\n<p>busy</p>", "it has begun no task yet"},
		{"", "it has begun no task yet"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, c.body)
		}))
		_, err := Ask(t.Context(), Where{URL: s.URL}, AskStatus)
		s.Close()
		if !errors.Is(err, state.ErrEmpty) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.body, err, c.want)
		}
	}
}
