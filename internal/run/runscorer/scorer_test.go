package runscorer

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/scorer"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhichLearnersAreWaitedFor: one that is not up, that has begun no task, or that a proxy does not reach, and a state
// folder without a model; not an answer that says that nothing will come.
func TestWhichLearnersAreWaitedFor(t *testing.T) {
	answers := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		what  string
		where statedir.Where
		waits bool
	}{
		{"nothing listens", statedir.Where{URL: gone.URL}, true},
		{"no task yet", statedir.Where{URL: answers(503)}, true},
		{"a proxy alone", statedir.Where{URL: answers(502)}, true},
		{"no answer in time", statedir.Where{URL: answers(504)}, true},
		{"no learner", statedir.Where{URL: answers(404)}, false},
		{"a fault", statedir.Where{URL: answers(500)}, false},
		{"no model there", statedir.Where{URL: answers(204)}, false},
		{"an empty folder", statedir.Where{StateDir: t.TempDir()}, true},
	} {
		list := Config{Learners: []statedir.Where{c.where}}.sources()
		_, err := list[0].Read(t.Context())
		if err == nil || errors.Is(err, scorer.ErrNotYet) != c.waits {
			t.Errorf("%s: %v, waits: %v", c.what, err, c.waits)
		}
	}
}

// TestWhatCannotBecomeALearnerIsRefused at once, without showing a URL, which may have a password.
func TestWhatCannotBecomeALearnerIsRefused(t *testing.T) {
	const secret = "do-not-repeat-me"
	at, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer at.Close()
	for _, url := range []string{"127.0.0.1:9090", "ftp://" + secret + "@host", secret, "http://", ":" + secret} {
		c := Config{Learners: []statedir.Where{{URL: url}}, Listening: httpaccess.Listening{HTTP: at}}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--from: want http://HOST:PORT") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", url, err)
		}
	}
	c := Config{Learners: []statedir.Where{{StateDir: filepath.Join(t.TempDir(), "none")}}, Listening: httpaccess.Listening{HTTP: at}}
	if err := c.Validate(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	named := Config{Learners: []statedir.Where{{URL: "https://me:" + secret + "@learner:9090/p?token=" + secret}}}.sources()
	if named[0].Name != "https://learner:9090" {
		t.Errorf("named %q", named[0].Name)
	}
}
