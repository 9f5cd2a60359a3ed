package runtest

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Loopback listens on a free port of this machine.
func Loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Fetch reads a path of a server, on a connection of its own.
func Fetch(t testing.TB, at net.Listener, path string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return string(body)
}

// Follow reads a page's events to their end and returns the parts as they were last, and how many events there were.
func Follow(t testing.TB, at net.Listener) func() (map[string]string, int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	last, events, ended := map[string]string{}, 0, make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			update := struct{ Parts map[string]string }{last}
			if err := json.Unmarshal([]byte(data), &update); err != nil {
				ended <- err
				return
			}
			events++
		}
		ended <- lines.Err()
	}()
	return func() (map[string]string, int) {
		t.Helper()
		if err := <-ended; err != nil {
			t.Errorf("events: %v", err)
		}
		return last, events
	}
}
