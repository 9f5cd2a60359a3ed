package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/internal/test/live"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestService posts the event of each user of a task, whatever it holds, asks what became of it, and asks again after a
// restart, where the task is pinned.
func TestService(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const users = 600
	task := live.Start(t, users)
	c := device.Config{Task: task.Name, Folder: filepath.Join(t.TempDir(), "devices"), TrustFirstUse: true}
	for life := range 2 {
		conn, err := natsjs.ConnectWait(t.Context(), natsjs.ConnectConfig{URL: task.URL})
		if err != nil {
			t.Fatal(err)
		}
		c.Transport = conn
		dev, err := device.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(service(dev))
		do := func(method, path, user, body string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return 0, ""
			}
			r.Header.Set("X-User", user)
			got, err := server.Client().Do(r)
			if err != nil {
				t.Error(err)
				return 0, ""
			}
			defer got.Body.Close()
			text, _ := io.ReadAll(got.Body)
			return got.StatusCode, string(text)
		}
		if status, _ := do(http.MethodPost, "/event", "", "{}"); status != http.StatusUnauthorized {
			t.Errorf("without a user: %d", status)
		}
		if status, _ := do(http.MethodGet, "/outcome", "nobody", ""); status != http.StatusNotFound {
			t.Errorf("the outcome of nobody: %d", status)
		}
		var group sync.WaitGroup
		for i := range users {
			group.Go(func() {
				user, event := fmt.Sprint("user ", i), task.Events[i]
				if i%10 == 0 {
					event = "no JSON"
				}
				if status, _ := do(http.MethodPost, "/event", user, event); status != http.StatusAccepted && life == 0 {
					t.Errorf("user %d: %d", i, status)
				}
				for outcome := ""; !strings.HasPrefix(outcome, "counted") && !t.Failed(); {
					var status int
					status, outcome = do(http.MethodGet, "/outcome", user, "")
					if status != http.StatusOK || strings.HasPrefix(outcome, "un") || strings.HasPrefix(outcome, "refused") {
						t.Errorf("user %d: %d %s", i, status, outcome)
					}
				}
			})
		}
		group.Wait()
		server.Close()
		agreement, err := dev.Agreement(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Pin, c.TrustFirstUse = hex.EncodeToString(agreement.Hash[:]), false
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
}
