package runrelay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// site writes a site's files and returns its folder and the authority's certificate.
func site(t *testing.T) (dir string, roots *x509.CertPool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	must(t, devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}))
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	must(t, err)
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return dir, roots
}

// TestRelayOverTLS: a relay with a certificate and a token serves its broker's records and takes reports, says how it is,
// and leaves nothing when it ends.
func TestRelayOverTLS(t *testing.T) {
	const task, token = stream.Task("churn"), "token-of-the-relay"
	e, err := embedded.Start(embedded.Config{Listen: "127.0.0.1:0", StoreDir: t.TempDir()})
	must(t, err)
	defer e.Shutdown()
	operator, err := e.Connect(natsjs.ConnectConfig{})
	must(t, err)
	defer operator.Close()
	must(t, natsadmin.Provision(t.Context(), operator, task, natsadmin.Options{}))
	_, err = operator.PutOnce(t.Context(), task.Task(), []byte("a task"))
	must(t, err)
	dir, roots := site(t)
	access, err := httpaccess.Token(token)
	must(t, err)
	c := Config{Listening: httpaccess.Listening{HTTP: listen(t), Cert: filepath.Join(dir, "relay-http.pem"),
		Key: filepath.Join(dir, "relay-http-key.pem")}, Metrics: listen(t),
		Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: e.URL()}},
		Relay:  relay.Config{Access: access, Logger: slog.New(slog.DiscardHandler)}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	client, err := relayclient.New(relayclient.Config{URL: "https://" + c.HTTP.Addr().String(), Token: token,
		TLS: &tls.Config{RootCAs: roots}})
	must(t, err)
	wakes, err := client.Watch(ctx, task)
	must(t, err)
	if w, ok := <-wakes; !ok || w.Subject != "" {
		t.Errorf("the first wake: %+v", w)
	}
	if m, err := client.Get(ctx, task.Task()); err != nil || string(m.Data) != "a task" {
		t.Errorf("get: %+v, %v", m, err)
	}
	stranger, err := relayclient.New(relayclient.Config{URL: "https://" + c.HTTP.Addr().String(),
		TLS: &tls.Config{RootCAs: roots}})
	must(t, err)
	if _, err := stranger.Get(ctx, task.Task()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	stranger.Close()
	for path, want := range map[string]string{"/readyz": "ok", "/healthz": "ok",
		"/metrics": `panlearn_relay_refused_requests_total{reason="401"} 1`} {
		r, err := http.Get("http://" + c.Metrics.Addr().String() + path)
		must(t, err)
		text, err := io.ReadAll(r.Body)
		must(t, err)
		r.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q", path, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	client.Close()
}

// TestConfigIsValidated as an interface over HTTP and as a relay.
func TestConfigIsValidated(t *testing.T) {
	local := httpaccess.Listening{HTTP: listen(t)}
	defer local.HTTP.Close()
	for want, c := range map[string]Config{
		"origin":      {Listening: local, Relay: relay.Config{Origins: []string{"*"}}},
		"go together": {Listening: httpaccess.Listening{HTTP: local.HTTP, Cert: "a"}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
