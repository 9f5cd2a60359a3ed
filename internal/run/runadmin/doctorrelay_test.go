package runadmin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// TestDoctorLooksAtARelay: one that serves the broker's task is well; one of another broker, one that serves other tasks,
// a page, and nothing at all are named.
func TestDoctorLooksAtARelay(t *testing.T) {
	const task = stream.Task("relayed")
	_, here := listening(t, task)
	_, there := listening(t, task)
	put := func(c interface {
		relay.Broker
		stream.Records
	}, text string) {
		t.Helper()
		if _, err := c.PutOnce(t.Context(), task.Task(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(c relay.Config) string {
		r, err := relay.New(c)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		t.Cleanup(r.Close)
		return server.URL
	}
	own, other := serve(relay.Config{Broker: here}), serve(relay.Config{Broker: there})
	less := serve(relay.Config{Broker: here, Tasks: []stream.Task{"another"}})
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	look := func(url string) (natsadmin.Status, string) {
		v := &visit{Config: Config{Task: task, Relay: relayclient.Config{URL: url}}}
		if v.relay(t.Context(), here); len(v.list) != 1 {
			t.Fatalf("%s: %d findings", url, len(v.list))
		}
		return v.list[0].Status, v.list[0].Text
	}
	if got, text := look(own); got != natsadmin.OK || !strings.Contains(text, "no task") {
		t.Errorf("before the task: %s %s", got, text)
	}
	put(here, "a task")
	put(there, "another task")
	for url, want := range map[string]struct {
		status natsadmin.Status
		text   string
	}{own: {natsadmin.OK, "serves the broker's task"}, other: {natsadmin.Failure, "another task"},
		less: {natsadmin.Failure, "does not serve"}, page.URL: {natsadmin.Failure, "ingest relay's"},
		"http://127.0.0.1:1": {natsadmin.Failure, "relay"}} {
		if got, text := look(url); got != want.status || !strings.Contains(text, want.text) {
			t.Errorf("%s: %s %s, want %s %q", url, got, text, want.status, want.text)
		}
	}
}
