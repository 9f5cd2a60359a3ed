package statedir

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzStoredState: whatever task and optimizer state a checkpoint carries, it is refused or can be shown.
func FuzzStoredState(f *testing.F) {
	store := storetest.NewMemory()
	runtest.Learned(f, runtest.Job(f, runtest.Small(f)), store)
	at, err := store.Load(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	signed := &wire.Signed{}
	if err := stream.Unmarshal(at.Task, signed); err != nil {
		f.Fatal(err)
	}
	f.Add(signed.Body, at.Algorithm, at.LastBatch)
	f.Add([]byte{}, []byte{}, []byte("{}"))
	f.Fuzz(func(t *testing.T, body, algorithm, last []byte) {
		envelope := &wire.Signed{Version: stream.Version, Kind: wire.Kind_KIND_TASK, Body: body, Key: signed.Key,
			Signature: signed.Signature}
		changed := at.Clone()
		var err error
		if changed.Task, err = stream.Marshal(envelope); err != nil {
			return
		}
		changed.Cursor.TaskHash = state.Hash(stream.HashOf(body))
		changed.Algorithm, changed.LastBatch = algorithm, last
		view, err := Of(changed)
		if err != nil {
			return
		}
		_, _ = view.Snapshot()
		_, _ = view.Status()
		_, _ = view.LedgerReport()
	})
}

// FuzzHandler: of all requests that can be written on the control socket or the HTTP port, only a GET or HEAD of a
// known question is answered, and what was asked never comes back.
func FuzzHandler(f *testing.F) {
	store := storetest.NewMemory()
	runtest.Learned(f, runtest.Job(f, runtest.Small(f)), store)
	h := Handler(store)
	for _, line := range []string{"GET /v1/status", "GET /v1/snapshot?x=1", "HEAD /v1/ledger", "POST /v1/status",
		"GET /v1/../v1/status",
		"GET /v1/status/", "DELETE *", "CONNECT a:1", "GET http://b/v1/status"} {
		f.Add([]byte(line + " HTTP/1.1\r\nHost: control\r\nContent-Length: 3\r\n\r\nabc"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		asked := (r.Method == "GET" || r.Method == "HEAD") &&
			(r.URL.Path == "/v1/status" || r.URL.Path == "/v1/snapshot" || r.URL.Path == "/v1/ledger")
		if (w.Code == http.StatusOK) != asked {
			t.Errorf("%s %q: %d", r.Method, r.URL.Path, w.Code)
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		if len(body) > 16 && strings.Contains(w.Body.String(), string(body)) {
			t.Error("the answer repeats what was sent")
		}
	})
}
